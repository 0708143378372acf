package hftest

// visual3 is the table of Qwen3-VL's vision encoder.
const visual3 = `
			bid = vision_config.depth
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			m = 4*w
			model.visual.patch_embed.proj.weight                      | w, 3, 2, 16, 16
			model.visual.patch_embed.proj.bias                        | w
			model.visual.pos_embed.weight                             | 16, w
			model.visual.blocks.{bid}.norm{1,2}.{weight,bias}         | w
			model.visual.blocks.{bid}.attn.qkv.weight                 | 3*w, w
			model.visual.blocks.{bid}.attn.qkv.bias                   | 3*w
			model.visual.blocks.{bid}.attn.proj.weight                | w, w
			model.visual.blocks.{bid}.attn.proj.bias                  | w
			model.visual.blocks.{bid}.mlp.linear_fc1.weight           | ff, w
			model.visual.blocks.{bid}.mlp.linear_fc1.bias             | ff
			model.visual.blocks.{bid}.mlp.linear_fc2.weight           | w, ff
			model.visual.blocks.{bid}.mlp.linear_fc2.bias             | w
			model.visual.merger.norm.{weight,bias}                    | w
			model.visual.merger.linear_fc1.weight                     | m, m
			model.visual.merger.linear_fc1.bias                       | m
			model.visual.merger.linear_fc2.weight                     | 64, m
			model.visual.merger.linear_fc2.bias                       | 64
			`

// deepstack are its DeepStack mergers.
const deepstack = `
			model.visual.deepstack_merger_list.{0,1}.norm.{weight,bias}    | m
			model.visual.deepstack_merger_list.{0,1}.linear_fc1.weight     | m, m
			model.visual.deepstack_merger_list.{0,1}.linear_fc1.bias       | m
			model.visual.deepstack_merger_list.{0,1}.linear_fc2.weight     | 64, m
			model.visual.deepstack_merger_list.{0,1}.linear_fc2.bias       | 64
			`

