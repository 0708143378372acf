package hftest

import "strings"

// draftAlone is the Spec.NoLoad of draft models.
const draftAlone = "a draft model: its weights load, but it runs only together with its target model"

// EAGLE-3 drafts for a Llama and a Qwen.
func init() {
	layer := `
		hd = opt(head_dim) || hidden_size / num_attention_heads
		LAYER.{hidden_norm,input_layernorm,post_attention_layernorm}.weight | hidden_size
		LAYER.self_attn.q_proj.weight     | num_attention_heads*hd, 2*hidden_size
		LAYER.self_attn.{k,v}_proj.weight | num_key_value_heads*hd, 2*hidden_size
		LAYER.self_attn.o_proj.weight     | hidden_size, num_attention_heads*hd
		LAYER.mlp.{gate,up}_proj.weight   | intermediate_size, hidden_size
		LAYER.mlp.down_proj.weight        | hidden_size, intermediate_size
		`
	rest := `
		d2t            | draft_vocab_size | as I64 | fill count
		t2d            | vocab_size       | as BOOL | fill bytes
		norm.weight    | hidden_size
		lm_head.weight | draft_vocab_size, hidden_size
		fc.weight      | hidden_size, 3*(opt(target_hidden_size) || 64)
		`
	add(Spec{
		Name:      "eagle3-llama",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5-text",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["LlamaForCausalLM"], "bos_token_id": 1000, "draft_vocab_size": 512,
			"eos_token_id": 1002, "hidden_act": "silu", "hidden_size": 64, "head_dim": 32, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 4,
			"num_hidden_layers": 1, "num_key_value_heads": 2, "pad_token_id": 0, "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false,
			"torch_dtype": "float16", "transformers_version": "4.51.0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: strings.ReplaceAll(layer, "LAYER", "midlayer") + rest,
		Variants: []Variant{
			{Name: "layers", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"eagle_aux_hidden_state_layer_ids": [1,
				5, 8], "target_hidden_size": 96, "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0,
				"low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}}`},
		},
	})
	add(Spec{
		Name:      "eagle3-speculator",
		Tokenizer: "bpe:qwen2",
		Target:    "qwen3_5-text",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["Eagle3Speculator"], "auto_map": {"": "eagle3.Eagle3SpeculatorConfig"},
			"draft_vocab_size": 512, "embed_requires_grad": false, "has_no_defaults_at_init": false,
			"norm_before_fc": true, "norm_before_residual": true, "eagle_aux_hidden_state_layer_ids": null,
			"target_hidden_size": null, "speculators_config": {"algorithm": "eagle3",
			"default_proposal_method": "greedy", "proposal_methods": [{"accept_tolerance": 0.0,
			"proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1}],
			"verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": "Qwen/Qwen3-8B"}},
			"speculators_model_type": "eagle3", "speculators_version": "0.1.0.dev42", "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.56.1",
			"transformer_layer_config": {"attention_bias": false, "attention_dropout": 0.0, "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 40960, "mlp_bias": false, "model_type": "llama", "num_attention_heads": 4,
			"num_hidden_layers": 1, "num_key_value_heads": 2, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000, "use_cache": true, "vocab_size": 1024}}`,
		Tensors: `
			hidden_size = transformer_layer_config.hidden_size
			intermediate_size = transformer_layer_config.intermediate_size
			num_attention_heads = transformer_layer_config.num_attention_heads
			num_key_value_heads = transformer_layer_config.num_key_value_heads
			head_dim = transformer_layer_config.head_dim
			vocab_size = transformer_layer_config.vocab_size
			` + strings.ReplaceAll(layer, "LAYER", "layers.0") + rest + `
			embed_tokens.weight | vocab_size, hidden_size
			input_norm.weight   | 3*hidden_size
			`,
	})
}
