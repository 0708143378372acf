package hftest

import "strings"

func init() {
	minicpm := func(pre string) map[string]string {
		return map[string]string{"preprocessor_config.json": `{"image_processor_type": "MiniCPMV4_6ImageProcessor", ` +
			preSigLIP + `, "max_slice_nums": 9, "patch_size": 14, "slice_mode": true, ` + pre + `}`}
	}
	tensors := siglip("model.vision_tower.") + `
		model.vision_tower.vit_merger.layer_norm1.{weight,bias}                  | w
		model.vision_tower.vit_merger.self_attn.{q,k,v,out}_proj.weight          | w, w
		model.vision_tower.vit_merger.self_attn.{q,k,v,out}_proj.bias            | w
		model.vision_tower.vit_merger.pre_norm.{weight,bias}                     | 4*w
		model.vision_tower.vit_merger.linear_1.weight                            | 96, 4*w
		model.vision_tower.vit_merger.linear_1.bias                              | 96
		model.vision_tower.vit_merger.linear_2.weight                            | w, 96
		model.vision_tower.vit_merger.linear_2.bias                              | w
		model.merger.mlp.0.pre_norm.{weight,bias}                                | 4*w
		model.merger.mlp.0.linear_1.weight                                       | 96, 4*w
		model.merger.mlp.0.linear_1.bias                                         | 96
		model.merger.mlp.0.linear_2.weight                                       | 64, 96
		model.merger.mlp.0.linear_2.bias                                         | 64
		` + textOf("model.language_model.")
	add(Spec{
		Name:      "mm_minicpmv4_6",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["MiniCPMV4_6ForConditionalGeneration"], "downsample_mode": "16x", "drop_vision_last_layer": false, "image_size": 56, "image_token_id": 1002, "insert_layer_id": 2,
			"model_type": "minicpmv4_6", ` + textOfType("qwen3_5_text") + `, "torch_dtype": "bfloat16",
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "image_size": 56, "intermediate_size": 64, "layer_norm_eps": 1e-06,
				"model_type": "minicpmv4_6_vision", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "patch_size": 14}}`,
		Files:   minicpm(`"scale_resolution": 28, "downsample_mode": "16x"`),
		Tensors: tensors,
	})
	add(Spec{
		Name:        "mm_minicpmv4_7",
		Encoder:     true,
		Tokenizer:   "bpe:qwen2",
		AddedTokens: []string{"<image>", "</image>", "<slice>", "</slice>"},
		Config: `{"architectures": ["MiniCPMV4_7ForConditionalGeneration"], "downsample_mode": "16x", "drop_vision_last_layer": false, "image_size": 56, "image_token_id": 1002, "insert_layer_id": 2,
			"model_type": "minicpmv4_7", ` + textOfType("qwen3_5_text") + `, "torch_dtype": "bfloat16",
			"vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "image_size": 56, "intermediate_size": 64, "layer_norm_eps": 1e-06,
				"model_type": "minicpmv4_6_vision", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "patch_size": 14}}`,
		Files:    minicpm(`"scale_resolution": 28`),
		Tensors:  tensors,
		Variants: []Variant{{Name: "four", Seed: 3, Out: "bf16", DType: "F16", Set: `{"downsample_mode": "4x"}`}},
	})
	add(Spec{
		Name:      "mm_deepseek_v4",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["DeepseekV4ForCausalLM"], "hidden_size": 64, "model_type": "deepseek_v4",
			"num_hidden_layers": 2, "vocab_size": 1024, "vision_dim": 32, "vision_downsample_ratio": 2,
			"vision_inter_dim": 64, "vision_max_n_token": 384, "vision_max_wh_ratio": 8, "vision_min_pixels": 3136,
			"vision_n_heads": 2, "vision_n_layers": 4, "vision_patch_size": 14, "vision_rope_theta": 10000.0}`,
		Tensors: `
			bid = vision_n_layers
			w = vision_dim
			ff = vision_inter_dim
			vision.patch_embed.proj.weight                | w, 588
			vision.patch_embed.proj.bias                  | w
			vision.blocks.{bid}.norm{1,2}.weight          | w
			vision.blocks.{bid}.attn.wqkv.weight          | 3*w, w
			vision.blocks.{bid}.attn.wqkv.bias            | 3*w
			vision.blocks.{bid}.attn.wo.weight            | w, w
			vision.blocks.{bid}.attn.wo.bias              | w
			vision.blocks.{bid}.mlp.w1.weight             | 2*ff, w
			vision.blocks.{bid}.mlp.w2.weight             | w, ff
			vision.norm.weight                            | w
			aligner.w1.weight                             | 96, 4*w
			aligner.w2.weight                             | 64, 96
			aligner.w1.bias                               | 96
			aligner.w2.bias                               | 64
			image_{newline,start,end,pad}                 | 64
			embed.weight                                  | 1024, 64
			layers.0.attn.wq_a.weight                     | 64, 64
			norm.weight                                   | 64
			head.weight                                   | 1024, 64
			`,
	})
	add(Spec{
		Name:      "mm_youtu_vl",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["YoutuVLForConditionalGeneration"], "hidden_size": 64, "model_type": "youtu_vl",
			"num_hidden_layers": 2, "vocab_size": 1024, "vision_config": {"attention_dropout": 0.0,
			"fullatt_block_indexes": [1, 3], "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32,
			"intermediate_size": 64, "layer_norm_eps": 1e-06, "model_type": "siglip2_vision_model",
			"num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "num_patches": -1,
			"out_hidden_size": 64, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112}}`,
		Files: map[string]string{"preprocessor_config.json": `{"image_processor_type": "Siglip2ImageProcessorFast", ` +
			preSigLIP + `, "max_num_patches": 256, "patch_size": 14}`},
		Tensors: strings.NewReplacer("w, 3, patch, patch", "w, 3*patch*patch", "siglip2.vision_model.embeddings.position_embedding.weight                 | 16, w\n", "").Replace(siglip("siglip2.vision_model.")) + `
			merger.ln_q.weight                            | w
			merger.mlp.0.weight                           | 4*w, 4*w
			merger.mlp.0.bias                             | 4*w
			merger.mlp.2.weight                           | 64, 4*w
			merger.mlp.2.bias                             | 64
			` + textOf("model."),
	})
}
