package hftest

func init() {
	add(Spec{
		Name:      "ernie4_5",
		Tokenizer: "spm",
		Config: `{"architectures": ["Ernie4_5ForCausalLM"], "bos_token_id": 1, "compression_ratio": 1.0,
			"eos_token_id": 2, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "ernie4_5",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 0,
			"rms_norm_eps": 1e-05, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_bias": false, "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "exaone",
		Tokenizer: "bpe:exaone",
		Config: `{"activation_function": "silu", "architectures": ["ExaoneForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_exaone.ExaoneConfig"}, "bos_token_id": 1001, "embed_dropout": 0.0,
			"eos_token_id": 1004, "head_dim": 16, "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_norm_epsilon": 1e-05, "max_position_embeddings": 32768, "model_type": "exaone",
			"num_attention_heads": 4, "num_key_value_heads": 2, "num_layers": 2, "pad_token_id": 1000,
			"rope_scaling": null, "rope_theta": 500000.0, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_layers
			transformer.wte.weight                               | vocab_size, hidden_size
			transformer.h.{bid}.ln_{1,2}.weight                  | hidden_size
			transformer.h.{bid}.attn.attention.{k,v}_proj.weight | num_key_value_heads*head_dim, hidden_size
			transformer.h.{bid}.attn.attention.q_proj.weight     | num_attention_heads*head_dim, hidden_size
			transformer.h.{bid}.attn.attention.out_proj.weight   | hidden_size, num_attention_heads*head_dim
			transformer.h.{bid}.mlp.c_fc_{0,1}.weight            | intermediate_size, hidden_size
			transformer.h.{bid}.mlp.c_proj.weight                | hidden_size, intermediate_size
			transformer.ln_f.weight                              | hidden_size
			lm_head.weight                                       | vocab_size, hidden_size                   | if !opt(tie_word_embeddings)
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "exaone4",
		Tokenizer: "bpe:exaone",
		Config: `{"architectures": ["Exaone4ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1001,
			"eos_token_id": 1002, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention",
			"full_attention"], "max_position_embeddings": 2048, "model_type": "exaone4", "num_attention_heads": 4,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": 1000, "rms_norm_eps": 1e-05,
			"rope_scaling": null, "rope_theta": 1000000, "sliding_window": 4096, "sliding_window_pattern": "LLLG",
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                                        | vocab_size, hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                       | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                   | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                       | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.self_attn.{q,k}_norm.weight                   | head_dim
			model.layers.{bid}.mlp.{gate,up}_proj.weight                     | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                          | hidden_size, intermediate_size
			model.layers.{bid}.post_{attention,feedforward}_layernorm.weight | hidden_size
			model.norm.weight                                                | hidden_size
			lm_head.weight                                                   | vocab_size, hidden_size                   | if !opt(tie_word_embeddings)
			`,
	})
	add(Spec{
		Name:      "glm4",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"eos_token_id": [1000, 1007, 1009], "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "glm4",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1000,
			"partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.mlp.gate_up_proj.weight               | 2*intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                  | hidden_size, intermediate_size
			model.layers.{bid}.post_{self_attn,mlp}_layernorm.weight | hidden_size
			`,
	})
	add(Spec{
		Name:      "hunyuan",
		Tokenizer: "bpe:hunyuan-dense",
		Config: `{"add_classification_head": false, "architectures": ["HunYuanDenseV1ForCausalLM"],
			"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "class_num": 0, "dense_list": [256,
			0], "enable_lm_head_fp32": true, "eod_token_id": 2, "eos_token_id": 1001, "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 262144, "model_type": "hunyuan_v1_dense", "norm_type": "rms",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1002,
			"rms_norm_eps": 1e-05, "rope_scaling": {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0,
			"mscale": 1.0, "mscale_all_dim": 1.0, "type": "dynamic"}, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "use_cla": false, "use_qk_norm": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{query,key}_layernorm.weight | head_dim
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
}
