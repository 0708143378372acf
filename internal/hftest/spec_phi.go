package hftest

func init() {
	add(Spec{
		Name:      "phi",
		Tokenizer: "bpe:phi-2",
		DType:     "F16",
		Config: `{"architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1000, "embd_pdrop": 0.0, "eos_token_id": 1000,
			"hidden_act": "gelu_new", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 256, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 2048, "model_type": "phi", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4,
			"partial_rotary_factor": 0.5, "qk_layernorm": false, "resid_pdrop": 0.1, "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false,
			"torch_dtype": "float16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                        | vocab_size, hidden_size
			model.layers.{bid}.self_attn.{q_proj,k_proj,v_proj,dense}.weight | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q_proj,k_proj,v_proj,dense}.bias   | hidden_size
			model.layers.{bid}.mlp.fc1.weight                                | intermediate_size, hidden_size
			model.layers.{bid}.mlp.fc1.bias                                  | intermediate_size
			model.layers.{bid}.mlp.fc2.weight                                | hidden_size, intermediate_size
			model.layers.{bid}.mlp.fc2.bias                                  | hidden_size
			model.layers.{bid}.input_layernorm.weight                        | hidden_size
			model.layers.{bid}.input_layernorm.bias                          | hidden_size
			model.final_layernorm.weight                                     | hidden_size
			model.final_layernorm.bias                                       | hidden_size
			lm_head.weight                                                   | vocab_size, hidden_size        | if !opt(tie_word_embeddings)
			lm_head.bias                                                     | vocab_size
			`,
	})
	add(Spec{
		Name:        "phi3",
		Tokenizer:   "spm",
		AddedTokens: []string{"<|endoftext|>", "<|assistant|>", "<|placeholder1|>", "<|system|>", "<|end|>", "<|user|>"},
		Config: `{"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1, "embd_pdrop": 0.0, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "phi3",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "original_max_position_embeddings": 4096, "pad_token_id": 2,
			"resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, hidden_size
			model.layers.{bid}.self_attn.qkv_proj.weight               | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
			model.layers.{bid}.mlp.gate_up_proj.weight                 | 2*intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.norm.weight                                          | hidden_size
			lm_head.weight                                             | vocab_size, hidden_size                                     | if !opt(tie_word_embeddings)
			`,
	})
}
