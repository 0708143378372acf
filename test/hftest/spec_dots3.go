package hftest

// dots3-note: MLA layers with full attention and with a sliding window, which differ in number and size of heads.
func init() {
	add(Spec{
		Name:        "dots3note",
		Tokenizer:   "bpe:qwen2",
		AddedTokens: []string{"<|endofassistant|>"},
		Config: `{"architectures": ["Dots3NoteForCausalLM"], "apply_mla_qkv_lora_rescale": true,
			"attention_bias": false, "attention_dropout": 0.0, "attention_gate_type": "headwise",
			"auto_map": {"AutoConfig": "configuration_dots3_note.Dots3NoteConfig"}, "bos_token_id": null,
			"dtype": "bfloat16", "eos_token_id": 1002, "ep_size": 1, "final_norm": "RMSNorm",
			"first_k_dense_replace": 1, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "index_head_dim": 128,
			"index_n_heads": 2, "index_topk": 64, "initializer_range": 0.006, "intermediate_size": 96,
			"k_rope_only_layernorm": true, "kv_lora_rank": 32, "layer_types": ["full_attention", "full_attention",
			"sliding_attention", "sliding_attention"], "max_position_embeddings": 524288, "model_type": "dots3_note",
			"moe_gating_fp32": false, "moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 1,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "normalization": "RMSNorm",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 4,
			"num_nextn_predict_layers": 1, "q_lora_rank": 48, "qk_layernorm": true, "qk_nope_head_dim": 16,
			"qk_rope_head_dim": 16, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 80000000.0,
			"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "sliding_window": 512, "sliding_window_size": 513,
			"swa_attention_gate_type": "headwise", "swa_head_dim": 48, "swa_kv_lora_rank": 64,
			"swa_num_attention_heads": 2, "swa_num_key_value_heads": 2, "swa_q_lora_rank": 48,
			"swa_qk_nope_head_dim": 32, "swa_qk_rope_head_dim": 16, "swa_rope_theta": 50000.0, "swa_v_head_dim": 32,
			"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "transformers_version": "4.57.1",
			"use_cache": true, "use_dsa": true, "use_dynamic_rsf": false, "use_sliding_window": true, "v_head_dim": 32,
			"vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers + opt(num_nextn_predict_layers)
			n   = num_hidden_layers
			xid = n_routed_experts
			{lm_head,model.embed_tokens}.weight                       | vocab_size, hidden_size
			model.norm.weight                                         | hidden_size
			vision_encoder.patch_embed.norm.weight                    | hidden_size
			audio_encoder.dots_encoder.speech_encoder.layer_norm.weight | hidden_size
			model.mtp.embed_tokens.weight                             | vocab_size, hidden_size    | if opt(num_nextn_predict_layers)
			model.layers.{bid}.eh_proj.weight                         | hidden_size, 2*hidden_size | if bid >= n
			model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight  | hidden_size                | if bid >= n
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.q_a_proj.weight              | q_lora_rank, hidden_size
			model.layers.{bid}.self_attn.q_a_layernorm.weight         | q_lora_rank
			model.layers.{bid}.self_attn.k_rope_only_layernorm.weight | qk_rope_head_dim
			model.layers.{bid}.self_attn.q_b_proj.weight              | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), q_lora_rank | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight    | kv_lora_rank+qk_rope_head_dim, hidden_size                           | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.kv_a_layernorm.weight        | kv_lora_rank                                                         | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.kv_b_proj.weight             | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank      | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.o_proj.weight                | hidden_size, num_attention_heads*v_head_dim                          | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.g_proj.weight                | num_attention_heads, hidden_size                                     | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.indexer.k_norm.{weight,bias} | index_head_dim | as F32                                              | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.indexer.weights_proj.weight  | index_n_heads, hidden_size                                           | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.indexer.wk.weight            | index_head_dim, hidden_size                                          | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.indexer.wq_b.weight          | index_n_heads*index_head_dim, q_lora_rank                            | if bid < n && layer_types[bid] == "full_attention"
			model.layers.{bid}.self_attn.q_b_proj.weight              | swa_num_attention_heads*(swa_qk_nope_head_dim+swa_qk_rope_head_dim), swa_q_lora_rank | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight    | swa_kv_lora_rank+swa_qk_rope_head_dim, hidden_size                   | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.self_attn.kv_a_layernorm.weight        | swa_kv_lora_rank                                                     | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.self_attn.kv_b_proj.weight             | swa_num_attention_heads*(swa_qk_nope_head_dim+swa_v_head_dim), swa_kv_lora_rank | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.self_attn.o_proj.weight                | hidden_size, swa_num_attention_heads*swa_v_head_dim                  | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.self_attn.g_proj.weight                | swa_num_attention_heads, hidden_size                                 | if bid >= n || layer_types[bid] != "full_attention"
			model.layers.{bid}.mlp.{gate,up}_proj.weight              | intermediate_size, hidden_size    | if bid < first_k_dense_replace || bid >= n
			model.layers.{bid}.mlp.down_proj.weight                   | hidden_size, intermediate_size    | if bid < first_k_dense_replace || bid >= n
			model.layers.{bid}.mlp.gate.weight                        | n_routed_experts, hidden_size     | if bid >= first_k_dense_replace && bid < n
			model.layers.{bid}.mlp.gate.e_score_correction_bias       | n_routed_experts | as F32         | if bid >= first_k_dense_replace && bid < n
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace && bid < n
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace && bid < n
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace && bid < n
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, n_shared_experts*moe_intermediate_size | if bid >= first_k_dense_replace && bid < n
			`,
		Variants: []Variant{
			{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"architectures": ["Dots3NoteTextForCausalLM"],
				"num_nextn_predict_layers": null, "n_routed_experts": 11, "apply_mla_qkv_lora_rescale": false,
				"swa_rope_theta": null}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"},
				Set: `{"architectures": ["Dots3NoteForConditionalGeneration"]}`},
			{Name: "alone", Seed: 5, DType: "F16", Out: "f32", Flags: []string{"--no-nextn"}},
		},
	})
}
