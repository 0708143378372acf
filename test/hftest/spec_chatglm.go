package hftest

func init() {
	add(Spec{
		Name:      "glm-4-9b-chat",
		Tokenizer: "bpe:glm4",
		Config: `{"_name_or_path": "THUDM/glm-4-9b-chat", "model_type": "chatglm", "architectures": ["ChatGLMModel"],
			"auto_map": {"AutoConfig": "configuration_chatglm.ChatGLMConfig"}, "add_bias_linear": false,
			"add_qkv_bias": true, "apply_query_key_layer_scaling": true,
			"apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0,
			"attention_softmax_in_fp32": true, "attn_implementation": "sdpa", "bias_dropout_fusion": true,
			"ffn_hidden_size": 96, "fp32_residual_connection": false, "hidden_dropout": 0.0, "hidden_size": 64,
			"kv_channels": 16, "layernorm_epsilon": 1.5625e-07, "multi_query_attention": true,
			"multi_query_group_num": 2, "num_attention_heads": 4, "num_hidden_layers": 2, "num_layers": 2,
			"rope_ratio": 500, "original_rope": true, "padded_vocab_size": 1024, "post_layer_norm": true,
			"rmsnorm": true, "seq_length": 131072, "use_cache": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.44.0", "tie_word_embeddings": false, "eos_token_id": [1000, 1007, 1009],
			"pad_token_id": 1000, "vocab_size": 1024}`,
		Tensors: `
			bid = num_layers
			qkv = (num_attention_heads+2*multi_query_group_num)*kv_channels
			transformer.rotary_pos_emb.inv_freq                                              | kv_channels/4
			transformer.embedding.word_embeddings.weight                                     | padded_vocab_size, hidden_size
			transformer.encoder.final_layernorm.weight                                       | hidden_size
			transformer.output_layer.weight                                                  | padded_vocab_size, hidden_size
			transformer.encoder.layers.{bid}.{input,post_attention}_layernorm.weight         | hidden_size
			transformer.encoder.layers.{bid}.self_attention.query_key_value.weight           | qkv, hidden_size
			transformer.encoder.layers.{bid}.self_attention.query_key_value.bias             | qkv
			transformer.encoder.layers.{bid}.self_attention.dense.weight                     | hidden_size, hidden_size
			transformer.encoder.layers.{bid}.mlp.dense_h_to_4h.weight                        | 2*ffn_hidden_size, hidden_size
			transformer.encoder.layers.{bid}.mlp.dense_4h_to_h.weight                        | hidden_size, ffn_hidden_size
			`,
		Variants: []Variant{
			{Name: "no-ratio", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"rope_ratio": null, "seq_length": null, "num_layers": 11, "num_hidden_layers": 11,
					"layernorm_epsilon": null}`},
		},
	})
	add(Spec{
		Name:      "glm",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["GlmForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
			"eos_token_id": [1000, 1007, 1009], "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "glm",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1000,
			"partial_rotary_factor": 0.5, "rms_norm_eps": 1.5625e-07, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.46.0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			lm_head.weight                                              | vocab_size, hidden_size
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.norm.weight                                           | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                  | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.q_proj.bias                    | num_attention_heads*head_dim | if attention_bias
			model.layers.{bid}.self_attn.{k,v}_proj.weight              | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.bias                | num_key_value_heads*head_dim | if attention_bias
			model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.mlp.gate_up_proj.weight                  | 2*intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "lacking", Seed: 3, DType: "F16", Out: "q8_0",
				Set: `{"attention_bias": false, "partial_rotary_factor": null}`},
		},
	})
}
