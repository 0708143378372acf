package hftest

func init() {
	add(Spec{
		Name:      "arctic",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["ArcticForCausalLM"], "attention_dropout": 0,
			"auto_map": {"AutoConfig": "configuration_arctic.ArcticConfig"}, "bos_token_id": 1,
			"enable_expert_tensor_parallelism": false, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 4096,
			"max_sequence_length": 4096, "model_type": "arctic", "moe_eval_capacity_factor": 1,
			"moe_layer_frequency": 1, "moe_min_capacity": 0, "moe_token_dropping": true, "moe_train_capacity_factor": 1,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_local_experts": 11, "parallel_attn_mlp_res": true, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 10000, "router_aux_loss_coef": 0.001, "sliding_window": null, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.39.3", "use_cache": true, "use_residual": true,
			"vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_local_experts
			model.layers.{bid}.residual_layernorm.weight                     | hidden_size
			model.layers.{bid}.residual_mlp.w{1,3}.weight                    | hidden_size, hidden_size
			model.layers.{bid}.residual_mlp.w2.weight                        | hidden_size, hidden_size
			model.layers.{bid}.block_sparse_moe.gate.weight                  | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w{1,3}.weight  | intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight      | hidden_size, intermediate_size
			`,
	})
	add(Spec{
		Name:      "arcee",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["ArceeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "relu2", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 65536, "mlp_bias": false,
			"model_type": "arcee", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-05, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 20.0, "mscale": 1.0,
			"original_max_position_embeddings": 4096, "rope_type": "yarn", "type": "yarn"}, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.53.0",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.mlp.up_proj.weight   | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "lacking", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"head_dim": null, "rope_scaling": null, "rms_norm_eps": null, "attention_bias": true}`},
		},
	})
	add(Spec{
		Name:      "afmoe",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["AfmoeForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_afmoe.AfmoeConfig"}, "bos_token_id": $bos, "dtype": "bfloat16",
			"eos_token_id": $eos, "global_attn_every_n_layers": 4, "head_dim": 16, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "sliding_attention", "full_attention"], "load_balance_coeff": 0.001,
			"max_position_embeddings": 131072, "model_type": "afmoe", "moe_intermediate_size": 32, "mup_enabled": true,
			"n_group": 1, "num_attention_heads": 4, "num_dense_layers": 2, "num_expert_groups": 1, "num_experts": 11,
			"num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 2, "num_limited_groups": 1,
			"num_shared_experts": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000,
			"route_norm": true, "route_scale": 2.826, "score_func": "sigmoid", "sliding_window": 2048,
			"tie_word_embeddings": false, "topk_group": 1, "transformers_version": "4.57.1", "use_cache": true,
			"use_grouped_mm": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight                        | hd
			model.layers.{bid}.self_attn.gate_proj.weight                         | num_attention_heads*hd, hidden_size
			model.layers.{bid}.{pre,post}_mlp_layernorm.weight                    | hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight                          | intermediate_size, hidden_size | if bid < num_dense_layers
			model.layers.{bid}.mlp.down_proj.weight                               | hidden_size, intermediate_size | if bid < num_dense_layers
			model.layers.{bid}.mlp.router.gate.weight                             | num_experts, hidden_size       | if bid >= num_dense_layers
			model.layers.{bid}.mlp.expert_bias                                    | num_experts | as F32           | if bid >= num_dense_layers
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight           | moe_intermediate_size, hidden_size | if bid >= num_dense_layers
			model.layers.{bid}.mlp.shared_experts.down_proj.weight                | hidden_size, moe_intermediate_size | if bid >= num_dense_layers
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight            | moe_intermediate_size, hidden_size | if bid >= num_dense_layers
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight                 | hidden_size, moe_intermediate_size | if bid >= num_dense_layers
			`,
	})
	add(Spec{
		Name:      "nanbeige",
		Tokenizer: "spm",
		Config: `{"architectures": ["NanbeigeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1, "eos_token_id": 2, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 262144, "mlp_bias": false,
			"model_type": "nanbeige", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_loops": 2, "pad_token_id": 0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 70000000,
			"skip_loop_final_norm": true, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true,
			"vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "once", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"num_loops": null, "skip_loop_final_norm": null}`},
		},
	})
}
