package hftest

func init() {
	more := []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32"}, {Name: "q8_0", Seed: 4, Out: "q8_0"}}
	add(Spec{
		Name: "mm_cogvlm", Encoder: true, Tokenizer: "spm", Variants: more,
		Files: map[string]string{"preprocessor_config.json": `{` + preCLIP + `}`},
		Config: `{"architectures": ["CogVLMForCausalLM"],
			"auto_map": {"AutoModelForCausalLM": "modeling_cogvlm.CogVLMForCausalLM"}, "bos_token_id": $bos,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96,
			"max_position_embeddings": 2048, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
			"pad_token_id": 0, "rms_norm_eps": 1e-05, "template_version": "chat", "torch_dtype": "bfloat16",
			"transformers_version": "4.35.0", "vision_config": {"dropout_prob": 0.0, "hidden_act": "gelu",
			"hidden_size": 32, "image_size": 64, "in_channels": 3, "intermediate_size": 64, "layer_norm_eps": 1e-06,
			"num_heads": 2, "num_hidden_layers": 3, "num_positions": 17, "patch_size": 16}, "vocab_size": $vocab}`,
		Tensors: `
			bid = vision_config.num_hidden_layers
			model.vision.patch_embedding.proj.weight                                           | 32, 3, 16, 16
			model.vision.patch_embedding.proj.bias                                             | 32
			model.vision.patch_embedding.cls_embedding                                         | 1, 32
			model.vision.patch_embedding.position_embedding.weight                             | 17, 32
			model.vision.transformer.layers.{bid}.attention.query_key_value.weight             | 96, 32
			model.vision.transformer.layers.{bid}.attention.query_key_value.bias               | 96
			model.vision.transformer.layers.{bid}.attention.dense.weight                       | 32, 32
			model.vision.transformer.layers.{bid}.attention.dense.bias                         | 32
			model.vision.transformer.layers.{bid}.{input,post_attention}_layernorm.{weight,bias} | 32
			model.vision.transformer.layers.{bid}.mlp.fc1.weight                               | 64, 32
			model.vision.transformer.layers.{bid}.mlp.fc1.bias                                 | 64
			model.vision.transformer.layers.{bid}.mlp.fc2.weight                               | 32, 64
			model.vision.transformer.layers.{bid}.mlp.fc2.bias                                 | 32
			model.vision.linear_proj.linear_proj.weight                                        | 64, 32
			model.vision.linear_proj.norm1.{weight,bias}                                       | 64
			model.vision.linear_proj.{gate_proj,dense_h_to_4h}.weight                          | 96, 64
			model.vision.linear_proj.dense_4h_to_h.weight                                      | 64, 96
			model.vision.{boi,eoi}                                                             | 1, 1, 64
			` + textOf("model."),
	})
	add(Spec{
		Name: "mm_dots_ocr", Encoder: true, Tokenizer: "bpe:qwen2", Variants: more,
		Files: map[string]string{"preprocessor_config.json": `{"min_pixels": 3136, "max_pixels": 11289600, "patch_size": 14, "temporal_patch_size": 1, "merge_size": 2, ` + preCLIP + `}`},
		Config: `{"architectures": ["DotsOCRForCausalLM"], "model_type": "dots_ocr",
			"auto_map": {"AutoConfig": "configuration_dots.DotsOCRConfig"}, "attention_bias": true, "hidden_size": 64,
			"image_token_id": 1002, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.0", "vision_config": {"attn_implementation": "flash_attention_2",
			"embed_dim": 32, "gradient_checkpointing": false, "hidden_size": 32, "init_merger_std": 0.02,
			"initializer_range": 0.02, "intermediate_size": 64, "is_causal": false, "num_attention_heads": 2,
			"num_channels": 3, "num_hidden_layers": 3, "patch_size": 14, "post_norm": true, "rms_norm_eps": 1e-05,
			"spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": false}, "vocab_size": 1024}`,
		Tensors: `
			bid = vision_config.num_hidden_layers
			vision_tower.patch_embed.patchifier.proj.weight    | 32, 3, 14, 14
			vision_tower.patch_embed.patchifier.proj.bias      | 32
			vision_tower.patch_embed.patchifier.norm.weight    | 32
			vision_tower.blocks.{bid}.norm{1,2}.weight         | 32
			vision_tower.blocks.{bid}.attn.qkv.weight          | 96, 32
			vision_tower.blocks.{bid}.attn.proj.weight         | 32, 32
			vision_tower.blocks.{bid}.mlp.fc{1,3}.weight       | 64, 32
			vision_tower.blocks.{bid}.mlp.fc2.weight           | 32, 64
			vision_tower.post_trunk_norm.weight                | 32
			vision_tower.merger.ln_q.{weight,bias}             | 32
			vision_tower.merger.mlp.0.weight                   | 128, 128
			vision_tower.merger.mlp.0.bias                     | 128
			vision_tower.merger.mlp.2.weight                   | 64, 128
			vision_tower.merger.mlp.2.bias                     | 64
			` + textOf("model."),
	})
	add(Spec{
		Name: "mm_lightonocr", Encoder: true, Tokenizer: "bpe:qwen2", Variants: more,
		Files: map[string]string{"preprocessor_config.json": `{"patch_size": 14, "size": {"longest_edge": 1540}, ` +
			preCLIP + `}`},
		Config: `{"architectures": ["LightOnOCRForConditionalGeneration"], "model_type": "mistral3",
			"image_token_index": 1002, "multimodal_projector_bias": false, "projector_hidden_act": "gelu",
			"spatial_merge_size": 2, "vision_feature_layer": -1, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.0", "text_config": {"model_type": "qwen3", "hidden_size": 64, "head_dim": 16,
			"intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-06, "vocab_size": 1024}, "vision_config": {"attention_dropout": 0.0, "head_dim": 16,
			"hidden_act": "silu", "hidden_size": 32, "image_size": 112, "initializer_range": 0.02,
			"intermediate_size": 64, "model_type": "pixtral", "num_attention_heads": 2, "num_channels": 3,
			"num_hidden_layers": 3, "patch_size": 14, "rope_theta": 10000.0}}`,
		Tensors: `
			bid = vision_config.num_hidden_layers
			model.vision_encoder.patch_conv.weight                                          | 32, 3, 14, 14
			model.vision_encoder.ln_pre.weight                                              | 32
			model.vision_encoder.transformer.layers.{bid}.{attention,ffn}_norm.weight       | 32
			model.vision_encoder.transformer.layers.{bid}.attention.{q,k,v,o}_proj.weight   | 32, 32
			model.vision_encoder.transformer.layers.{bid}.feed_forward.{gate,up}_proj.weight | 64, 32
			model.vision_encoder.transformer.layers.{bid}.feed_forward.down_proj.weight     | 32, 64
			model.vision_projection.linear_1.weight                                         | 64, 32
			model.vision_projection.linear_2.weight                                         | 64, 64
			model.vision_projection.norm.weight                                             | 32
			model.vision_projection.patch_merger.merging_layer.weight                       | 32, 128
			` + textOf("model.language_model."),
	})
}
