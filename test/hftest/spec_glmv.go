package hftest

import "strings"

// The language models of GLM's and LG's vision models, and Solar Open.
func init() {
	glmTokens := `"image_end_token_id": 1004, "image_start_token_id": 1003, "image_token_id": 1001, "video_end_token_id": 1006, "video_start_token_id": 1005,
		"video_token_id": 1002`
	vision := `
		model.visual.patch_embed.proj.weight | 32, 3, 2, 4, 4
		model.visual.merger.proj.weight      | 32, 32
		`
	visionConfig := func(typ string) string {
		return `"vision_config": {"attention_bias": false, "depth": 2, "hidden_act": "silu", "hidden_size": 32, "image_size": 28, "in_channels": 3,
			"intermediate_size": 64, "model_type": "` + typ + `", "num_heads": 2, "out_hidden_size": 64, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2}`
	}
	nextn := `
		LAYER.eh_proj.weight                        | hidden_size, 2*hidden_size
		LAYER.{enorm,hnorm,shared_head.norm}.weight | hidden_size
		LAYER.{embed_tokens,shared_head.head}.weight | vocab_size, hidden_size
		`
	glm4Layer := `
		LAYER.{input,post_attention,post_self_attn,post_mlp}_layernorm.weight | hidden_size
		LAYER.self_attn.q_proj.weight          | num_attention_heads*hd, hidden_size
		LAYER.self_attn.{k,v}_proj.weight      | num_key_value_heads*hd, hidden_size
		LAYER.self_attn.q_proj.bias            | num_attention_heads*hd | if opt(attention_bias)
		LAYER.self_attn.{k,v}_proj.bias        | num_key_value_heads*hd | if opt(attention_bias)
		LAYER.self_attn.o_proj.weight          | hidden_size, num_attention_heads*hd
		LAYER.mlp.gate_up_proj.weight          | 2*intermediate_size, hidden_size
		LAYER.mlp.down_proj.weight             | hidden_size, intermediate_size
		`
	glm4 := func(layer string) string {
		return `
		bid = num_hidden_layers
		hd  = opt(head_dim) || hidden_size / num_attention_heads
		lm_head.weight                         | vocab_size, hidden_size | if !opt(tie_word_embeddings)
		model.language_model.embed_tokens.weight | vocab_size, hidden_size
		model.language_model.norm.weight       | hidden_size
		` + strings.ReplaceAll(layer, "LAYER", "model.language_model.layers.{bid}")
	}
	add(Spec{
		Name:      "glm4v",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4vForConditionalGeneration"], "model_type": "glm4v", "tie_word_embeddings": false, "transformers_version": "4.57.1", ` + glmTokens + `, ` + visionConfig("glm4v") + `,
			"text_config": {"attention_bias": true, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": [1000, 1007, 1009], "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 65536, "model_type": "glm4v_text", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1000, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05,
			"rope_scaling": {"mrope_section": [1, 1, 2], "rope_type": "default"}, "rope_theta": 500000, "use_cache": true, "vocab_size": 1024}}`,
		Tensors: glm4(glm4Layer) + vision,
		Variants: []Variant{
			{Name: "no-sections", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"attention_bias": false, "rope_scaling": null, "head_dim": 32}}`},
			{Name: "whole-heads", Seed: 4, Out: "bf16",
				Set: `{"text_config": {"partial_rotary_factor": 1.0, "head_dim": 32,
					"rope_scaling": {"mrope_section": [4, 6, 6]}}}`},
		},
	})
	add(Spec{
		Name:      "glm_ocr",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["GlmOcrForConditionalGeneration"], "model_type": "glm_ocr", "tie_word_embeddings": false, "transformers_version": "5.0.1dev0", ` + glmTokens + `, ` + visionConfig("glm_ocr_vision") + `,
			"text_config": {"attention_bias": false, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": [1000, 1007], "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "glm_ocr_text", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "num_nextn_predict_layers": 1, "pad_token_id": 1000, "rms_norm_eps": 1e-05,
			"rope_parameters": {"mrope_section": [4, 6, 6], "partial_rotary_factor": 1.0, "rope_theta": 10000, "rope_type": "default"}, "tie_word_embeddings": false, "use_cache": true, "vocab_size": 1024}}`,
		Tensors: glm4(glm4Layer) + strings.ReplaceAll(where("opt(num_nextn_predict_layers)", glm4Layer+nextn), "LAYER",
			"model.language_model.layers.2") + vision,
		Variants: []Variant{
			{Name: "none", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"num_nextn_predict_layers": 0}}`},
		},
	})
	moe := func(layer string) string {
		return `
		bid = num_hidden_layers + opt(num_nextn_predict_layers)
		lm_head.weight                         | vocab_size, hidden_size | if !opt(tie_word_embeddings)
		MODEL.embed_tokens.weight              | vocab_size, hidden_size
		MODEL.norm.weight                      | hidden_size
		MODEL.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
		MODEL.layers.{bid}.self_attn.q_proj.weight         | num_attention_heads*head_dim, hidden_size
		MODEL.layers.{bid}.self_attn.{k,v}_proj.weight     | num_key_value_heads*head_dim, hidden_size
		MODEL.layers.{bid}.self_attn.q_proj.bias           | num_attention_heads*head_dim | if opt(attention_bias)
		MODEL.layers.{bid}.self_attn.{k,v}_proj.bias       | num_key_value_heads*head_dim | if opt(attention_bias)
		MODEL.layers.{bid}.self_attn.o_proj.weight         | hidden_size, num_attention_heads*head_dim
		MODEL.layers.{bid}.self_attn.{q,k}_norm.weight     | head_dim          | if opt(use_qk_norm)
		MODEL.layers.{bid}.mlp.gate.e_score_correction_bias | n_routed_experts | if bid >= first_k_dense_replace | as F32
		` + strings.ReplaceAll(deepseekExperts+where("bid >= num_hidden_layers", strings.ReplaceAll(nextn, "LAYER", "model.layers.{bid}")), "model.layers", "MODEL.layers")
	}
	add(Spec{
		Name:      "glm4v_moe",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4vMoeForConditionalGeneration"], "model_type": "glm4v_moe", "tie_word_embeddings": false, "transformers_version": "4.57.1", ` + glmTokens + `, ` + visionConfig("glm4v_moe") + `,
			"text_config": {"attention_bias": true, "attention_dropout": 0.0, "dtype": "bfloat16", "eos_token_id": [1000, 1007, 1009], "first_k_dense_replace": 1, "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "glm4v_moe_text",
			"moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1000, "partial_rotary_factor": 0.5, "rms_norm_eps": 1e-05,
			"rope_scaling": {"mrope_section": [2, 3, 3], "rope_type": "default"}, "rope_theta": 500000, "routed_scaling_factor": 1.0, "topk_group": 1, "use_cache": true,
			"use_qk_norm": false, "vocab_size": 1024}}`,
		Tensors: strings.ReplaceAll(moe(""), "MODEL", "model.language_model") + vision,
		Variants: []Variant{
			{Name: "norms", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"use_qk_norm": true, "attention_bias": false, "n_routed_experts": 11,
					"num_nextn_predict_layers": 1}}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"},
				Set: `{"text_config": {"num_nextn_predict_layers": 1}}`},
		},
	})
	add(Spec{
		Name:        "solar_open",
		Tokenizer:   "bpe:gpt-4o",
		AddedTokens: []string{"<unk>", "<|im:end|>"},
		Config: `{"architectures": ["SolarOpenForCausalLM"], "model_type": "solar_open", "attention_bias": false,
			"attention_dropout": 0.0, "bos_token_id": 1000, "dtype": "bfloat16", "eos_token_id": 1001,
			"first_k_dense_replace": 0, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
			"moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 1,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "pad_token_id": 1001, "partial_rotary_factor": 1.0, "rms_norm_eps": 1e-05,
			"rope_scaling": {"factor": 2.0, "original_max_position_embeddings": 65536, "type": "yarn"},
			"rope_theta": 1000000, "routed_scaling_factor": 1.0, "tie_word_embeddings": false, "topk_group": 1,
			"transformers_version": "4.57.1", "use_cache": true, "use_qk_norm": false, "vocab_size": $vocab}`,
		Tensors: strings.ReplaceAll(moe(""), "MODEL", "model"),
		Variants: []Variant{
			{Name: "plain-rope", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"rope_scaling": null, "num_nextn_predict_layers": 1, "first_k_dense_replace": 1}`},
		},
	})
	exaone := func(layer string) string {
		return strings.ReplaceAll(`
		LAYER.self_attn.q_proj.weight          | num_attention_heads*head_dim, hidden_size
		LAYER.self_attn.{k,v}_proj.weight      | num_key_value_heads*head_dim, hidden_size
		LAYER.self_attn.o_proj.weight          | hidden_size, num_attention_heads*head_dim
		LAYER.self_attn.{q,k}_norm.weight      | head_dim
		LAYER.mlp.{gate,up}_proj.weight        | intermediate_size, hidden_size
		LAYER.mlp.down_proj.weight             | hidden_size, intermediate_size
		LAYER.post_{attention,feedforward}_layernorm.weight | hidden_size
		`, "LAYER", layer)
	}
	add(Spec{
		Name:      "exaone4_5",
		Tokenizer: "bpe:exaone",
		Config: `{"architectures": ["Exaone4_5_ForConditionalGeneration"], "model_type": "exaone4_5",
			"image_token_id": 67, "video_token_id": 68, "tie_word_embeddings": false,
			"transformers_version": "5.3.0.dev0", "vision_config": {"depth": 2, "fullatt_block_indexes": [1],
			"hidden_act": "silu", "hidden_size": 32, "in_channels": 3, "intermediate_size": 64,
			"model_type": "exaone4_5_vision", "num_heads": 4, "num_key_value_heads": 2, "out_hidden_size": 64,
			"patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "window_size": 112},
			"text_config": {"attention_dropout": 0.0, "bos_token_id": 1001, "dtype": "bfloat16", "eos_token_id": 1002,
			"head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
			"max_position_embeddings": 262144, "model_type": "exaone4", "mtp_loss_scaling_factor": 0.05,
			"mtp_share_layers": true, "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
			"num_nextn_predict_layers": 1, "pad_token_id": 1000, "rms_norm_eps": 1e-05,
			"rope_parameters": {"factor": 16.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
			"original_max_position_embeddings": 8192, "rope_theta": 1000000, "rope_type": "llama3"},
			"sliding_window": 4096, "sliding_window_pattern": "LLLG", "tie_word_embeddings": false, "use_cache": true,
			"vocab_size": 1024}}`,
		Tensors: `
			bid = num_hidden_layers
			lm_head.weight                           | vocab_size, hidden_size
			model.language_model.embed_tokens.weight | vocab_size, hidden_size
			model.language_model.norm.weight         | hidden_size
			mtp.fc.weight                            | hidden_size, 2*hidden_size
			mtp.{norm,pre_fc_norm_embedding,pre_fc_norm_hidden}.weight | hidden_size
			` + exaone("model.language_model.layers.{bid}") + exaone("mtp.layers.0") + vision,
		Variants: []Variant{
			{Name: "none", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"num_nextn_predict_layers": 0, "mtp_share_layers": null}}`},
		},
	})
}
