package hftest

func init() {
	add(Spec{
		Name:      "minicpm",
		Tokenizer: "spm",
		Config: `{"architectures": ["MiniCPMForCausalLM"], "attention_bias": false,
			"auto_map": {"AutoConfig": "configuration_minicpm.MiniCPMConfig"}, "bos_token_id": 1, "dim_model_base": 16,
			"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.1,
			"intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "minicpm", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"scale_depth": 1.4, "scale_emb": 12, "torch_dtype": "bfloat16", "transformers_version": "4.36.0",
			"use_cache": true, "vocab_size": $vocab, "tie_word_embeddings": true}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "longrope", Seed: 3, DType: "F16", Out: "bf16", Set: `{"tie_word_embeddings": false,
				"num_hidden_layers": 3, "max_position_embeddings": 32768, "rope_theta": 10000.0,
				"rope_scaling": {"rope_type": "longrope", "long_factor": [0.9982316082870437, 1.033048153422584,
				1.0749920956484724, 1.1255096879436193, 1.2, 2.5, 9.75, 32.1], "short_factor": [0.9982316082870437,
				1.033048153422584, 1.0749920956484724, 1.1255096879436193, 1.2, 1.5, 2.75, 4.1],
				"original_max_position_embeddings": 32768}}`},
		},
	})
	add(Spec{
		Name:      "minicpm3",
		Tokenizer: "spm",
		Config: `{"architectures": ["MiniCPM3ForCausalLM"], "attention_bias": false,
			"auto_map": {"AutoConfig": "configuration_minicpm.MiniCPM3Config"}, "bos_token_id": 1,
			"dim_model_base": 256, "eos_token_id": [2, 73], "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.1, "intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 32768,
			"model_type": "minicpm3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4,
			"pad_token_id": 2, "q_lora_rank": 64, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "rms_norm_eps": 1e-05,
			"rope_scaling": {"type": "longrope", "long_factor": [1.0591234137867171, 1.1, 1.25, 3.5],
			"original_max_position_embeddings": 32768, "short_factor": [1.0591234137867171, 1.1, 1.2, 1.5]},
			"rope_theta": 10000.0, "scale_depth": 1.4, "scale_emb": 12, "torch_dtype": "bfloat16",
			"transformers_version": "4.41.0", "use_cache": true, "v_head_dim": 16, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			qh  = qk_nope_head_dim + qk_rope_head_dim
			lm_head.weight                                                | vocab_size, hidden_size
			model.embed_tokens.weight                                     | vocab_size, hidden_size
			model.norm.weight                                             | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight    | hidden_size
			model.layers.{bid}.self_attn.q_a_proj.weight                  | q_lora_rank, hidden_size
			model.layers.{bid}.self_attn.q_a_layernorm.weight             | q_lora_rank
			model.layers.{bid}.self_attn.q_b_proj.weight                  | num_attention_heads*qh, q_lora_rank
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight        | kv_lora_rank+qk_rope_head_dim, hidden_size
			model.layers.{bid}.self_attn.kv_a_layernorm.weight            | kv_lora_rank
			model.layers.{bid}.self_attn.kv_b_proj.weight                 | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank
			model.layers.{bid}.self_attn.o_proj.weight                    | hidden_size, num_attention_heads*v_head_dim
			` + llamaMLP,
		Variants: []Variant{
			{Name: "no-scaling", Seed: 3, DType: "F16", Out: "bf16", Set: `{"rope_scaling": null}`},
		},
	})
}
