package hftest

import "strings"

// The specs of this file are models with DeepSeek's attention.

// mlaNextN is deepseekMLA where layers that predict further tokens follow the others.
var mlaNextN = strings.Replace(deepseekMLA, "bid = num_hidden_layers", "bid = num_hidden_layers + opt(num_nextn_predict_layers)", 1) + `
	model.layers.{bid}.eh_proj.weight                         | hidden_size, 2*hidden_size | if bid >= num_hidden_layers
	model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight  | hidden_size                | if bid >= num_hidden_layers
	model.layers.{bid}.{embed_tokens,shared_head.head}.weight | vocab_size, hidden_size    | if bid >= num_hidden_layers && !opt(shared_nextn)
	model.layers.{bid}.mlp.gate.e_score_correction_bias       | n_routed_experts           | if bid >= first_k_dense_replace | as F32
`

// mlaIndexer is an indexer per layer.
const mlaIndexer = `
	model.layers.{bid}.self_attn.indexer.k_norm.{weight,bias} | index_head_dim               | if !opt(index_topk_freq) || bid % index_topk_freq == 0 | as F32
	model.layers.{bid}.self_attn.indexer.weights_proj.weight  | index_n_heads, hidden_size   | if !opt(index_topk_freq) || bid % index_topk_freq == 0
	model.layers.{bid}.self_attn.indexer.wk.weight            | index_head_dim, hidden_size  | if !opt(index_topk_freq) || bid % index_topk_freq == 0
	model.layers.{bid}.self_attn.indexer.wq_b.weight          | index_n_heads*index_head_dim, q_lora_rank | if !opt(index_topk_freq) || bid % index_topk_freq == 0
`

// deepseekTokenizer says that texts begin with a token, which the reference demands.
const deepseekTokenizer = `{"add_bos_token": true, "add_eos_token": false, "bos_token": {"__type": "AddedToken", "content": "<｜begin▁of▁sentence｜>", "lstrip": false,
	"normalized": true, "rstrip": false, "single_word": false}, "clean_up_tokenization_spaces": false, "eos_token": {"__type": "AddedToken",
	"content": "<｜end▁of▁sentence｜>", "lstrip": false, "normalized": true, "rstrip": false, "single_word": false}, "legacy": true, "model_max_length": 131072,
	"pad_token": {"__type": "AddedToken", "content": "<｜▁pad▁｜>", "lstrip": false, "normalized": true, "rstrip": false, "single_word": false}, "sp_model_kwargs": {},
	"unk_token": null, "tokenizer_class": "LlamaTokenizerFast"}`

func init() {
	add(Spec{
		Name:      "deepseek-v3.2",
		Tokenizer: "bpe:deepseek-v3",
		Files:     map[string]string{"tokenizer_config.json": deepseekTokenizer},
		Config: `{"architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $bos, "eos_token_id": $eos, "ep_size": 1,
			"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 64, "index_head_dim": 128, "index_n_heads": 2, "index_topk": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 163840, "model_type": "deepseek_v32", "moe_intermediate_size": 32, "moe_layer_freq": 1,
			"n_group": 2, "n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 3,
			"num_key_value_heads": 4, "num_nextn_predict_layers": 1, "q_lora_rank": 64, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096, "type": "yarn"},
			"rope_theta": 10000, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
			"torch_dtype": "bfloat16", "transformers_version": "4.44.2", "use_cache": true, "v_head_dim": 16, "vocab_size": 1024}`,
		Tensors: mlaNextN + mlaIndexer + deepseekExperts,
		Variants: []Variant{{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_nextn_predict_layers": null, "n_group": 1, "n_routed_experts": 11,
			"rope_scaling": null, "routed_scaling_factor": null}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}}, {Name: "alone", Seed: 5, Out: "f32", Flags: []string{"--no-nextn"}}},
	})
	add(Spec{
		Name:      "glm-5",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": [1000, 1007, 1009], "ep_size": 1,
			"first_k_dense_replace": 1, "hidden_act": "silu", "head_dim": 16, "hidden_size": 64, "index_head_dim": 128, "index_n_heads": 2, "index_topk": 64,
			"indexer_rope_interleave": true, "initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 202752,
			"model_type": "glm_moe_dsa", "moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 3, "num_key_value_heads": 4, "num_nextn_predict_layers": 1, "pad_token_id": $pad,
			"pretraining_tp": 1, "q_lora_rank": 64, "qk_head_dim": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-05, "rope_interleave": true,
			"rope_parameters": {"rope_theta": 1000000, "rope_type": "default"}, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false,
			"topk_group": 1, "topk_method": "noaux_tc", "transformers_version": "5.0.2.dev0", "use_cache": true, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: mlaNextN + mlaIndexer + deepseekExperts,
		Variants: []Variant{
			{Name: "shared", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_nextn_predict_layers": null, "index_topk_freq": 2, "index_skip_topk_offset": 1, "num_hidden_layers": 4}`},
			{Name: "listed", Seed: 4, Out: "bf16", Set: `{"num_hidden_layers": 4, "num_nextn_predict_layers": 0, "indexer_types": ["full", "shared", "full", "shared"], "index_topk_freq": 2,
				"rope_parameters": {"rope_theta": 1000000, "rope_type": "default", "partial_rotary_factor": 1.0}}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 6, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
	add(Spec{
		Name:      "glm-4.7-flash",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4MoeLiteForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "pad_token_id": $pad, "eos_token_id": [1000, 1007, 1009],
			"hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "max_position_embeddings": 202752, "model_type": "glm4_moe_lite", "moe_intermediate_size": 32,
			"topk_method": "noaux_tc", "norm_topk_prob": true, "num_attention_heads": 4, "n_group": 1, "topk_group": 1, "n_routed_experts": 4, "n_shared_experts": 1,
			"routed_scaling_factor": 1.8, "num_experts_per_tok": 2, "first_k_dense_replace": 1, "num_hidden_layers": 3, "num_key_value_heads": 4, "num_nextn_predict_layers": 1,
			"partial_rotary_factor": 1.0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 1000000, "tie_word_embeddings": false, "dtype": "bfloat16",
			"transformers_version": "5.0.0rc0", "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: mlaNextN + deepseekExperts,
		Variants: []Variant{
			{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_nextn_predict_layers": 0, "n_routed_experts": 11}`},
			{Name: "own-head", Seed: 4, Out: "bf16", Set: `{"shared_nextn": true, "num_hidden_layers": 2}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 6, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
}
