package hftest

func init() {
	add(Spec{
		Name:      "cohere",
		Tokenizer: "bpe:command-r", AddedTokens: cohereTokens,
		DType: "F16",
		Config: `{"architectures": ["CohereForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05, "logit_scale": 0.0625,
			"max_position_embeddings": 8192, "model_max_length": 131072, "model_type": "cohere",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": $pad,
			"rope_theta": 8000000.0, "torch_dtype": "float16", "transformers_version": "4.38.2", "use_cache": true,
			"use_qk_norm": false, "vocab_size": 1024}`,
		Tensors: cohereTensors + `
			model.layers.{bid}.self_attn.q_norm.weight | num_attention_heads, hd | if opt(use_qk_norm)
			model.layers.{bid}.self_attn.k_norm.weight | num_key_value_heads, hd | if opt(use_qk_norm)
			`,
		Variants: []Variant{
			{Name: "qk-norm", Seed: 3, Out: "q8_0",
				Set: `{"use_qk_norm": true, "model_max_length": null, "num_key_value_heads": 1, "attention_bias": true}`},
			{Name: "lacking", Seed: 4, DType: "BF16", Out: "auto",
				Set: `{"num_key_value_heads": null, "logit_scale": null, "layer_norm_eps": null, "rope_theta": null}`},
		},
	})
	cohere2 := Spec{
		Name:      "cohere2",
		Tokenizer: "bpe:command-r", AddedTokens: cohereTokens,
		Config: `{"_sliding_window_pattern": 4, "architectures": ["Cohere2ForCausalLM"], "attention_bias": false,
			"attention_dropout": 0.0, "bos_token_id": $bos, "cache_implementation": "hybrid", "eos_token_id": $eos,
			"head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_eps": 1e-05, "layer_switch": 4, "logit_scale": 0.25, "max_position_embeddings": 8192,
			"model_type": "cohere2", "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
			"order_of_interleaved_layers": "local_attn_first", "pad_token_id": $pad,
			"position_embedding_type": "rope_gptj", "rope_theta": 50000, "rotary_pct": 1.0, "sliding_window": 4096,
			"sliding_window_pattern": 4, "torch_dtype": "bfloat16", "transformers_version": "4.48.0", "use_cache": true,
			"use_embedding_sharing": true, "use_gated_activation": true, "use_parallel_block": true,
			"use_parallel_embedding": true, "use_qk_norm": false, "vocab_size": 1024}`,
		Tensors: cohereTensors,
		Variants: []Variant{
			{Name: "half-rope", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"num_hidden_layers": 5, "rotary_pct": 0.5, "head_dim": null}`},
		},
	}
	add(cohere2)
	cohere2.Name, cohere2.NoReference, cohere2.Variants = "cohere2-zero-biases",
		"the reference compares the biases with zero before their data is loaded", nil
	cohere2.Tensors += `
		model.layers.{bid}.input_layernorm.bias        | hidden_size             | fill zero
		model.layers.{bid}.self_attn.{k,v}_proj.bias   | num_key_value_heads*hd  | fill zero
	`
	add(cohere2)
}

// cohereTokens are the special tokens that transformers adds if the tokenizer lacks them.
var cohereTokens = []string{"<SEP>", "<CLS>", "<MASK_TOKEN>"}

const cohereTensors = `
	bid = num_hidden_layers
	hd  = hidden_size / num_attention_heads
	kv  = opt(num_key_value_heads) || num_attention_heads
	model.embed_tokens.weight                               | vocab_size, hidden_size
	model.norm.weight                                       | hidden_size
	model.layers.{bid}.input_layernorm.weight               | hidden_size
	model.layers.{bid}.self_attn.q_proj.weight              | num_attention_heads*hd, hidden_size
	model.layers.{bid}.self_attn.{k,v}_proj.weight          | kv*hd, hidden_size
	model.layers.{bid}.self_attn.o_proj.weight              | hidden_size, num_attention_heads*hd
	model.layers.{bid}.self_attn.q_proj.bias                | num_attention_heads*hd | if opt(attention_bias)
	model.layers.{bid}.mlp.{gate,up}_proj.weight            | intermediate_size, hidden_size
	model.layers.{bid}.mlp.down_proj.weight                 | hidden_size, intermediate_size
`
