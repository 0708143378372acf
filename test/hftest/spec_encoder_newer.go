package hftest

import "strings"

func init() {
	const pixels = `"min_pixels": 262144, "max_pixels": 4194304, "patch_size": 16, "temporal_patch_size": 1, "merge_size": 2, `
	// as HunyuanOCR
	add(Spec{
		Name:      "mm_hunyuan_vl",
		Encoder:   true,
		Tokenizer: "bpe:hunyuan-dense",
		Config: `{"architectures": ["HunYuanVLForConditionalGeneration"], "hidden_size": 64, "image_end_token_id": 900,
			"image_newline_token_id": 901, "image_start_token_id": 902, "image_token_id": 903, "intermediate_size": 96,
			"model_type": "hunyuan_vl", "num_hidden_layers": 2, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.1", "vocab_size": 1024, "vision_config": {"add_patchemb_bias": true,
			"attention_dropout": 0.0, "cat_extra_token": 1, "hidden_act": "gelu", "hidden_dropout": 0.0,
			"hidden_size": 32, "img_max_token_num": 4096, "intermediate_size": 64, "interpolate_mode": "bilinear",
			"max_image_size": 64, "max_vit_seq_len": 16384, "num_attention_heads": 2, "num_channels": 3,
			"num_hidden_layers": 3, "out_hidden_size": 64, "patch_size": 16, "rms_norm_eps": 1e-05,
			"spatial_merge_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": `{` + pixels +
			`"image_processor_type": "HunYuanVLImageProcessor", "processor_class": "HunYuanVLProcessor", "resample": 1, ` + preCLIP + `}`},
		Tensors: `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			vit.embeddings.patch_embedding.weight                           | w, 3, 16, 16
			vit.embeddings.patch_embedding.bias                             | w
			vit.embeddings.position_embedding.weight                        | 17, w
			vit.layers.{bid}.{input,post_attention}_layernorm.{weight,bias} | w
			vit.layers.{bid}.self_attn.{q,k,v,o}_proj.weight                | w, w
			vit.layers.{bid}.self_attn.{q,k,v,o}_proj.bias                  | w
			vit.layers.{bid}.mlp.dense_h_to_4h.weight                       | ff, w
			vit.layers.{bid}.mlp.dense_h_to_4h.bias                         | ff
			vit.layers.{bid}.mlp.dense_4h_to_h.weight                       | w, ff
			vit.layers.{bid}.mlp.dense_4h_to_h.bias                         | w
			vit.perceive.before_rms.weight                                  | w
			vit.perceive.after_rms.weight                                   | 64
			vit.perceive.proj.0.weight                                      | 2*w, w, 2, 2
			vit.perceive.proj.0.bias                                        | 2*w
			vit.perceive.proj.2.weight                                      | 4*w, 2*w, 1, 1
			vit.perceive.proj.2.bias                                        | 4*w
			vit.perceive.mlp.weight                                         | 64, 4*w
			vit.perceive.mlp.bias                                           | 64
			vit.perceive.image_{begin,end,sep}                              | 64
			vit.perceive.image_newline                                      | 4*w
			` + textOf("model."),
	})
	// as Janus-Pro-1B
	add(Spec{
		Name:      "mm_janus",
		Encoder:   true,
		Tokenizer: "bpe:deepseek-llm",
		Config: `{"architectures": ["JanusForConditionalGeneration"], "image_token_id": 998, "model_type": "janus", ` + textOfType("llama") + `, "torch_dtype": "bfloat16",
			"transformers_version": "4.52.0.dev0", "vision_config": {"attention_bias": true, "attention_dropout": 0.0, "depth": 2, "hidden_act": "gelu", "hidden_dropout_rate": 0.0,
				"hidden_size": 32, "image_size": 64, "initializer_range": 0.02, "layer_norm_eps": 1e-06, "mlp_ratio": 4.0, "model_type": "janus_vision_model",
				"num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 3, "num_image_tokens": 16, "patch_size": 16, "projection_dim": 64, "projection_dropout": 0.0,
				"use_qk_norm": false},
			"vq_config": {"embed_dim": 8, "model_type": "janus_vqgan", "num_embeddings": 64}}`,
		Files: map[string]string{"preprocessor_config.json": `{"background_color": [127, 127, 127], "do_resize": true, "image_processor_type": "JanusImageProcessor", "min_size": 14,
			"resample": 3, "size": {"height": 64, "width": 64}, ` + preSigLIP + `}`},
		Tensors: strings.NewReplacer("{q,k,v,out}_proj.weight", "{q_proj,k_proj,v_proj,projection_layer}.weight",
			"{q,k,v,out}_proj.bias", "{q_proj,k_proj,v_proj,projection_layer}.bias",
			"vision_config.intermediate_size", "4*w").Replace(siglip("model.vision_model.")) + `
			model.aligner.fc1.weight                                    | 64, w
			model.aligner.hidden_layers.0.weight                        | 64, 64
			model.aligner.{fc1,hidden_layers.0}.bias                    | 64
			model.vqmodel.quantize.embedding.weight                     | 64, 8
			model.generation_embeddings.weight                          | 64, 8
			model.generation_aligner.{fc1,hidden_layers.0}.weight       | 64, 8
			model.generation_head.{proj_out,vision_head}.weight         | 64, 64
			` + textOf("model.language_model."),
		Variants: []Variant{{Name: "silu", Seed: 3, DType: "F32", Out: "bf16",
			Set: `{"vision_config": {"hidden_act": "silu", "intermediate_size": 128}}`}},
	})
	// as Phi-4-reasoning-vision-15B
	add(Spec{
		Name:      "mm_phi4",
		Encoder:   true,
		Tokenizer: "bpe:gpt2",
		Config: `{"architectures": ["Phi4ForCausalLMV"], "hidden_size": 64, "intermediate_size": 96,
			"max_num_patches": 3600, "min_num_patches": 256, "mm_hidden_size": 32, "mm_projector_type": "mlp2x_gelu",
			"model_type": "phi4-siglip", "num_hidden_layers": 2, "torch_dtype": "bfloat16", "vocab_size": 1024,
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32,
			"intermediate_size": 64, "layer_norm_eps": 1e-06, "model_type": "siglip2_vision_model",
			"num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "num_patches": 16,
			"vision_use_head": true}}`,
		Files: map[string]string{"preprocessor_config.json": `{"do_resize": true, "image_processor_type": "Siglip2ImageProcessorNoUpscale", "max_num_patches": 3600, "min_num_patches": 256,
			"patch_size": 16, "resample": 2, ` + preSigLIP + `}`},
		Tensors: strings.NewReplacer("w, 3, patch, patch", "w, 768", "patch = vision_config.patch_size\n", "").Replace(siglip("model.vision_tower.vision_tower.vision_model.")) + `
			model.vision_tower.vision_tower.vision_model.head.probe                   | 1, 1, w
			model.mm_projector.0.weight                                               | 64, w
			model.mm_projector.2.weight                                               | 64, 64
			model.mm_projector.{0,2}.bias                                             | 64
			` + textOf("model.") + "lm_head.weight | 1024, 64\n",
	})
	// as MiniMax-M3, with its head size of 80: no other is published
	add(Spec{
		Name:      "mm_minimax_m3",
		Encoder:   true,
		Tokenizer: "bpe:gpt-4o",
		RawConfig: true,
		Config: `{"architectures": ["MiniMaxM3SparseForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_minimax_m3_vl.MiniMaxM3VLConfig"}, "dtype": "bfloat16",
			"image_seq_length": 576, "image_token_index": 5, "img_token_compression_config": {"image_token_compression_method": "patch_merge", "spatial_merge_size": 2, "temporal_patch_size": 2},
			"model_type": "minimax_m3_vl", "multimodal_projector_bias": true, "projector_hidden_act": "gelu", "projector_hidden_size": 64, ` + textOfType("minimax_m3") + `, "tie_word_embeddings": false,
			"transformers_version": "4.52.4", "video_token_index": 6, "vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu", "hidden_size": 160, "image_size": 56,
				"img_token_compression_config": {"image_token_compression_method": "patch_merge", "spatial_merge_size": 2, "temporal_patch_size": 2}, "initializer_factor": 1.0,
				"initializer_range": 0.02, "intermediate_size": 64, "layer_norm_eps": 1e-05, "model_type": "clip_vision_model", "num_attention_heads": 2, "num_channels": 3,
				"num_hidden_layers": 3, "patch_size": 14, "position_embedding_type": "rope", "projection_dim": 64, "rope_mode": "3d", "rope_theta": 10000.0,
				"vision_segment_max_frames": 4, "vocab_size": 32000}}`,
		Files: map[string]string{"preprocessor_config.json": `{"image_processor_type": "MiniMaxM3VLImageProcessor", "max_pixels": 451584, "merge_size": 2, "patch_size": 14, "temporal_patch_size": 2,
			"processor_class": "MiniMaxM3VLProcessor", ` + preCLIP + `}`},
		Tensors: strings.ReplaceAll(`
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			P.embeddings.patch_embedding.weight                      | w, 3, 2, 14, 14
			P.pre_layrnorm.{weight,bias}                             | w
			P.encoder.layers.{bid}.layer_norm{1,2}.{weight,bias}     | w
			P.encoder.layers.{bid}.self_attn.{q,k,v,out}_proj.weight | w, w
			P.encoder.layers.{bid}.self_attn.{q,k,v,out}_proj.bias   | w
			P.encoder.layers.{bid}.mlp.fc1.weight                    | ff, w
			P.encoder.layers.{bid}.mlp.fc1.bias                      | ff
			P.encoder.layers.{bid}.mlp.fc2.weight                    | w, ff
			P.encoder.layers.{bid}.mlp.fc2.bias                      | w
			`, "P.", "vision_tower.vision_model.") + `
			multi_modal_projector.linear_1.weight                    | 96, w
			multi_modal_projector.linear_1.bias                      | 96
			multi_modal_projector.linear_2.weight                    | 64, 96
			multi_modal_projector.linear_2.bias                      | 64
			patch_merge_mlp.linear_1.weight                          | 96, 256
			patch_merge_mlp.linear_1.bias                            | 96
			patch_merge_mlp.linear_2.weight                          | 64, 96
			patch_merge_mlp.linear_2.bias                            | 64
			` + textOf("language_model.model."),
	})
	// as Muse-Glimmer-30B
	add(Spec{
		Name:      "mm_muse_glimmer",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["MuseGlimmerForConditionalGeneration"], "dtype": "bfloat16", "image_token_id": 900, "model_type": "muse_glimmer", "out_hidden_size": 64,
			"projector_hidden_act": "gelu", "projector_hidden_size": 96, ` + textOfType("muse_glimmer_text") + `, "tie_word_embeddings": false, "transformers_version": "5.14.0",
			"video_token_id": 901, "vision_config": {"hidden_act": "gelu", "hidden_size": 32, "intermediate_size": 64, "layer_norm_eps": 1e-05,
				"layer_types": ["window_attention", "window_attention", "window_attention", "full_attention", "window_attention", "full_attention"], "max_position_embeddings": 16,
				"merge_size": 2, "model_type": "muse_glimmer_vision", "num_attention_heads": 2, "num_hidden_layers": 6, "patch_size": 14, "patch_temporal": 2, "pos_emb_height": 4,
				"pos_emb_width": 4, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}}`,
		Files: map[string]string{"processor_config.json": `{"image_processor": {"image_processor_type": "MuseGlimmerImageProcessor", "max_image_tokens": 64, "merge_size": 2, "patch_size": 14,
			"resample": 1, "temporal_patch_size": 2, ` + preSigLIP + `}, "processor_class": "MuseGlimmerProcessor"}`},
		Tensors: `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			model.vision_tower.patch_embedder.patch_embedding.weight           | w, 2*3*14*14
			model.vision_tower.patch_embedder.position_embedding_table.weight  | 16, w
			model.vision_tower.ln_{pre,post}.{weight,bias}                     | w
			model.vision_tower.layers.{bid}.norm{1,2}.{weight,bias}            | w
			model.vision_tower.layers.{bid}.attn.{q_proj,k_proj,v_proj,proj}.weight | w, w
			model.vision_tower.layers.{bid}.attn.{q_proj,k_proj,v_proj,proj}.bias   | w
			model.vision_tower.layers.{bid}.mlp.fc1.weight                     | ff, w
			model.vision_tower.layers.{bid}.mlp.fc1.bias                       | ff
			model.vision_tower.layers.{bid}.mlp.fc2.weight                     | w, ff
			model.vision_tower.layers.{bid}.mlp.fc2.bias                       | w
			model.vision_adapter.fc1.weight                                    | 96, 4*w
			model.vision_adapter.fc1.bias                                      | 96
			model.vision_adapter.fc2.weight                                    | 96, 96
			model.vision_adapter.fc2.bias                                      | 96
			model.vision_projection.weight                                     | 64, 96
			` + textOf("model.language_model."),
	})
}
