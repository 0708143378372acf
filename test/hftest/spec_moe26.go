package hftest

import "strings"

func init() {
	attention := func(layer string) string {
		return strings.ReplaceAll(`
			LAYER.self_attn.q_proj.weight                 | num_attention_heads*head_dim, hidden_size
			LAYER.self_attn.{k,v}_proj.weight             | num_key_value_heads*head_dim, hidden_size
			LAYER.self_attn.o_proj.weight                 | hidden_size, num_attention_heads*head_dim
			LAYER.input_layernorm.weight                  | hidden_size
			`, "LAYER", layer)
	}
	// as North-Mini-Code-1.0; num_shared_experts as in command-a-plus
	add(Spec{
		Name:      "cohere2moe",
		Tokenizer: "bpe:command-r", AddedTokens: cohereTokens,
		Config: `{"architectures": ["Cohere2MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "cache_implementation": "hybrid", "dtype": "bfloat16", "eos_token_id": $eos,
			"expert_selection_fn": "sigmoid", "first_k_dense_replace": 1, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 32, "layer_norm_eps": 1e-05,
			"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "full_attention"],
			"logit_scale": 1.0, "max_position_embeddings": 131072, "mlp_layer_types": ["dense", "sparse", "sparse",
			"sparse"], "model_type": "cohere2_moe", "norm_topk_prob": false, "num_attention_heads": 4, "num_experts": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 2, "num_shared_experts": 0,
			"pad_token_id": $pad, "position_embedding_type": "rope_gptj", "prefix_dense_intermediate_size": 96,
			"prefix_dense_sliding_window_pattern": 1, "rms_norm_eps": 1e-06, "rope_theta": 50000, "rotary_pct": 1.0,
			"shared_expert_combination_strategy": "average", "sliding_window": 4096, "sliding_window_pattern": 4,
			"tie_word_embeddings": true, "transformers_version": "5.9.0", "use_cache": true,
			"use_embedding_sharing": true, "use_gated_activation": true, "use_parallel_block": true,
			"use_parallel_embedding": false, "use_qk_norm": false, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_experts
			shared = intermediate_size * num_shared_experts
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			` + attention("model.layers.{bid}") + `
			model.layers.{bid}.mlp.{gate,up}_proj.weight               | prefix_dense_intermediate_size, hidden_size | if bid < opt(first_k_dense_replace)
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, prefix_dense_intermediate_size | if bid < opt(first_k_dense_replace)
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size                    | if bid >= opt(first_k_dense_replace)
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | intermediate_size, hidden_size              | if bid >= opt(first_k_dense_replace)
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, intermediate_size              | if bid >= opt(first_k_dense_replace)
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | shared, hidden_size                        | if bid >= opt(first_k_dense_replace) && num_shared_experts > 0
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, shared                        | if bid >= opt(first_k_dense_replace) && num_shared_experts > 0
			nextn = opt(num_nextn_predict_layers)
			model.layers.4.eh_proj.weight                              | hidden_size, 2*hidden_size                  | if nextn > 0
			model.layers.4.{enorm,hnorm,shared_head.norm}.weight       | hidden_size                                 | if nextn > 0
			model.layers.4.input_layernorm.weight                      | hidden_size                                 | if nextn > 0
			model.layers.4.self_attn.q_proj.weight                     | num_attention_heads*head_dim, hidden_size   | if nextn > 0
			model.layers.4.self_attn.{k,v}_proj.weight                 | num_key_value_heads*head_dim, hidden_size   | if nextn > 0
			model.layers.4.self_attn.o_proj.weight                     | hidden_size, num_attention_heads*head_dim   | if nextn > 0
			model.layers.4.mlp.gate.weight                             | num_experts, hidden_size                    | if nextn > 0
			model.layers.4.mlp.experts.{xid}.{gate,up}_proj.weight     | intermediate_size, hidden_size              | if nextn > 0
			model.layers.4.mlp.experts.{xid}.down_proj.weight          | hidden_size, intermediate_size              | if nextn > 0
			`,
		Variants: []Variant{
			{Name: "shared", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_shared_experts": 2, "num_experts": 11, "rms_norm_eps": null,
					"expert_selection_fn": "softmax", "norm_topk_prob": true}`},
			{Name: "first-k", Seed: 4, Out: "bf16",
				Set: `{"layer_types": null, "mlp_layer_types": null, "first_k_dense_replace": 2,
					"shared_expert_combination_strategy": null}`},
			{Name: "all-sparse", Seed: 6, Out: "f16",
				Set: `{"first_k_dense_replace": 0, "mlp_layer_types": ["sparse", "sparse", "sparse", "sparse"],
					"prefix_dense_intermediate_size": null}`},
			{Name: "draft", Seed: 5, Out: "f32", Set: `{"num_nextn_predict_layers": 1}`},
		},
	})
	// as K-EXAONE-236B-A23B
	add(Spec{
		Name:      "exaone-moe",
		Tokenizer: "bpe:exaone",
		Config: `{"architectures": ["ExaoneMoEForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1001,
			"dtype": "bfloat16", "eos_token_id": 1002, "first_k_dense_replace": 1, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "sliding_attention", "full_attention"], "max_position_embeddings": 262144,
			"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"], "model_type": "exaone_moe",
			"moe_intermediate_size": 32, "mtp_loss_scaling_factor": 0.05, "mtp_share_layers": true, "n_group": 1,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "num_nextn_predict_layers": 1, "num_shared_experts": 1,
			"pad_token_id": 1000, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 1000000,
			"rope_type": "default"}, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "sliding_window": 128,
			"sliding_window_pattern": "LLLG", "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
			"transformers_version": "5.0.0.dev0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_experts
			shared = moe_intermediate_size * num_shared_experts
			lm_head.weight                                             | vocab_size, hidden_size
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			` + attention("model.layers.{bid}") + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight              | head_dim
			model.layers.{bid}.post_attention_layernorm.weight          | hidden_size
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.gate.weight                          | num_experts, hidden_size           | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.e_score_correction_bias              | num_experts | as F32               | if bid >= first_k_dense_replace && !opt(in_gate)
			model.layers.{bid}.mlp.gate.e_score_correction_bias         | num_experts | as F32               | if bid >= first_k_dense_replace && opt(in_gate)
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight  | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight       | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | shared, hidden_size                | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, shared                | if bid >= first_k_dense_replace
			nextn = opt(num_nextn_predict_layers)
			mtp.fc.weight                                               | hidden_size, 2*hidden_size         | if nextn > 0
			mtp.{norm,pre_fc_norm_embedding,pre_fc_norm_hidden}.weight  | hidden_size                        | if nextn > 0
			mtp.layers.0.{input,post_attention}_layernorm.weight        | hidden_size                        | if nextn > 0
			mtp.layers.0.self_attn.q_proj.weight                        | num_attention_heads*head_dim, hidden_size | if nextn > 0
			mtp.layers.0.self_attn.{k,v}_proj.weight                    | num_key_value_heads*head_dim, hidden_size | if nextn > 0
			mtp.layers.0.self_attn.o_proj.weight                        | hidden_size, num_attention_heads*head_dim | if nextn > 0
			mtp.layers.0.self_attn.{q,k}_norm.weight                    | head_dim                           | if nextn > 0
			mtp.layers.0.mlp.{gate,up}_proj.weight                      | intermediate_size, hidden_size     | if nextn > 0
			mtp.layers.0.mlp.down_proj.weight                           | hidden_size, intermediate_size     | if nextn > 0
			`,
		Variants: []Variant{
			{Name: "no-draft", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"architectures": ["ExaoneMoeForCausalLM"],
				"num_nextn_predict_layers": null, "mtp_share_layers": null, "mtp_loss_scaling_factor": null,
				"in_gate": true, "scoring_func": null, "topk_method": null}`},
			{Name: "few-keys", Seed: 4, Out: "bf16",
				Set: `{"layer_types": null, "mlp_layer_types": null, "sliding_window_pattern": null, "n_group": null,
					"topk_group": null}`},
		},
	})
	// as HunyuanOCR; the second variant as newer versions of transformers save it
	add(Spec{
		Name:      "hunyuan_vl",
		Tokenizer: "bpe:hunyuan-dense",
		Config: `{"add_classification_head": false, "architectures": ["HunYuanVLForConditionalGeneration"],
			"attention_bias": false, "attention_dropout": 0.1, "attention_head_dim": 32, "bos_token_id": 1000,
			"cla_share_factor": 2, "class_num": 0, "dense_list": [64, 0], "enable_lm_head_fp32": true,
			"eod_token_id": 2, "eos_token_id": 1001, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"image_end_token_id": 900, "image_newline_token_id": 901, "image_start_token_id": 902,
			"image_token_id": 903, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"mlp_bias": false, "model_type": "hunyuan_vl", "norm_type": "rms", "num_attention_heads": 4,
			"num_experts": 1, "num_hidden_layers": 2, "num_key_value_heads": 2, "org_vocab_size": 1024, "pad_id": 1002,
			"pad_token_id": -1, "rms_norm_eps": 1e-05, "rope_scaling": {"alpha": 1000.0, "beta_fast": 32,
			"beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "type": "xdrope", "xdrope_section": [4,
			4, 4, 4]}, "rope_theta": 10000.0, "routed_scaling_factor": 1.0, "sep_token_id": 0, "text_end_id": 8,
			"text_start_id": 7, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.1", "use_cache": true, "use_cla": false, "use_qk_norm": true,
			"vision_config": {"hidden_size": 64, "num_hidden_layers": 1, "patch_size": 16}, "vocab_size": 1024}`,
		Tensors: llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{query,key}_layernorm.weight | head_dim
			lm_head.weight                                            | vocab_size, hidden_size
			vit.embeddings.patch_embedding.weight                     | 64, 3, 16, 16
			vit.perceive.before_rms.weight                            | 64
			`,
		Variants: []Variant{
			{Name: "sections", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"tie_word_embeddings": false,
				"pad_token_id": 1002, "rope_scaling": null, "rope_parameters": {"alpha": 1000.0, "factor": 1.0,
				"mrope_section": [4, 4, 4, 4], "rope_theta": 10000.0, "rope_type": "dynamic"}}`},
			{Name: "one-axis", Seed: 4, Out: "bf16",
				Set: `{"rope_scaling": {"alpha": 1000.0, "type": "dynamic", "xdrope_section": null}}`},
		},
	})
	// as Muse-Glimmer-30B
	add(Spec{
		Name:      "muse-glimmer",
		Tokenizer: "bpe:llama3", AddedTokens: []string{"<|eot|>"},
		Config: `{"architectures": ["MuseGlimmerForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": 900,
			"model_type": "muse_glimmer", "out_hidden_size": 64, "projector_hidden_act": "gelu",
			"projector_hidden_size": 64, "text_config": {"attention_dropout": 0.0, "bos_token_id": $bos,
			"eos_token_id": $eos, "final_logit_softcapping": 20.0, "head_dim": 32, "hidden_activation": "silu",
			"hidden_size": 64, "intermediate_size": 96, "layer_rope_theta": [500000.0, 500000.0, 500000.0, 0.0],
			"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
			"max_position_embeddings": 131072, "model_type": "muse_glimmer_text", "num_attention_heads": 4,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "output_multiplier": 0.19611613513818404,
			"post_norm_eps": 1e-08, "qk_scale_factor": 3.87, "rms_norm_eps": 1e-05,
			"rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "sliding_window": 2048,
			"tie_word_embeddings": false, "use_cache": true, "vocab_size": $vocab}, "tie_word_embeddings": false,
			"transformers_version": "5.14.0", "video_token_id": 901, "vision_config": {"hidden_size": 64,
			"num_hidden_layers": 1, "patch_size": 14}}`,
		Tensors: `
			bid = num_hidden_layers
			lm_head.weight                                                                                             | vocab_size, hidden_size
			model.language_model.embed_tokens.weight                                                                   | vocab_size, hidden_size
			model.language_model.norm.weight                                                                           | hidden_size
			model.language_model.layers.{bid}.{input,post_attention,post_feedforward,pre_feedforward}_layernorm.weight | hidden_size
			model.language_model.layers.{bid}.self_attn.{q,gate}_proj.weight                                           | num_attention_heads*head_dim, hidden_size
			model.language_model.layers.{bid}.self_attn.{k,v}_proj.weight                                              | num_key_value_heads*head_dim, hidden_size
			model.language_model.layers.{bid}.self_attn.o_proj.weight                                                  | hidden_size, num_attention_heads*head_dim
			model.language_model.layers.{bid}.mlp.{gate,up}_proj.weight                                                | intermediate_size, hidden_size
			model.language_model.layers.{bid}.mlp.down_proj.weight                                                     | hidden_size, intermediate_size
			model.vision_tower.ln_pre.weight                                                                           | 64
			model.vision_{adapter.fc1,projection}.weight                                                               | 64, 64
			`,
		Variants: []Variant{
			{Name: "one-head", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"text_config": {"num_key_value_heads": 1,
				"layer_rope_theta": null, "qk_scale_factor": 2.5, "layer_types": ["full_attention", "sliding_attention",
				"sliding_attention", "full_attention"]}}`},
		},
	})
}
