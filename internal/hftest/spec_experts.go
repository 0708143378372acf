package hftest

// Models with experts whose families have no file of their own.

func init() {
	add(Spec{
		Name:      "glm4_moe",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4MoeForCausalLM"], "attention_bias": true, "attention_dropout": 0.0, "eos_token_id": [1000, 1007, 1009], "first_k_dense_replace": 1,
			"head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
			"model_type": "glm4_moe", "moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_nextn_predict_layers": 1,
			"pad_token_id": $pad, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 1000000, "routed_scaling_factor": 1.0,
			"tie_word_embeddings": false, "topk_group": 1, "torch_dtype": "bfloat16", "transformers_version": "4.54.0", "use_cache": true, "use_qk_norm": false,
			"vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers + opt(num_nextn_predict_layers)
			xid = n_routed_experts
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.norm.weight                                           | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                  | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight              | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.q_proj.bias                    | num_attention_heads*head_dim | if opt(attention_bias)
			model.layers.{bid}.self_attn.{k,v}_proj.bias                | num_key_value_heads*head_dim | if opt(attention_bias)
			model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.self_attn.{q,k}_norm.weight              | head_dim                     | if opt(use_qk_norm)
			model.layers.{bid}.mlp.gate.e_score_correction_bias         | n_routed_experts             | if bid >= first_k_dense_replace | as F32
			model.layers.{bid}.eh_proj.weight                           | hidden_size, 2*hidden_size   | if bid >= num_hidden_layers
			model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight    | hidden_size                  | if bid >= num_hidden_layers
			model.layers.{bid}.{embed_tokens,shared_head.head}.weight   | vocab_size, hidden_size      | if bid >= num_hidden_layers && !opt(shared_nextn)
			` + deepseekExperts,
		Variants: []Variant{
			{Name: "norms", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"use_qk_norm": true, "attention_bias": false, "n_routed_experts": 11, "shared_nextn": true}`},
			{Name: "no-mtp", Seed: 4, Out: "bf16", Set: `{"num_nextn_predict_layers": null, "n_shared_experts": 2, "rope_theta": null, "partial_rotary_factor": null}`},
		},
	})
	add(Spec{
		Name:      "granitemoeshared",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteMoeSharedForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.015625,
			"bos_token_id": 1000, "embedding_multiplier": 12.0, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 32, "logits_scaling": 8.0, "max_position_embeddings": 4096, "model_type": "granitemoeshared", "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 4, "output_router_logits": false,
			"pad_token_id": 1000, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.001,
			"shared_intermediate_size": 96, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.block_sparse_moe.input_linear.weight  | num_local_experts, 2*intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.output_linear.weight | num_local_experts, hidden_size, intermediate_size
			model.layers.{bid}.block_sparse_moe.router.layer.weight  | num_local_experts, hidden_size
			model.layers.{bid}.shared_mlp.input_linear.weight        | 2*shared_intermediate_size, hidden_size | if opt(shared_intermediate_size)
			model.layers.{bid}.shared_mlp.output_linear.weight       | hidden_size, shared_intermediate_size   | if opt(shared_intermediate_size)
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Out: "auto", Set: `{"logits_scaling": null, "residual_multiplier": 0, "shared_intermediate_size": 0}`}},
	})
	add(Spec{
		Name:      "olmo3",
		Tokenizer: "bpe:olmo2",
		Config: `{"architectures": ["Olmo3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96,
			"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"], "max_position_embeddings": 65536,
			"model_type": "olmo3", "num_attention_heads": 4, "num_hidden_layers": 5, "num_key_value_heads": 4, "pad_token_id": 1001, "rms_norm_eps": 1e-06,
			"rope_scaling": {"attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0, "original_max_position_embeddings": 8192,
				"rope_type": "yarn"},
			"rope_theta": 500000, "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.57.0", "use_cache": false,
			"vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers
			model.embed_tokens.weight                                            | vocab_size, hidden_size
			model.norm.weight                                                    | hidden_size
			model.layers.{bid}.{post_attention,post_feedforward}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.{q,k,v,o}_proj.weight                   | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q,k}_norm.weight                       | hidden_size
			` + llamaMLP,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"layer_types": null, "sliding_window": null, "rope_scaling": null}`}},
	})
}
