package hftest

func init() {
	add(Spec{
		Name:      "olmo",
		Tokenizer: "bpe:neox",
		DType:     "F32",
		Config: `{"architectures": ["OlmoForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "clip_qkv": 8.0, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "olmo",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1,
			"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float32",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			model.embed_tokens.weight                      | vocab_size, hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight | num_key_value_heads*hd, hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight   | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight        | hidden_size, intermediate_size
			lm_head.weight                                 | vocab_size, hidden_size             | if !opt(tie_word_embeddings)
			`,
		Variants: []Variant{
			{Name: "clip", Seed: 3, DType: "F16", Out: "auto",
				Set: `{"clip_qkv": 8.0, "num_key_value_heads": 2, "tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "olmo2",
		Tokenizer: "bpe:olmo2",
		DType:     "F32",
		Config: `{"architectures": ["Olmo2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "olmo2",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1001,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 500000, "tie_word_embeddings": false,
			"torch_dtype": "float32", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			model.embed_tokens.weight                                        | vocab_size, hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight                   | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                   | num_key_value_heads*hd, hidden_size
			model.layers.{bid}.self_attn.q_norm.weight                       | hidden_size
			model.layers.{bid}.self_attn.k_norm.weight                       | num_key_value_heads*hd
			model.layers.{bid}.mlp.{gate,up}_proj.weight                     | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                          | hidden_size, intermediate_size
			model.layers.{bid}.post_{attention,feedforward}_layernorm.weight | hidden_size
			model.norm.weight                                                | hidden_size
			lm_head.weight                                                   | vocab_size, hidden_size             | if !opt(tie_word_embeddings)
			`,
	})
	add(Spec{
		Name:      "olmoe",
		Tokenizer: "bpe:neox",
		Config: `{"architectures": ["OlmoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "clip_qkv": null, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 2048, "model_type": "olmoe",
			"norm_topk_prob": false, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 1, "rms_norm_eps": 1e-05,
			"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | hidden_size
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, intermediate_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | intermediate_size, hidden_size
			`,
	})
}
