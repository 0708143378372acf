package hftest

// Language models of vision models. A few tensors of the vision encoder are enough, since they are left out.

func init() {
	const vision = `
			visual.patch_embed.proj.weight           | vision_config.hidden_size, 3, 2, 14, 14
			visual.blocks.0.attn.qkv.{weight,bias}   | vision_config.hidden_size
			visual.merger.mlp.{0,2}.weight           | vision_config.hidden_size, vision_config.hidden_size
			`
	const bias = `
			model.layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			model.layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`
	add(Spec{
		Name:      "qwen2_vl",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2VLForConditionalGeneration"], "attention_dropout": 0.0, "bos_token_id": $pad,
			"eos_token_id": $eos, "vision_start_token_id": 1000, "vision_end_token_id": 1001, "vision_token_id": 1001,
			"image_token_id": 1002, "video_token_id": 1002, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"max_window_layers": 2, "model_type": "qwen2_vl", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.41.2",
			"use_cache": true, "use_sliding_window": false, "vision_config": {"depth": 1, "embed_dim": 32,
			"mlp_ratio": 4, "num_heads": 2, "in_chans": 3, "hidden_size": 64, "patch_size": 14, "spatial_merge_size": 2,
			"spatial_patch_size": 14, "temporal_patch_size": 2}, "rope_scaling": {"type": "mrope", "mrope_section": [2,
			3, 3]}, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + bias + vision,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"rms_norm_eps": null, "max_position_embeddings": null, "rope_theta": null}`}},
	})
	add(Spec{
		Name:      "qwen2_5_vl",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2_5_VLForConditionalGeneration"], "attention_dropout": 0.0,
			"bos_token_id": $pad, "eos_token_id": $eos, "vision_start_token_id": 1000, "vision_end_token_id": 1001,
			"vision_token_id": 1001, "image_token_id": 1002, "video_token_id": 1002, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 128000,
			"max_window_layers": 2, "model_type": "qwen2_5_vl", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.49.0", "use_cache": true,
			"use_sliding_window": false, "vision_config": {"depth": 1, "hidden_act": "silu", "hidden_size": 32,
			"intermediate_size": 64, "num_heads": 2, "in_chans": 3, "out_hidden_size": 64, "patch_size": 14,
			"spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112, "fullatt_block_indexes": [0],
			"tokens_per_second": 2, "temporal_patch_size": 2}, "rope_scaling": {"type": "mrope", "mrope_section": [2, 3,
			3]}, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP + bias + vision,
	})
	const vl3 = `"tie_word_embeddings": false, "transformers_version": "4.57.0.dev0", "video_token_id": 1002, "vision_end_token_id": 1001, "vision_start_token_id": 1000,
			"vision_config": {"deepstack_visual_indexes": [8, 16, 24], "depth": 1, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "in_channels": 3,
				"initializer_range": 0.02, "intermediate_size": 64, "model_type": "qwen3_vl", "num_heads": 2, "num_position_embeddings": 2304, "out_hidden_size": 64,
				"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}}`
	inner := func(table string) string { return prefixed("model.language_model.", bare(table)) }
	visionTensors := prefixed("model.", vision)
	add(Spec{
		Name:      "qwen3_vl",
		NoLoad:    "an assertion of the runtime fails on text alone",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3VLForConditionalGeneration"], "image_token_id": 1002, "model_type": "qwen3_vl",
			"text_config": {"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $pad, "dtype": "bfloat16", "eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu",
				"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 262144, "model_type": "qwen3_vl_text",
				"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
				"rope_scaling": {"mrope_interleaved": true, "mrope_section": [6, 5, 5], "rope_type": "default"}, "rope_theta": 5000000, "use_cache": true, "vocab_size": 1024}, ` + vl3,
		Tensors: llamaHead + inner(llamaAttention+llamaMLP+qkNorm) + visionTensors,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"tie_word_embeddings": true, "text_config": {"rope_theta": null, "rms_norm_eps": null},
				"vision_config": {"deepstack_visual_indexes": null}}`}},
	})
	add(Spec{
		Name:      "qwen3_vl_moe",
		NoLoad:    "an assertion of the runtime fails on text alone",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3VLMoeForConditionalGeneration"], "image_token_id": 1002, "model_type": "qwen3_vl_moe",
			"text_config": {"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $pad, "decoder_sparse_step": 1, "dtype": "bfloat16", "eos_token_id": $eos,
				"head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 262144,
				"mlp_only_layers": [], "model_type": "qwen3_vl_moe_text", "moe_intermediate_size": 32, "norm_topk_prob": true, "num_attention_heads": 4,
				"num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
				"rope_scaling": {"mrope_interleaved": true, "mrope_section": [6, 5, 5], "rope_type": "default"}, "rope_theta": 5000000, "use_cache": true, "vocab_size": 1024}, ` + vl3,
		Tensors: llamaHead + inner(llamaAttention+qkNorm+`
			model.layers.{bid}.mlp.gate.weight           | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.gate_up_proj  | num_experts, hidden_size, 2*moe_intermediate_size
			model.layers.{bid}.mlp.experts.down_proj     | num_experts, moe_intermediate_size, hidden_size
			`) + visionTensors,
	})
}
