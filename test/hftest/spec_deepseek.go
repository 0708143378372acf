package hftest

func init() {
	add(Spec{
		Name:      "deepseek_v2",
		Tokenizer: "bpe:deepseek-llm",
		Config: `{"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"aux_loss_alpha": 0.001, "bos_token_id": 1000, "eos_token_id": 1001, "ep_size": 1,
			"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 163840, "model_type": "deepseek_v2",
			"moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 4,
			"n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 4, "pretraining_tp": 1, "q_lora_rank": 48,
			"qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32,
			"beta_slow": 1, "factor": 40, "mscale": 0.707, "mscale_all_dim": 0.707,
			"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000.0,
			"routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false,
			"topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "v_head_dim": 16, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = n_routed_experts
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.layers.{bid}.self_attn.q_a_proj.weight                | q_lora_rank, hidden_size
			model.layers.{bid}.self_attn.q_a_layernorm.weight           | q_lora_rank
			model.layers.{bid}.self_attn.q_b_proj.weight                | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), q_lora_rank
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight      | kv_lora_rank+qk_rope_head_dim, hidden_size
			model.layers.{bid}.self_attn.kv_a_layernorm.weight          | kv_lora_rank
			model.layers.{bid}.self_attn.kv_b_proj.weight               | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank
			model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, num_attention_heads*v_head_dim
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size                                       | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size                                       | if bid < first_k_dense_replace
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.mlp.gate.weight                          | n_routed_experts, hidden_size                                        | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size                  | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, n_shared_experts*moe_intermediate_size                  | if bid >= first_k_dense_replace
			model.norm.weight                                           | hidden_size
			lm_head.weight                                              | vocab_size, hidden_size                                              | if !opt(tie_word_embeddings)
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size                                   | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size                                   | if bid >= first_k_dense_replace
			`,
	})
	add(Spec{
		Name:      "deepseek_v3",
		Tokenizer: "bpe:deepseek-v3",
		Config: `{"architectures": ["DeepseekV3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"aux_loss_alpha": 0.001, "bos_token_id": 1000, "eos_token_id": 1001, "ep_size": 1,
			"first_k_dense_replace": 1, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 163840, "model_type": "deepseek_v3",
			"moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 2, "n_routed_experts": 4,
			"n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 4, "num_nextn_predict_layers": 0, "pretraining_tp": 1,
			"q_lora_rank": 48, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
			"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000.0,
			"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false,
			"topk_group": 1, "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "v_head_dim": 16, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = n_routed_experts
			model.embed_tokens.weight                                   | vocab_size, hidden_size
			model.layers.{bid}.self_attn.q_a_proj.weight                | q_lora_rank, hidden_size
			model.layers.{bid}.self_attn.q_a_layernorm.weight           | q_lora_rank
			model.layers.{bid}.self_attn.q_b_proj.weight                | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), q_lora_rank
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight      | kv_lora_rank+qk_rope_head_dim, hidden_size
			model.layers.{bid}.self_attn.kv_a_layernorm.weight          | kv_lora_rank
			model.layers.{bid}.self_attn.kv_b_proj.weight               | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank
			model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, num_attention_heads*v_head_dim
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size                                       | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size                                       | if bid < first_k_dense_replace
			model.layers.{bid}.{input,post_attention}_layernorm.weight  | hidden_size
			model.layers.{bid}.mlp.gate.weight                          | n_routed_experts, hidden_size                                        | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.gate.e_score_correction_bias         | n_routed_experts                                                     | if bid >= first_k_dense_replace | as F32
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | moe_intermediate_size, hidden_size                                   | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, moe_intermediate_size                                   | if bid >= first_k_dense_replace
			model.norm.weight                                           | hidden_size
			lm_head.weight                                              | vocab_size, hidden_size                                              | if !opt(tie_word_embeddings) || opt(head_too)
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size                                   | if bid >= first_k_dense_replace
			model.layers.3.embed_tokens.weight                          | vocab_size, hidden_size                                              | if opt(num_nextn_predict_layers)
			model.layers.3.{enorm,hnorm}.weight                         | hidden_size                                                          | if opt(num_nextn_predict_layers)
			model.layers.3.eh_proj.weight                               | hidden_size, 2*hidden_size                                           | if opt(num_nextn_predict_layers)
			model.layers.3.mlp.experts.{xid}.up_proj.weight             | moe_intermediate_size, hidden_size                                   | if opt(num_nextn_predict_layers)
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size                                   | if bid >= first_k_dense_replace
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"tie_word_embeddings": true, "head_too": true, "n_group": 1, "n_routed_experts": 11,
					"num_nextn_predict_layers": null}`},
			{Name: "mtp", Seed: 4, Out: "bf16", Set: `{"num_nextn_predict_layers": 1, "rope_scaling": null,
				"rope_theta": null, "routed_scaling_factor": null, "norm_topk_prob": null, "topk_group": null,
				"n_group": null, "n_routed_experts": 16}`},
		},
	})
	add(Spec{
		Name:      "deepseek",
		Tokenizer: "spm",
		Config: `{"architectures": ["DeepseekForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"aux_loss_alpha": 0.001, "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekConfig"},
			"bos_token_id": $bos, "eos_token_id": $eos, "first_k_dense_replace": 1, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 160, "max_position_embeddings": 4096,
			"model_type": "deepseek", "moe_intermediate_size": 32, "moe_layer_freq": 1, "n_routed_experts": 4,
			"n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 4, "pretraining_tp": 1, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 10000, "scoring_func": "softmax", "seq_aux": true,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.36.0",
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + deepseekExperts,
		Variants: []Variant{{Name: "grouped", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"num_key_value_heads": 2, "n_routed_experts": 11, "rope_scaling": {"type": "linear", "factor": 2.0}}`}},
	})
	add(Spec{
		Name:      "deepseek-v2-lite",
		NoLoad:    "the runtime recognizes this model by its 27 layers; the made-up one has fewer",
		Tokenizer: "bpe:deepseek-llm",
		Config: `{"architectures": ["DeepseekV2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"aux_loss_alpha": 0.001, "auto_map": {"AutoConfig": "configuration_deepseek.DeepseekV2Config"},
			"bos_token_id": $bos, "eos_token_id": $eos, "first_k_dense_replace": 1, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 160, "kv_lora_rank": 64,
			"max_position_embeddings": 163840, "model_type": "deepseek_v2", "moe_intermediate_size": 32,
			"moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 2, "norm_topk_prob": false,
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4,
			"pretraining_tp": 1, "q_lora_rank": null, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16,
			"rms_norm_eps": 1e-06, "rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 0.707,
			"mscale_all_dim": 0.707, "original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000,
			"routed_scaling_factor": 1.0, "scoring_func": "softmax", "seq_aux": true, "tie_word_embeddings": false,
			"topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16", "transformers_version": "4.33.1",
			"use_cache": true, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: deepseekMLA + deepseekExperts,
		Variants: []Variant{{Name: "large", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"q_lora_rank": 96, "topk_method": "group_limited_greedy", "routed_scaling_factor": 16.0,
				"n_routed_experts": 11}`}},
	})
}

