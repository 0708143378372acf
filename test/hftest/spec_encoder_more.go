package hftest

import "strings"

func init() {
	const bid = `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			`
	depth := strings.Replace(bid, "num_hidden_layers", "depth", 1)
	const glm = `
			model.visual.patch_embed.proj.weight                      | w, 3, 2, 14, 14
			model.visual.patch_embed.proj.bias                        | w
			model.visual.blocks.{bid}.norm{1,2}.weight                | w
			model.visual.blocks.{bid}.attn.qkv.weight                 | 3*w, w
			model.visual.blocks.{bid}.attn.proj.weight                | w, w
			model.visual.post_layernorm.weight                        | w
			model.visual.downsample.weight                            | 64, w, 2, 2
			model.visual.downsample.bias                              | 64
			model.visual.merger.proj.weight                           | 64, 64
			model.visual.merger.post_projection_norm.{weight,bias}    | 64
			model.visual.merger.{gate,up}_proj.weight                 | 96, 64
			model.visual.merger.down_proj.weight                      | 64, 96
			`
	const preGLM = `"do_rescale": true, "image_processor_type": "Glm4vImageProcessor", "processor_class": "Glm4vProcessor", "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, ` + preCLIP
	add(Spec{
		Name:      "mm_glm4v",
		Encoder:   true,
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4vForConditionalGeneration"], "image_start_token_id": 1000, "image_end_token_id": 1001, "image_token_id": 1002, "model_type": "glm4v", ` +
			textOfType("glm4v_text") + `, "tie_word_embeddings": false, "transformers_version": "4.57.1",
			"vision_config": {"attention_bias": false, "attention_dropout": 0.0, "depth": 4, "hidden_act": "silu", "hidden_size": 32, "image_size": 56, "in_channels": 3,
				"initializer_range": 0.02, "intermediate_size": 96, "model_type": "glm4v", "num_heads": 2, "out_hidden_size": 64, "patch_size": 14, "rms_norm_eps": 1e-05,
				"spatial_merge_size": 2, "temporal_patch_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": `{"size": {"shortest_edge": 12544, "longest_edge": 9633792}, ` + preGLM + `}`},
		Tensors: depth + glm + `
			model.visual.post_conv_layernorm.weight                   | w
			model.visual.embeddings.position_embedding.weight         | 16, w
			model.visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | 64, w
			model.visual.blocks.{bid}.mlp.down_proj.weight            | w, 64
			` + textOf("model.language_model."),
	})
	const ocr = `
			model.visual.blocks.{bid}.attn.{q,k}_norm.weight          | 16
			model.visual.blocks.{bid}.attn.qkv.bias                   | 3*w
			model.visual.blocks.{bid}.attn.proj.bias                  | w
			model.visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | ff, w
			model.visual.blocks.{bid}.mlp.{gate,up}_proj.bias         | ff
			model.visual.blocks.{bid}.mlp.down_proj.weight            | w, ff
			model.visual.blocks.{bid}.mlp.down_proj.bias              | w
			`
	add(Spec{
		Name:      "mm_glm_ocr",
		Encoder:   true,
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["GlmOcrForConditionalGeneration"], "image_start_token_id": 1000, "image_end_token_id": 1001, "image_token_id": 1002, "model_type": "glm_ocr", ` +
			textOfType("glm_ocr_text") + `, "tie_word_embeddings": false, "transformers_version": "5.0.1dev0",
			"vision_config": {"attention_bias": true, "attention_dropout": 0.0, "depth": 4, "hidden_act": "silu", "hidden_size": 32, "image_size": 56, "in_channels": 3,
				"initializer_range": 0.02, "intermediate_size": 64, "model_type": "glm_ocr_vision", "num_heads": 2, "out_hidden_size": 64, "patch_size": 14, "rms_norm_eps": 1e-05,
				"spatial_merge_size": 2, "temporal_patch_size": 2}}`,
		Files:   map[string]string{"preprocessor_config.json": `{"size": {"shortest_edge": 12544, "longest_edge": 9633792}, ` + preGLM + `}`},
		Tensors: depth + glm + ocr + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_glm5_next",
		Encoder:   true,
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm5NextForConditionalGeneration"], "image_token_id": 1002, "model_type": "glm5_next", ` + textOfType("glm5_next_text") + `,
			"vision_config": {"attention_bias": true, "depth": 4, "hidden_act": "silu", "hidden_size": 32, "image_size": 56, "in_channels": 3, "intermediate_size": 64,
				"model_type": "glm5_next_vision", "num_heads": 2, "out_hidden_size": 64, "patch_size": 14, "rms_norm_eps": 1e-06, "spatial_merge_size": 2, "swiglu_limit": 7.0,
				"temporal_patch_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": `{"min_image_tokens": 16, "max_image_tokens": 4096, ` +
			preGLM + `}`},
		Tensors: depth + glm + ocr + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_exaone4_5",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Exaone4_5_ForConditionalGeneration"], "image_token_id": 1002, "model_type": "exaone4_5", ` + textOfType("exaone4_5_text") + `,
			"tie_word_embeddings": false, "vision_config": {"depth": 4, "fullatt_block_indexes": [1, 3], "hidden_act": "silu", "hidden_size": 64, "in_channels": 3, "initializer_range": 0.02,
				"intermediate_size": 96, "model_type": "exaone4_5_vision", "num_heads": 4, "num_key_value_heads": 2, "out_hidden_size": 64, "patch_size": 14,
				"spatial_merge_size": 2, "temporal_patch_size": 2, "tokens_per_second": 4, "window_size": 112}}`,
		Files: map[string]string{"preprocessor_config.json": `{"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, ` + preCLIP + `}`},
		Tensors: depth + `
			model.visual.patch_embed.proj.weight                      | w, 3, 2, 14, 14
			model.visual.blocks.{bid}.norm{1,2}.weight                | w
			model.visual.blocks.{bid}.attn.qkv.weight                 | 2*w, w
			model.visual.blocks.{bid}.attn.qkv.bias                   | 2*w
			model.visual.blocks.{bid}.attn.proj.weight                | w, w
			model.visual.blocks.{bid}.attn.proj.bias                  | w
			model.visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | ff, w
			model.visual.blocks.{bid}.mlp.{gate,up}_proj.bias         | ff
			model.visual.blocks.{bid}.mlp.down_proj.weight            | w, ff
			model.visual.blocks.{bid}.mlp.down_proj.bias              | w
			model.visual.merger.ln_q.weight                           | w
			model.visual.merger.mlp.0.weight                          | 4*w, 4*w
			model.visual.merger.mlp.0.bias                            | 4*w
			model.visual.merger.mlp.2.weight                          | 64, 4*w
			model.visual.merger.mlp.2.bias                            | 64
			` + textOf("model.language_model."),
	})
	const moon = `
			vision_tower.patch_embed.proj.weight                  | w, 3, 14, 14
			vision_tower.patch_embed.proj.bias                    | w
			vision_tower.patch_embed.pos_emb.weight               | 8, 8, w
			vision_tower.encoder.blocks.{bid}.norm{0,1}.{weight,bias} | w
			vision_tower.encoder.blocks.{bid}.wqkv.weight         | 3*w, w
			vision_tower.encoder.blocks.{bid}.wqkv.bias           | 3*w
			vision_tower.encoder.blocks.{bid}.wo.weight           | w, w
			vision_tower.encoder.blocks.{bid}.wo.bias             | w
			vision_tower.encoder.blocks.{bid}.mlp.fc0.weight      | ff, w
			vision_tower.encoder.blocks.{bid}.mlp.fc0.bias        | ff
			vision_tower.encoder.blocks.{bid}.mlp.fc1.weight      | w, ff
			vision_tower.encoder.blocks.{bid}.mlp.fc1.bias        | w
			vision_tower.encoder.final_layernorm.{weight,bias}    | w
			`
	add(Spec{
		Name:      "mm_kimi_vl",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["KimiVLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_kimi_vl.KimiVLConfig"}, "ignore_index": -100, "media_placeholder_token_id": 1002,
			"model_type": "kimi_vl", ` + textOfType("deepseek_v3") + `, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"vision_config": {"hidden_size": 32, "init_pos_emb_height": 8, "init_pos_emb_width": 8, "intermediate_size": 64, "merge_kernel_size": [2, 2], "model_type": "moonvit",
				"num_attention_heads": 2, "num_hidden_layers": 4, "patch_size": 14}}`,
		Files: map[string]string{"preprocessor_config.json": `{"auto_map": {}, "in_token_limit": 4096, "patch_size": 14, "num_pooled_tokens": 1024, "pad_input": true, ` + preSigLIP + `}`},
		Tensors: bid + moon + `
			multi_modal_projector.pre_norm.{weight,bias}          | w
			multi_modal_projector.linear_1.weight                 | 4*w, 4*w
			multi_modal_projector.linear_1.bias                   | 4*w
			multi_modal_projector.linear_2.weight                 | 64, 4*w
			multi_modal_projector.linear_2.bias                   | 64
			` + textOf("language_model.model."),
	})
	kimi := strings.NewReplacer("num_hidden", "vt_num_hidden", ".hidden_size", ".vt_hidden_size", ".intermediate", ".vt_intermediate").Replace(bid) + moon + `
			mm_projector.pre_norm.{weight,bias}          | w
			`
	kimiConfig := func(class string) string {
		return `{"architectures": ["` + class + `"], "media_placeholder_token_id": 1002, "model_type": "kimi_k25", ` + textOfType("kimi_k2") + `, "tie_word_embeddings": false,
			"vision_config": {"init_pos_emb_height": 8, "init_pos_emb_time": 4, "init_pos_emb_width": 8, "merge_kernel_size": [2, 2], "merge_type": "sd2_tpool", "mm_hidden_size": 32,
				"mm_projector_type": "patchmerger", "model_type": "kimi_k25", "patch_size": 14, "pos_emb_type": "divided_fixed", "projector_hidden_act": "gelu", "projector_ln_eps": 1e-05,
				"text_hidden_size": 64, "video_attn_type": "spatial_temporal", "vt_hidden_size": 64, "vt_intermediate_size": 96, "vt_num_attention_heads": 16,
				"vt_num_hidden_layers": 4}}`
	}
	preKimi := map[string]string{"preprocessor_config.json": `{"auto_map": {}, "media_proc_cfg": {"in_patch_limit": 4096, "patch_size": 14, ` + preSigLIP + `, "merge_kernel_size": 2,
			"fixed_output_tokens": null, "patch_limit_on_one_side": 512, "in_patch_limit_each_frame": 1024, "sample_fps": 2.0, "timestamp_mode": "hh:mm:ss.fff"}}`}
	add(Spec{
		Name:      "mm_kimi_k25",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config:    kimiConfig("KimiK25ForConditionalGeneration"),
		Files:     preKimi,
		Tensors: kimi + `
			mm_projector.proj.0.weight                   | 4*w, 4*w
			mm_projector.proj.0.bias                     | 4*w
			mm_projector.proj.2.weight                   | 64, 4*w
			mm_projector.proj.2.bias                     | 64
			` + textOf("language_model.model."),
	})
	add(Spec{
		Name:      "mm_glm5v",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config:    kimiConfig("Glm5vForConditionalGeneration"),
		Files:     preKimi,
		Tensors: kimi + `
			mm_projector.linear_1.weight                 | 4*w, 4*w
			mm_projector.linear_1.bias                   | 4*w
			mm_projector.linear_2.weight                 | 64, 4*w
			mm_projector.linear_2.bias                   | 64
			` + textOf("language_model.model."),
	})
	add(Spec{
		Name:      "mm_lfm2_vl",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Lfm2VlForConditionalGeneration"], "do_image_splitting": true, "downsample_factor": 2, "image_token_id": 1002, "model_type": "lfm2_vl", "projector_bias": true,
			"projector_hidden_act": "gelu", "projector_hidden_size": 96, "projector_use_layernorm": true, ` + textOfType("lfm2") + `, "torch_dtype": "bfloat16", "vision_feature_layer": -2,
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "intermediate_size": 64, "layer_norm_eps": 1e-06,
				"model_type": "siglip2_vision_model", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "num_patches": 16, "patch_size": 16, "vision_use_head": false}}`,
		Files: map[string]string{"preprocessor_config.json": `{"data_format": "channels_first", "do_image_splitting": true, "downsample_factor": 2, "encoder_patch_size": 16,
			"image_processor_type": "Lfm2VlImageProcessorFast", ` + preSigLIP + `, "max_image_tokens": 256, "resample": 2, "tile_size": 512}`},
		Tensors: strings.Replace(siglip("model.vision_tower.vision_model."), "w, 3, patch, patch", "w, 768", 1) + `
			model.multi_modal_projector.layer_norm.{weight,bias}  | 4*w
			model.multi_modal_projector.linear_1.weight           | 96, 4*w
			model.multi_modal_projector.linear_1.bias             | 96
			model.multi_modal_projector.linear_2.weight           | 64, 96
			model.multi_modal_projector.linear_2.bias             | 64
			` + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_cohere2_vision",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"alignment_intermediate_size": 192, "architectures": ["Cohere2VisionForConditionalGeneration"], "downsample_factor": 2, "image_token_id": 1002, "model_type": "cohere2_vision", ` +
			textOfType("cohere2") + `, "torch_dtype": "bfloat16",
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "image_size": 56, "intermediate_size": 64, "layer_norm_eps": 1e-06,
				"model_type": "siglip_vision_model", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "patch_size": 14}}`,
		Files: map[string]string{"preprocessor_config.json": `{"crop_to_patches": true, "image_processor_type": "Cohere2VisionImageProcessorFast", ` + preSigLIP + `, "max_patches": 12, "min_patches": 1,
			"patch_size": 14, "resample": 3, "size": {"height": 56, "width": 56}}`},
		Tensors: siglip("model.vision_tower.vision_model.") + `
			model.multi_modal_projector.linear_1.weight           | 192, 4*w
			model.multi_modal_projector.linear_1.bias             | 192
			model.multi_modal_projector.linear_2.weight           | 64, 96
			model.multi_modal_projector.linear_2.bias             | 64
			` + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_paddleocr",
		Encoder:   true,
		Tokenizer: "spm",
		Config: `{"architectures": ["PaddleOCRVLForConditionalGeneration"], "auto_map": {}, "hidden_size": 64,
			"image_token_id": 1002, "model_type": "paddleocr_vl", "num_hidden_layers": 2, "rms_norm_eps": 1e-05,
			"vocab_size": 1024, "vision_config": {"architectures": ["PaddleOCRVisionModel"], "attention_dropout": 0.0,
			"auto_map": {}, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "image_size": 56,
			"intermediate_size": 64, "layer_norm_eps": 1e-06, "model_type": "paddleocr_vl", "num_attention_heads": 2,
			"num_channels": 3, "num_hidden_layers": 4, "pad_token_id": 0, "patch_size": 14, "spatial_merge_size": 2,
			"temporal_patch_size": 2, "tokens_per_second": 2, "torch_dtype": "bfloat16"}}`,
		Files: map[string]string{"preprocessor_config.json": `{"min_pixels": 147384, "max_pixels": 2822400, "patch_size": 14, "temporal_patch_size": 1, "merge_size": 2, ` + preSigLIP + `}`},
		Tensors: siglip("visual.vision_model.") + `
			visual.vision_model.embeddings.packing_position_embedding.weight | 64, w
			visual.vision_model.head.probe                 | 1, 1, w
			mlp_AR.pre_norm.{weight,bias}                  | w
			mlp_AR.linear_1.weight                         | 4*w, 4*w
			mlp_AR.linear_1.bias                           | 4*w
			mlp_AR.linear_2.weight                         | 64, 4*w
			mlp_AR.linear_2.bias                           | 64
			` + textOf("model."),
	})
	add(Spec{
		Name:      "mm_ling3_vl",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["BailingMoeV3VLForConditionalGeneration"], "model_type": "bailing_moe_v3_vl", ` + textOfType("bailing_moe_v3") + `,
			"vision_config": {"deepstack_visual_indexes": [], "depth": 4, "disable_merger_proj": true, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "in_channels": 3,
				"intermediate_size": 64, "model_type": "qwen3_vl", "num_heads": 2, "num_position_embeddings": 16, "out_hidden_size": 128, "patch_size": 16, "spatial_merge_size": 2,
				"temporal_patch_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": `{"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, ` + preSigLIP + `}`},
		Tensors: strings.ReplaceAll(visual3[:strings.Index(visual3, "model.visual.merger.linear_fc1")], "model.visual.patch_embed.proj.bias                        | w\n", "") + `
			linear_proj.0.weight                         | 64, m
			linear_proj.0.bias                           | 64
			linear_proj.2.weight                         | 64, 64
			linear_proj.2.bias                           | 64
			` + textOf("model."),
	})
}
