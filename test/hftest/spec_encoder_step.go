package hftest

func init() {
	const tensors = `
			bid = vision_config.layers
			w = vision_config.width
			vision_model.conv1.weight                                          | w, 3, 14, 14
			vision_model.positional_embedding                                  | 16, w
			vision_model.ln_pre.{weight,bias}                                  | w
			vision_model.transformer.resblocks.{bid}.ln_{1,2}.{weight,bias}    | w
			vision_model.transformer.resblocks.{bid}.attn.in_proj_weight       | 3*w, w
			vision_model.transformer.resblocks.{bid}.attn.in_proj_bias         | 3*w
			vision_model.transformer.resblocks.{bid}.attn.out_proj.weight      | w, w
			vision_model.transformer.resblocks.{bid}.attn.out_proj.bias        | w
			vision_model.transformer.resblocks.{bid}.ls_{1,2}.gamma            | w
			vision_model.transformer.resblocks.{bid}.mlp.c_fc.weight           | 96, w
			vision_model.transformer.resblocks.{bid}.mlp.c_fc.bias             | 96
			vision_model.transformer.resblocks.{bid}.mlp.c_proj.weight         | w, 96
			vision_model.transformer.resblocks.{bid}.mlp.c_proj.bias           | w
			vision_model.vit_downsampler1.weight                               | 64, w, 3, 3
			vision_model.vit_downsampler1.bias                                 | 64
			vision_model.vit_downsampler2.weight                               | 128, 64, 3, 3
			vision_model.vit_downsampler2.bias                                 | 128
			vit_large_projector.weight                                         | 64, 128
			`
	// the reference asserts the sizes of Step3-VL-10B
	noAsserts := []string{"--no-asserts", "step3"}
	const root = `"im_end_token": "<im_end>", "im_patch_token": "<im_patch>", "im_start_token": "<im_start>", "image_token_id": 1001, "image_token_len": 169, "patch_token_len": 81,
			"projector_bias": false, "understand_projector_stride": 2, "use_im_start_end": "true", "vision_select_layer": -1, `
	add(Spec{
		Name:        "mm_step3_vl",
		Encoder:     true,
		Tokenizer:   "bpe:qwen2",
		OracleFlags: noAsserts,
		Config: `{"architectures": ["StepVLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_step_vl.StepRoboticsConfig"}, "model_type": "step_robotics", ` + root + textOfType("qwen3") + `,
			"torch_dtype": "bfloat16", "transformers_version": "4.57.0", "vision_config": {"heads": 2, "hidden_act": "quick_gelu", "image_size": 56, "layers": 3, "ls_init_value": 0.1,
				"mlp_ratio": 3.0, "output_dim": null, "patch_size": 14, "pool_type": "none", "use_abs_posemb": true, "use_cls_token": false, "use_ln_post": false, "use_rope2d": true, "width": 32}}`,
		Tensors: tensors + textOf("model.") + "lm_head.weight | 1024, 64\n",
	})
	add(Spec{
		Name:        "mm_step3p7",
		Encoder:     true,
		Tokenizer:   "bpe:laguna",
		OracleFlags: noAsserts,
		Config: `{"architectures": ["Step3p7ForConditionalGeneration"], "model_type": "step3p7", ` + root + textOfType("step3p5") + `, "transformers_version": "4.57.1",
			"vision_config": {"heads": 2, "hidden_act": "quick_gelu", "image_size": 56, "intermediate_size": 96, "layer_norm_eps": 1e-06, "layers": 3, "ls_init_value": 0.1,
				"model_type": "perception_encoder", "output_dim": null, "patch_size": 14, "pool_type": "none", "use_cls_token": false, "use_ln_post": false, "width": 32}}`,
		Files:   map[string]string{"preprocessor_config.json": `{` + preSigLIP + `}`},
		Tensors: tensors + textOf("model.language_model."),
	})
}
