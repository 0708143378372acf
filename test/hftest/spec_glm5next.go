package hftest

func init() {
	add(Spec{
		Name:      "glm5_next",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm5NextForConditionalGeneration"], "dtype": "bfloat16", "image_end_token_id": 8,
			"image_start_token_id": 7, "image_token_id": 9, "model_type": "glm5_next",
			"text_config": {"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": null,
			"dtype": "bfloat16", "eos_token_id": [$eos, 1007], "first_k_dense_replace": 1, "hc_eps": 1e-06,
			"hc_mult": 4, "hc_sinkhorn_iters": 20, "head_dim": 0, "hidden_act": "silu", "hidden_size": 64,
			"index_head_dim": 32, "index_kpool": 4, "index_kpool_always_select_tail": true,
			"index_kpool_compress": true, "index_n_heads": 2, "index_share_for_mtp_iteration": true, "index_topk": 64,
			"indexer_rope_interleave": true, "indexer_types": ["full", "full", "full", "full"],
			"initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32, "layer_types": ["linear_attention",
			"linear_attention", "deepseek_sparse_attention", "linear_attention"],
			"linear_attn_config": {"full_attn_layers": [2], "gate_lower_bound": -5.0, "head_dim": 32, "kda_layers": [0,
			1, 3], "num_heads": 4, "short_conv_kernel_size": 4}, "max_position_embeddings": 202752, "mhc": true,
			"mla_use_nope": true, "mlp_layer_types": ["dense", "sparse", "sparse", "sparse"],
			"model_type": "glm5_next_text", "moe_intermediate_size": 32, "moe_router_dtype": "float32", "n_group": 1,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 4, "num_nextn_predict_layers": 1,
			"pad_token_id": $pad, "q_lora_rank": 32, "qk_head_dim": 32, "qk_nope_head_dim": 32, "qk_rope_head_dim": 0,
			"rms_norm_eps": 1e-05, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "swiglu_limit": 7.0,
			"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "use_cache": true,
			"v_head_dim": 32, "vocab_size": $vocab}, "tie_word_embeddings": false, "transformers_version": "5.9.0",
			"video_token_id": 6, "vision_config": {"model_type": "glm5_next_vision", "hidden_size": 32}}`,
		Tensors: `
			bid = num_hidden_layers + num_nextn_predict_layers
			xid = n_routed_experts
			p   = linear_attn_config.num_heads*linear_attn_config.head_dim
			mix = (2+hc_mult)*hc_mult
			model.language_model.embed_tokens.weight                                  | vocab_size, hidden_size
			lm_head.weight                                                            | vocab_size, hidden_size
			model.language_model.norm.weight                                          | hidden_size
			model.visual.patch_embed.proj.weight                                      | 32, 48
			model.language_model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.language_model.layers.{bid}.hc_{attn,ffn}_fn                        | mix, hc_mult*hidden_size | if bid < num_hidden_layers
			model.language_model.layers.{bid}.hc_{attn,ffn}_base                      | mix | if bid < num_hidden_layers | as F32
			model.language_model.layers.{bid}.hc_{attn,ffn}_scale                     | 3 | if bid < num_hidden_layers | as F32
			model.language_model.layers.{bid}.self_attn.{q,k,v}_proj.weight           | p, hidden_size                              | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.{q,k,v}_conv1d.weight         | p, 1, linear_attn_config.short_conv_kernel_size | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.{f_a,g_a}_proj.weight         | linear_attn_config.head_dim, hidden_size    | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.{f_b,g_b}_proj.weight         | p, linear_attn_config.head_dim              | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.b_proj.weight                 | num_attention_heads, hidden_size            | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.A_log                         | num_attention_heads                         | if bid < 2 || bid == 3 | fill log | as F32
			model.language_model.layers.{bid}.self_attn.dt_bias                       | p                                           | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.o_norm.weight                 | linear_attn_config.head_dim                 | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, p                              | if bid < 2 || bid == 3
			model.language_model.layers.{bid}.self_attn.q_a_proj.weight               | q_lora_rank, hidden_size                    | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.q_a_layernorm.weight          | q_lora_rank                                 | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.q_b_proj.weight               | num_attention_heads*qk_nope_head_dim, q_lora_rank | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight     | kv_lora_rank, hidden_size                   | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.kv_a_layernorm.weight         | kv_lora_rank                                | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.kv_b_proj.weight              | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, num_attention_heads*v_head_dim | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.k_norm.{weight,bias}  | index_head_dim                              | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.weights_proj.weight   | index_n_heads, hidden_size                  | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.wk.weight             | index_head_dim, hidden_size                 | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.wq_b.weight           | index_n_heads*index_head_dim, q_lora_rank   | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.index_kpool_compress_ape  | index_kpool, index_head_dim             | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.self_attn.indexer.index_kpool_compress_gate | index_head_dim, hidden_size             | if bid == 2 || bid == 4
			model.language_model.layers.{bid}.mlp.{gate,up}_proj.weight               | intermediate_size, hidden_size              | if bid == 0
			model.language_model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size              | if bid == 0
			model.language_model.layers.{bid}.mlp.gate.weight                         | n_routed_experts, hidden_size               | if bid > 0
			model.language_model.layers.{bid}.mlp.gate.e_score_correction_bias        | n_routed_experts                            | if bid > 0 | as F32
			model.language_model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size          | if bid > 0
			model.language_model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size          | if bid > 0
			model.language_model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size | if bid > 0
			model.language_model.layers.{bid}.mlp.shared_experts.down_proj.weight     | hidden_size, n_shared_experts*moe_intermediate_size | if bid > 0
			model.language_model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight   | hidden_size                                 | if bid == 4
			model.language_model.layers.{bid}.eh_proj.weight                          | hidden_size, 2*hidden_size                  | if bid == 4
			`,
		Variants: []Variant{
			{Name: "plain-only", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"num_nextn_predict_layers": 0, "n_routed_experts": 11, "swiglu_limit": null,
					"indexer_types": null}}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 6, Shards: 2, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
}