// deepseekMLA is llamaAttention with compressed keys and values (MLA).
const deepseekMLA = `
	bid = num_hidden_layers
	lm_head.weight                                            | vocab_size, hidden_size | if !opt(tie_word_embeddings)
	model.embed_tokens.weight                                 | vocab_size, hidden_size
	model.norm.weight                                         | hidden_size
	model.layers.{bid}.input_layernorm.weight                 | hidden_size
	model.layers.{bid}.post_attention_layernorm.weight        | hidden_size
	model.layers.{bid}.self_attn.q_proj.weight                | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), hidden_size | if !opt(q_lora_rank)
	model.layers.{bid}.self_attn.q_a_proj.weight              | q_lora_rank, hidden_size | if opt(q_lora_rank)
	model.layers.{bid}.self_attn.q_a_layernorm.weight         | q_lora_rank              | if opt(q_lora_rank)
	model.layers.{bid}.self_attn.q_b_proj.weight              | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), q_lora_rank | if opt(q_lora_rank)
	model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight    | kv_lora_rank+qk_rope_head_dim, hidden_size
	model.layers.{bid}.self_attn.kv_a_layernorm.weight        | kv_lora_rank
	model.layers.{bid}.self_attn.kv_b_proj.weight             | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank
	model.layers.{bid}.self_attn.o_proj.weight                | hidden_size, num_attention_heads*v_head_dim
`

// deepseekExperts are the FFNs: dense ones first, then MoE ones.
const deepseekExperts = `
	xid = n_routed_experts
	model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size                      | if bid < first_k_dense_replace
	model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size                      | if bid < first_k_dense_replace
	model.layers.{bid}.mlp.gate.weight                          | n_routed_experts, hidden_size                       | if bid >= first_k_dense_replace
	model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size                  | if bid >= first_k_dense_replace
	model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size                  | if bid >= first_k_dense_replace
	model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
	model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, n_shared_experts*moe_intermediate_size | if bid >= first_k_dense_replace
`