func init() {
	const pre = `{"size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, ` + preSigLIP + `,
			"image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"}`
	vl := func(class, kind, text, stack string) string {
		return `{"architectures": ["` + class + `"], "image_token_id": 1002, "model_type": "` + kind + `", ` + textOfType(text) + `, "tie_word_embeddings": false,
			"transformers_version": "4.57.0.dev0", "video_token_id": 1002, "vision_end_token_id": 1001, "vision_start_token_id": 1000,
			"vision_config": {` + stack + `"depth": 4, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "in_channels": 3,
				"initializer_range": 0.02, "intermediate_size": 64, "model_type": "` + kind + `", "num_heads": 2, "num_position_embeddings": 16, "out_hidden_size": 64,
				"patch_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2}}`
	}
	add(Spec{
		Name:      "mm_qwen3_vl",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: vl("Qwen3VLForConditionalGeneration", "qwen3_vl", "qwen3_vl_text",
			`"deepstack_visual_indexes": [1, 3], `),
		Files:   map[string]string{"preprocessor_config.json": pre},
		Tensors: visual3 + deepstack + textOf("model.language_model."),
		Variants: []Variant{{Name: "bf16", Seed: 3, DType: "F32", Out: "bf16",
			Set: `{"text_config": {"rms_norm_eps": 1e-6}}`}},
	})
	add(Spec{
		Name:      "mm_qwen3_5",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config:    vl("Qwen3_5ForConditionalGeneration", "qwen3_5", "qwen3_5_text", `"deepstack_visual_indexes": [], `),
		Files:     map[string]string{"preprocessor_config.json": pre},
		Tensors:   visual3 + textOf("model.language_model.") + "mtp.fc.weight | 64, 128\n",
	})
	add(Spec{
		Name:      "mm_pplx_decider",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config:    vl("PplxDeciderModel", "pplx_decider", "qwen3_5_text", `"deepstack_visual_indexes": [], `),
		Files:     map[string]string{"preprocessor_config.json": pre},
		Tensors:   visual3 + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_vllm_d3",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config:    vl("VllmD3Model", "qwen3_5", "qwen3_5_text", `"deepstack_visual_indexes": [], `),
		Files:     map[string]string{"preprocessor_config.json": pre},
		Tensors:   visual3 + textOf("model.language_model."),
	})
	add(Spec{
		Name:      "mm_internvl",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["InternVLChatModel"],
			"auto_map": {"AutoConfig": "configuration_internvl_chat.InternVLChatConfig"}, "downsample_ratio": 0.5,
			"dynamic_image_size": true, "force_image_size": 56, "hidden_size": 64, "max_dynamic_patch": 12,
			"min_dynamic_patch": 1, "model_type": "internvl_chat", "pad2square": false, "ps_version": "v2",
			"select_layer": -1, "template": "internvl2_5", "use_thumbnail": true, "torch_dtype": "bfloat16",
			"llm_config": {"architectures": ["Qwen2ForCausalLM"], "hidden_size": 64, "model_type": "qwen2",
			"num_hidden_layers": 2, "vocab_size": 1024}, "vision_config": {"architectures": ["InternVisionModel"],
			"attention_dropout": 0.0, "drop_path_rate": 0.0, "dropout": 0.0, "hidden_act": "gelu", "hidden_size": 32,
			"image_size": 56, "initializer_factor": 1.0, "initializer_range": 0.02, "intermediate_size": 64,
			"layer_norm_eps": 1e-06, "model_type": "intern_vit_6b", "norm_type": "layer_norm", "num_attention_heads": 2,
			"num_channels": 3, "num_hidden_layers": 4, "patch_size": 14, "qk_normalization": false, "qkv_bias": true,
			"return_dict": true, "use_flash_attn": true}}`,
		Files: map[string]string{"preprocessor_config.json": `{"crop_size": 56, "do_center_crop": true,
			"do_normalize": true, "do_resize": true, "feature_extractor_type": "CLIPFeatureExtractor",
			"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3, "size": 56}`},
		Tensors: `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			vision_model.embeddings.class_embedding                 | 1, 1, w
			vision_model.embeddings.position_embedding              | 1, 17, w
			vision_model.embeddings.patch_embedding.weight          | w, 3, 14, 14
			vision_model.embeddings.patch_embedding.bias            | w
			vision_model.encoder.layers.{bid}.attn.qkv.weight       | 3*w, w
			vision_model.encoder.layers.{bid}.attn.qkv.bias         | 3*w
			vision_model.encoder.layers.{bid}.attn.proj.weight      | w, w
			vision_model.encoder.layers.{bid}.attn.proj.bias        | w
			vision_model.encoder.layers.{bid}.ls{1,2}               | w
			vision_model.encoder.layers.{bid}.norm{1,2}.{weight,bias} | w
			vision_model.encoder.layers.{bid}.mlp.fc1.weight        | ff, w
			vision_model.encoder.layers.{bid}.mlp.fc1.bias          | ff
			vision_model.encoder.layers.{bid}.mlp.fc2.weight        | w, ff
			vision_model.encoder.layers.{bid}.mlp.fc2.bias          | w
			mlp1.0.{weight,bias}                                    | 4*w
			mlp1.1.weight                                           | 64, 4*w
			mlp1.{1,3}.bias                                         | 64
			mlp1.3.weight                                           | 64, 64
			` + textOf("language_model.model."),
		Variants: []Variant{{Name: "lists", Seed: 3, Out: "bf16",
			Set: `{"min_dynamic_patch": null, "vision_config": {"image_size": [56, 56], "patch_size": [14, 14],
				"hidden_act": "silu"}}`}},
	})
	add(Spec{
		Name:      "mm_llama4",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Llama4ForConditionalGeneration"], "boi_token_index": 1000, "eoi_token_index": 1001, "image_token_index": 1002, "model_type": "llama4", ` +
			textOfType("llama4_text") + `, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0.dev0",
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu", "hidden_size": 32, "image_size": 56, "initializer_range": 0.02, "intermediate_size": 128,
				"model_type": "llama4_vision_model", "multi_modal_projector_bias": false, "norm_eps": 1e-05, "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4,
				"patch_size": 14, "pixel_shuffle_ratio": 0.5, "projector_dropout": 0.0, "projector_input_dim": 96, "projector_output_dim": 96, "rope_theta": 10000,
				"vision_feature_layer": -1, "vision_feature_select_strategy": "default", "vision_output_dim": 96}}`,
		Files: map[string]string{"preprocessor_config.json": `{"do_convert_rgb": true, "do_resize": true, "image_processor_type": "Llama4ImageProcessorFast", ` + preSigLIP + `,
			"max_patches": 16, "resample": 2, "resize_to_max_canvas": false, "size": {"height": 56, "width": 56}}`},
		Tensors: `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			vision_model.class_embedding                                          | w
			vision_model.positional_embedding_vlm                                 | 17, w
			vision_model.patch_embedding.linear.weight                            | w, 588
			vision_model.layernorm_{pre,post}.{weight,bias}                       | w
			vision_model.model.layers.{bid}.{input,post_attention}_layernorm.{weight,bias} | w
			vision_model.model.layers.{bid}.self_attn.{q,k,v,o}_proj.weight       | w, w
			vision_model.model.layers.{bid}.self_attn.{q,k,v,o}_proj.bias         | w
			vision_model.model.layers.{bid}.mlp.fc1.weight                        | ff, w
			vision_model.model.layers.{bid}.mlp.fc1.bias                          | ff
			vision_model.model.layers.{bid}.mlp.fc2.weight                        | w, ff
			vision_model.model.layers.{bid}.mlp.fc2.bias                          | w
			vision_model.vision_adapter.mlp.fc1.weight                            | 96, ff
			vision_model.vision_adapter.mlp.fc2.weight                            | 96, 96
			multi_modal_projector.linear_1.weight                                 | 64, 96
			` + textOf("language_model.model."),
	})
}
