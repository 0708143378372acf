package hftest

func init() {
	const (
		language = `language_model.backbone.embeddings.weight | 1024, 64
			language_model.backbone.layers.0.mixer.out_proj.weight | 64, 64
			language_model.lm_head.weight | 1024, 64
			`
		llm = `"llm_config": {"architectures": ["NemotronHForCausalLM"], "hidden_size": 64, "model_type": "nemotron_h", "num_hidden_layers": 2, "vocab_size": 1024}`
		// RADIO's names
		radio = `
			bid = layers
			w = width
			vision_model.radio_model.model.patch_generator.embedder.weight            | w, 768
			vision_model.radio_model.model.patch_generator.cls_token.token            | 10, w
			vision_model.radio_model.model.blocks.{bid}.norm{1,2}.{weight,bias}       | w
			vision_model.radio_model.model.blocks.{bid}.attn.qkv.weight               | 3*w, w
			vision_model.radio_model.model.blocks.{bid}.attn.qkv.bias                 | 3*w
			vision_model.radio_model.model.blocks.{bid}.attn.proj.weight              | w, w
			vision_model.radio_model.model.blocks.{bid}.attn.proj.bias                | w
			vision_model.radio_model.model.blocks.{bid}.mlp.fc1.weight                | 4*w, w
			vision_model.radio_model.model.blocks.{bid}.mlp.fc1.bias                  | 4*w
			vision_model.radio_model.model.blocks.{bid}.mlp.fc2.weight                | w, 4*w
			vision_model.radio_model.model.blocks.{bid}.mlp.fc2.bias                  | w
			vision_model.radio_model.input_conditioner.norm_{mean,std}                | 3, 1, 1
			vision_model.radio_model.summary_idxs                                     | 2 | as I64
			mlp1.0.weight                                                             | 4*w
			mlp1.1.weight                                                             | 96, 4*w
			mlp1.3.weight                                                             | 64, 96
			`
		audioTensors = `
			a = sound_config.num_hidden_layers
			sound_encoder.encoder.feature_extractor.featurizer.fb                     | 1, 128, 257
			sound_encoder.encoder.feature_extractor.featurizer.window                 | 400
			sound_encoder.encoder.subsampling.layers.{0,2,5}.weight                   | 16, 1, 3, 3
			sound_encoder.encoder.subsampling.layers.{3,6}.weight                     | 16, 16, 1, 1
			sound_encoder.encoder.subsampling.layers.{0,2,3,5,6}.bias                 | 16
			sound_encoder.encoder.subsampling.linear.weight                           | 32, 256
			sound_encoder.encoder.subsampling.linear.bias                             | 32
			sound_encoder.encoder.layers.{a}.norm_{feed_forward1,self_att,conv,feed_forward2,out}.{weight,bias} | 32
			sound_encoder.encoder.layers.{a}.feed_forward{1,2}.linear1.weight         | 64, 32
			sound_encoder.encoder.layers.{a}.feed_forward{1,2}.linear2.weight         | 32, 64
			sound_encoder.encoder.layers.{a}.self_attn.{q,k,v,o,relative_k}_proj.weight | 32, 32
			sound_encoder.encoder.layers.{a}.self_attn.bias_{u,v}                     | 2, 16
			sound_encoder.encoder.layers.{a}.conv.pointwise_conv1.weight              | 64, 32, 1
			sound_encoder.encoder.layers.{a}.conv.depthwise_conv.weight               | 32, 1, 9
			sound_encoder.encoder.layers.{a}.conv.pointwise_conv2.weight              | 32, 32, 1
			sound_encoder.encoder.layers.{a}.conv.norm.{weight,bias,running_mean,running_var} | 32
			sound_encoder.encoder.layers.{a}.conv.norm.num_batches_tracked            | | as I64
			sound_projection.norm.weight                                              | 32
			sound_projection.linear1.weight                                           | 48, 32
			sound_projection.linear2.weight                                           | 64, 48
			`
		// as in Nemotron Nano 12B v2 VL, except for the name of a smaller ViT
		vision = `"vision_config": {"adaptor_configs": {}, "adaptor_names": null, "architectures": ["RADIOModel"],
				"args": {"cls_token_per_teacher": true, "cpe_max_size": 2048, "drop": 0.0, "in_chans": null, "model": "vit_tiny_patch16_224", "register_multiple": 10,
					"teachers": [{"fd_normalize": false, "model": "ViT-H-14-378-quickgelu", "name": "clip", "type": "open_clip", "use_summary": true}]},
				"feature_normalizer_config": null, "inter_feature_normalizer_config": null, "max_resolution": 2048, "patch_size": 16, "preferred_resolution": [768, 768],
				"torch_dtype": "bfloat16", "version": "radio_v2.5-h", "vitdet_window_size": null}`
		root = `"downsample_ratio": 0.5, "force_image_size": 64, "image_tag_type": "internvl", "img_context_token": "<image>", "img_context_token_id": 1000, "max_sequence_length": 131072,
			"norm_mean": [0.48145466, 0.4578275, 0.40821073], "norm_std": [0.26862954, 0.26130258, 0.27577711], "patch_size": 16, "projector_hidden_size": 96, "ps_version": "v2",
			"template": "nemotron5h-aligned-siglip", "torch_dtype": "bfloat16", "use_thumbnail": true, "vit_hidden_size": 192, "video_context_token": "<video>", "video_pruning_rate": 0.0, `
		preprocessor = `{"image_processor_type": "NemotronNanoVLV2ImageProcessor", "image_size": 64,
			"max_num_tiles": 12, "norm_mean": [0.48145466, 0.4578275, 0.40821073], "norm_std": [0.26862954, 0.26130258,
			0.27577711], "patch_size": 16, "use_thumbnail": true}`
	)
	// the reference uses the sizes of one ViT, regardless of config.json
	tiny := []string{"--set", "nemotron.NemotronNanoV2VLModel._vit_hidden_size=192", "--set",
		"nemotron.NemotronNanoV2VLModel._vit_intermediate_size=768",
		"--set", "nemotron.NemotronNanoV2VLModel._vit_num_layers=12", "--set",
		"nemotron.NemotronNanoV2VLModel._vit_num_heads=3"}
	files := map[string]string{"preprocessor_config.json": preprocessor}
	add(Spec{
		Name: "mm_nemotron_nano_v2_vl", Encoder: true, Tokenizer: "bpe:llama3", Files: files, OracleFlags: tiny,
		Config: `{"architectures": ["NemotronH_Nano_VL_V2"], "model_type": "NemotronH_Nano_VL_V2", "layers": 12, "width": 192, ` + root + llm + `, ` + vision + `}`,
		Tensors: radio + `
			vision_model.radio_model.model.patch_generator.pos_embed                  | 1, 12*12, w
			` + language,
		Variants: []Variant{
			{Name: "f16", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"force_image_size": 192, "downsample_ratio": null, "vision_config": {"architectures": null}}`},
		},
	})
	add(Spec{
		Name: "mm_nemotron3_nano_omni", Encoder: true, Tokenizer: "bpe:llama3", Files: files, OracleFlags: tiny,
		Config: `{"architectures": ["NemotronH_Nano_Omni_Reasoning_V3"], "model_type": "NemotronH_Nano_Omni_Reasoning_V3", "layers": 12, "width": 192, ` + root + llm + `, ` + vision + `,
			"sound_context_token_id": 1001, "sound_config": {"conv_kernel_size": 9, "hidden_size": 32, "intermediate_size": 64, "model_type": "parakeet", "num_attention_heads": 2,
				"num_hidden_layers": 3, "num_mel_bins": 128, "projection_hidden_size": 48, "sampling_rate": 16000, "subsampling_conv_channels": 16, "subsampling_conv_kernel_size": 3,
				"subsampling_conv_stride": 2, "subsampling_factor": 8}}`,
		Tensors: radio + audioTensors + `
			vision_model.radio_model.model.patch_generator.pos_embed                  | 1, 8*8, w
			vision_model.radio_model.model.patch_generator.video_embedder.weight      | w, 2*768
			` + language,
		NoEdge: true, // interpolation between infinities
	})
	omni := Spec{
		Name: "mm_nemotron_omni", Encoder: true, Tokenizer: "bpe:llama3",
		Files: map[string]string{"preprocessor_config.json": `{"downsample_ratio": 0.5,
			"image_processor_type": "NemotronH_Omni_Reasoning_V3ImageProcessor", "max_num_patches": 64,
			"min_num_patches": 4, "norm_mean": [0.48145466, 0.4578275, 0.40821073], "norm_std": [0.26862954, 0.26130258,
			0.27577711], "patch_size": 16}`},
		Config: `{"architectures": ["NemotronH_Omni_Reasoning_V3"], "downsample_ratio": 0.5, "img_context_token_id": 1000, "layers": 4, "width": 64, ` + llm + `, "model_type": "nemotron_h_omni",
			"patch_size": 16, "projector_hidden_size": 96, "ps_version": "v2", "sound_config": null, "transformers_version": "5.8.0", "video_temporal_patch_size": 2, "vit_hidden_size": 64,
			"vision_config": {"hidden_act": "gelu", "hidden_size": 64, "image_size": 512, "layer_norm_eps": 1e-06, "layerscale_value": 1.0, "max_img_size": 128, "mlp_ratio": 4.0, "model_type": "radio",
				"num_attention_heads": 4, "num_channels": 3, "num_cls_tokens": 3, "num_hidden_layers": 4, "num_registers": 7, "patch_size": 16, "qkv_bias": true, "summary_idxs": [0, 1],
				"video_temporal_patch_size": 2}}`,
		Tensors: radio + `
			vision_model.radio_model.model.patch_generator.pos_embed                  | 1, 8*8, w
			vision_model.radio_model.model.patch_generator.video_embedder.weight      | w, 2*768
			vision_projector.vision_final_layernorm.{weight,bias}                     | w
			` + language,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32", Set: `{"downsample_ratio": null}`}},
	}
	add(omni)
	omni.Name, omni.Variants = "mm_nemotron_omni_library", nil
	omni.Tensors = `
			bid = layers
			w = width
			vision_model.embeddings.patch_projection.weight                           | w, 768
			vision_model.embeddings.video_patch_projection.weight                     | w, 2*768
			vision_model.embeddings.position_embedding                                | 1, 8*8, w
			vision_model.embeddings.cls_register_token                                | 10, w
			vision_model.summary_idxs                                                 | 2 | as I64
			vision_model.encoder.layer.{bid}.norm{1,2}.{weight,bias}                  | w
			vision_model.encoder.layer.{bid}.attention.attention.{query,key,value}.weight | w, w
			vision_model.encoder.layer.{bid}.attention.attention.{query,key,value}.bias   | w
			vision_model.encoder.layer.{bid}.attention.output.dense.weight            | w, w
			vision_model.encoder.layer.{bid}.attention.output.dense.bias              | w
			vision_model.encoder.layer.{bid}.layer_scale{1,2}.lambda1                 | w
			vision_model.encoder.layer.{bid}.mlp.fc1.weight                           | 4*w, w
			vision_model.encoder.layer.{bid}.mlp.fc1.bias                             | 4*w
			vision_model.encoder.layer.{bid}.mlp.fc2.weight                           | w, 4*w
			vision_model.encoder.layer.{bid}.mlp.fc2.bias                             | w
			vision_projector.vision_final_layernorm.{weight,bias}                     | w
			vision_projector.mlp1.norm.weight                                         | 4*w
			vision_projector.mlp1.linear1.weight                                      | 96, 4*w
			vision_projector.mlp1.linear2.weight                                      | 64, 96
			` + language
	add(omni)
}
