package hftest

import "strings"

func init() {
	const vision = `"vision_config": {"attention_dropout": 0.0, "head_dim": 16, "hidden_act": "%s", "hidden_size": 32, "image_size": 112, "initializer_range": 0.02,
				"intermediate_size": 64, "model_type": "pixtral", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 3, "patch_size": 14, "rope_theta": 10000.0}`
	const encoder = `
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			vision_tower.patch_conv.weight                                          | w, 3, 14, 14
			vision_tower.ln_pre.weight                                              | w
			vision_tower.transformer.layers.{bid}.{attention,ffn}_norm.weight       | w
			vision_tower.transformer.layers.{bid}.attention.{q,k,v,o}_proj.weight   | w, w
			vision_tower.transformer.layers.{bid}.feed_forward.{gate,up}_proj.weight | ff, w
			vision_tower.transformer.layers.{bid}.feed_forward.down_proj.weight     | w, ff
			multi_modal_projector.linear_1.weight                                   | 64, w
			multi_modal_projector.linear_2.weight                                   | 64, 64
			`
	const text = `"text_config": {"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
				"intermediate_size": 96, "max_position_embeddings": 131072, "model_type": "mistral", "num_attention_heads": 4, "num_hidden_layers": 2,
				"num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0, "sliding_window": null, "use_cache": true, "vocab_size": 1027}`
	const pre = `{"crop_size": null, "do_center_crop": null, "do_convert_rgb": true, "do_resize": true, "data_format": "channels_first", ` + preCLIP + `,
			"image_processor_type": "PixtralImageProcessor", "patch_size": {"height": 14, "width": 14}, "processor_class": "PixtralProcessor", "resample": 3, "size": {"longest_edge": 112}}`
	add(Spec{
		Name:        "mm_pixtral",
		Encoder:     true,
		Tokenizer:   "bpe:llama3",
		AddedTokens: []string{"[IMG]", "[IMG_BREAK]", "[IMG_END]"},
		Config: `{"architectures": ["LlavaForConditionalGeneration"], "ignore_index": -100, "image_seq_length": 1, "image_token_index": 1024, "model_type": "llava",
			"projector_hidden_act": "gelu", "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
			"vision_feature_layer": -1, "vision_feature_select_strategy": "full", ` + text + `, ` + strings.Replace(vision, "%s", "gelu", 1) + `}`,
		Files: map[string]string{"preprocessor_config.json": pre},
		Tensors: encoder + `
			multi_modal_projector.linear_{1,2}.bias           | 64
			model.embed_tokens.weight                         | 1027, 64
			language_model.model.layers.0.mlp.up_proj.weight  | 96, 64
			`,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32"}},
	})
	add(Spec{
		Name:        "mm_mistral3",
		Encoder:     true,
		Tokenizer:   "bpe:llama3",
		AddedTokens: []string{"[IMG]", "[IMG_BREAK]", "[IMG_END]"},
		Config: `{"architectures": ["Mistral3ForConditionalGeneration"], "image_token_index": 1024, "model_type": "mistral3", "multimodal_projector_bias": false,
			"projector_hidden_act": "gelu", "spatial_merge_size": 2, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0", "vision_feature_layer": -1, ` +
			text + `, ` + strings.Replace(vision, "%s", "silu", 1) + `}`,
		Files: map[string]string{"preprocessor_config.json": pre},
		Tensors: encoder + `
			multi_modal_projector.norm.weight                          | w
			multi_modal_projector.patch_merger.merging_layer.weight    | w, 4*w
			language_model.model.embed_tokens.weight                   | 1027, 64
			language_model.lm_head.weight                              | 1027, 64
			language_model.model.layers.0.mlp.up_proj.weight           | 96, 64
			`,
		Variants: []Variant{{Name: "bf16", Seed: 3, DType: "F16", Out: "bf16"}},
	})
}
