package hftest

import "strings"

func init() {
	const clips = `.{input,output}_{max,min} | `
	visionTensors := func(prefix string) string {
		return strings.NewReplacer("P.", prefix).Replace(`
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			P.patch_embedder.input_proj.weight                                      | w, 588
			P.patch_embedder.position_embedding_table                               | 2, 256, w
			P.encoder.layers.{bid}.{input,post_attention,pre_feedforward,post_feedforward}_layernorm.weight | w
			P.encoder.layers.{bid}.self_attn.{q,k}_norm.weight                      | 16
			P.encoder.layers.{bid}.self_attn.{q,k,v,o}_proj.linear.weight           | w, w
			P.encoder.layers.{bid}.mlp.{gate,up}_proj.linear.weight                 | ff, w
			P.encoder.layers.{bid}.mlp.down_proj.linear.weight                      | w, ff
			P.encoder.layers.{bid}.self_attn.{q,k,v,o}_proj` + clips + ` | if vision_config.use_clipped_linears
			P.encoder.layers.{bid}.mlp.{gate,up,down}_proj` + clips + ` | if vision_config.use_clipped_linears
			P.std_{bias,scale}                                                      | w | if vision_config.standardize
			`)
	}
	const audioTensors = `
			a = audio_config.num_hidden_layers
			P.layers.{a}.feed_forward{1,2}.{pre,post}_layer_norm.weight             | 64
			P.layers.{a}.feed_forward{1,2}.ffw_layer_1.linear.weight                | 256, 64
			P.layers.{a}.feed_forward{1,2}.ffw_layer_2.linear.weight                | 64, 256
			P.layers.{a}.feed_forward{1,2}.ffw_layer_{1,2}` + clips + ` | if audio_config.use_clipped_linears
			P.layers.{a}.self_attn.{q,k,v}_proj.linear.weight                       | 64, 64
			P.layers.{a}.self_attn.{q,k,v}_proj` + clips + ` | if audio_config.use_clipped_linears
			P.layers.{a}.self_attn.post.linear.weight                               | 64, 64
			P.layers.{a}.self_attn.post` + clips + ` | if audio_config.use_clipped_linears
			P.layers.{a}.self_attn.per_dim_scale                                    | 32
			P.layers.{a}.self_attn.relative_k_proj.weight                           | 64, 64
			P.layers.{a}.lconv1d.{pre_layer_norm,conv_norm}.weight                  | 64
			P.layers.{a}.lconv1d.linear_start.linear.weight                         | 128, 64
			P.layers.{a}.lconv1d.linear_end.linear.weight                           | 64, 64
			P.layers.{a}.lconv1d.linear_{start,end}` + clips + ` | if audio_config.use_clipped_linears
			P.layers.{a}.lconv1d.depthwise_conv1d.weight                            | 64, 1, 5
			P.layers.{a}.norm_{pre_attn,post_attn,out}.weight                       | 64
			P.subsample_conv_projection.layer0.conv.weight                          | 32, 1, 3, 3
			P.subsample_conv_projection.layer0.norm.weight                          | 32
			P.subsample_conv_projection.layer1.conv.weight                          | 16, 32, 3, 3
			P.subsample_conv_projection.layer1.norm.weight                          | 16
			P.subsample_conv_projection.input_proj_linear.weight                    | 64, 512
			P.output_proj.weight                                                    | 96, 64
			P.output_proj.bias                                                      | 96
			`
	const vision = `"vision_config": {"_name_or_path": "", "attention_bias": false, "attention_dropout": 0.0, "default_output_length": 280, "dtype": "bfloat16", "global_head_dim": 16, "head_dim": 16,
				"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 32, "initializer_range": 0.02, "intermediate_size": 64, "max_position_embeddings": 131072,
				"model_type": "gemma4_vision", "num_attention_heads": 2, "num_hidden_layers": 4, "num_key_value_heads": 2, "patch_size": 14, "pooling_kernel_size": 3,
				"position_embedding_size": 256, "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}, "standardize": false, "use_clipped_linears": true}`
	const audio = `"audio_config": {"_name_or_path": "", "attention_chunk_size": 12, "attention_context_left": 13, "attention_context_right": 0, "attention_invalid_logits_value": -1000000000.0,
				"attention_logit_cap": 50.0, "conv_kernel_size": 5, "dtype": "bfloat16", "gradient_clipping": 10000000000.0, "hidden_act": "silu", "hidden_size": 64,
				"initializer_range": 0.02, "model_type": "gemma4_audio", "num_attention_heads": 2, "num_hidden_layers": 3, "output_proj_dims": 96, "residual_weight": 0.5,
				"rms_norm_eps": 1e-06, "subsampling_conv_channels": [32, 16], "use_clipped_linears": true}`
	files := map[string]string{"processor_config.json": `{"audio_ms_per_token": 40, "audio_seq_length": 750,
		"feature_extractor": {"feature_extractor_type": "Gemma4AudioFeatureExtractor", "feature_size": 128,
		"sampling_rate": 16000}, "image_processor": {"do_convert_rgb": true, "do_normalize": false, "do_rescale": true,
		"do_resize": true, "image_mean": [0.0, 0.0, 0.0], "image_std": [1.0, 1.0, 1.0],
		"image_processor_type": "Gemma4ImageProcessor", "image_seq_length": 280, "max_soft_tokens": 280,
		"patch_size": 16, "pooling_kernel_size": 3, "resample": 3, "rescale_factor": 0.00392156862745098},
		"image_seq_length": 280, "processor_class": "Gemma4Processor"}`}
	// as E2B and E4B; one variant is like the larger ones, which have no audio encoder
	add(Spec{
		Name: "mm_gemma4", Encoder: true, Tokenizer: "gemma", Files: files,
		Config: `{"architectures": ["Gemma4ForConditionalGeneration"], ` + audio + `, "audio_token_id": 1000, "boa_token_id": 1001, "boi_token_id": 1002, "dtype": "bfloat16", "eoa_token_id": 1003,
			"eoa_token_index": 1003, "eoi_token_id": 1004, "eos_token_id": [1, 106], "image_token_id": 1005, "initializer_range": 0.02, "model_type": "gemma4", ` + textOfType("gemma4_text") + `,
			"tie_word_embeddings": true, "transformers_version": "5.5.0.dev0", "video_token_id": 1006, "vision_soft_tokens_per_image": 280, ` + vision + `}`,
		Tensors: visionTensors("model.vision_tower.") + strings.ReplaceAll(`
			model.embed_vision.embedding_projection.weight | 64, w
			model.embed_audio.embedding_projection.weight  | 64, 96
			`+audioTensors, "P.", "model.audio_tower.") + textOf("model.language_model."),
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32",
			Set: `{"vision_config": {"standardize": true, "use_clipped_linears": false},
				"audio_config": {"use_clipped_linears": false}}`}},
	})
	add(Spec{
		Name: "mm_gemma4_seeing", Encoder: true, Tokenizer: "gemma", Files: files,
		Config: `{"architectures": ["Gemma4ForConditionalGeneration"], "audio_config": null, "boi_token_id": 1002, "dtype": "bfloat16", "eoi_token_id": 1004, "eos_token_id": [1, 106],
			"image_token_id": 1005, "model_type": "gemma4", ` + textOfType("gemma4_text") + `, "tie_word_embeddings": true, "transformers_version": "5.5.0.dev0",
			"vision_soft_tokens_per_image": 280, ` + strings.Replace(strings.Replace(vision, `"standardize": false`, `"standardize": true`, 1), `"use_clipped_linears": true`, `"use_clipped_linears": false`, 1) + `}`,
		Tensors: visionTensors("model.vision_tower.") + `
			model.embed_vision.embedding_projection.weight | 64, w
			` + textOf("model.language_model."),
	})
	add(Spec{
		Name: "mm_embeddinggemma2", Encoder: true, Tokenizer: "gemma", Files: files,
		Config: `{"architectures": ["EmbeddingGemma2Model"], "dtype": "bfloat16", "embedding_dim": 96, "model_type": "embedding_gemma2", ` + textOfType("embedding_gemma2_text") + `,
			"tie_word_embeddings": true, "transformers_version": "5.14.0", ` + audio + `, ` + vision + `}`,
		Tensors: visionTensors("vision_tower.") + strings.ReplaceAll(`
			embed_vision.embedding_projection.weight | 64, w
			embed_audio.embedding_projection.weight  | 64, 96
			`+audioTensors, "P.", "audio_tower.") + textOf("language_model."),
	})
	add(Spec{
		Name: "mm_gemma4_unified", Encoder: true, Tokenizer: "gemma", Files: files,
		Config: `{"architectures": ["Gemma4UnifiedForConditionalGeneration"], "audio_config": {"audio_embed_dim": 96, "audio_samples_per_token": 96, "initializer_range": 0.02,
				"model_type": "gemma4_unified_audio", "rms_norm_eps": 1e-06}, "audio_token_id": 1000, "boa_token_id": 1001, "boi_token_id": 1002, "dtype": "bfloat16", "eoa_token_index": 1003,
			"eoi_token_id": 1004, "image_token_id": 1005, "initializer_range": 0.02, "model_type": "gemma4_unified", ` + textOfType("gemma4_unified_text") + `, "tie_word_embeddings": true,
			"transformers_version": "5.10.0", "video_token_id": 1006, "vision_config": {"initializer_range": 0.02, "mm_embed_dim": 64, "mm_posemb_size": 20, "model_patch_size": 12,
				"model_type": "gemma4_unified_vision", "num_soft_tokens": 280, "output_proj_dims": 64, "patch_size": 4, "pooling_kernel_size": 3, "rms_norm_eps": 1e-06}}`,
		Tensors: `
			model.vision_embedder.patch_dense.weight        | 64, 432
			model.vision_embedder.patch_dense.bias          | 64
			model.vision_embedder.patch_ln1.{weight,bias}   | 432
			model.vision_embedder.patch_ln2.{weight,bias}   | 64
			model.vision_embedder.pos_embedding             | 20, 2, 64
			model.vision_embedder.pos_norm.{weight,bias}    | 64
			model.embed_vision.embedding_projection.weight  | 64, 64
			model.embed_audio.embedding_projection.weight   | 64, 96
			` + textOf("model.language_model."),
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32",
			Set: `{"vision_config": {"model_patch_size": null}}`}},
	})
}
