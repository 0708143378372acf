package hftest

import "strings"

// siglip returns the table of a SigLIP or CLIP model, with names that begin with p.
func siglip(p string) string {
	return strings.NewReplacer("P.", p).Replace(`
			bid = vision_config.num_hidden_layers
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			patch = vision_config.patch_size
			P.embeddings.patch_embedding.weight                    | w, 3, patch, patch
			P.embeddings.patch_embedding.bias                      | w
			P.embeddings.position_embedding.weight                 | 16, w
			P.encoder.layers.{bid}.layer_norm{1,2}.{weight,bias}   | w
			P.encoder.layers.{bid}.self_attn.{q,k,v,out}_proj.weight | w, w
			P.encoder.layers.{bid}.self_attn.{q,k,v,out}_proj.bias | w
			P.encoder.layers.{bid}.mlp.fc1.weight                  | ff, w
			P.encoder.layers.{bid}.mlp.fc1.bias                    | ff
			P.encoder.layers.{bid}.mlp.fc2.weight                  | w, ff
			P.encoder.layers.{bid}.mlp.fc2.bias                    | w
			P.post_layernorm.{weight,bias}                         | w
			`)
}

// textConfig is the text_config of a multimodal model; $type is its model_type.
const textConfig = `"text_config": {"attention_bias": false, "attention_dropout": 0.0, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
				"intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "$type", "num_attention_heads": 4, "num_hidden_layers": 2,
				"num_key_value_heads": 2, "rms_norm_eps": 1e-05, "use_cache": true, "vocab_size": 1024}`

func textOfType(kind string) string { return strings.Replace(textConfig, "$type", kind, 1) }

func init() {
	add(Spec{
		Name:      "mm_gemma3",
		Encoder:   true,
		Tokenizer: "gemma",
		Config: `{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 1000, "eoi_token_index": 1001, "eos_token_id": [1, 106], "image_token_index": 1002,
			"initializer_range": 0.02, "mm_tokens_per_image": 16, "model_type": "gemma3", ` + textOfType("gemma3_text") + `, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0",
			"vision_config": {"hidden_size": 32, "image_size": 56, "intermediate_size": 64, "model_type": "siglip_vision_model", "num_attention_heads": 2,
				"num_hidden_layers": 3, "patch_size": 14, "vision_use_head": false}}`,
		Files: map[string]string{"preprocessor_config.json": `{"do_convert_rgb": null, "do_pan_and_scan": null, "do_resize": true, "image_processor_type": "Gemma3ImageProcessor",
			"image_seq_length": 1, ` + preSigLIP + `, "resample": 2, "size": {"height": 56, "width": 56}, "processor_class": "Gemma3Processor"}`},
		Tensors: siglip("vision_tower.vision_model.") + `
			multi_modal_projector.mm_input_projection_weight   | w, 64
			multi_modal_projector.mm_soft_emb_norm.weight      | w
			` + textOf("language_model.model."),
		Variants: []Variant{{Name: "bf16", Seed: 3, Out: "bf16",
			Set: `{"vision_config": {"layer_norm_eps": 1e-5, "patch_size": 14}}`}},
	})
	add(Spec{
		Name:      "mm_smolvlm",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["SmolVLMForConditionalGeneration"], "image_token_id": 1002, "model_type": "smolvlm", "scale_factor": 2, "pad_token_id": 2, ` +
			textOfType("llama") + `, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.47.1", "use_cache": false,
			"vision_config": {"hidden_size": 32, "image_size": 56, "intermediate_size": 64, "max_image_size": {"longest_edge": 56}, "model_type": "smolvlm_vision",
				"num_attention_heads": 2, "num_hidden_layers": 3, "patch_size": 14, "size": {"longest_edge": 224}, "tie_word_embeddings": false, "use_base_siglip": false}}`,
		Files: map[string]string{"preprocessor_config.json": `{"do_convert_rgb": true, "do_image_splitting": true, "do_pad": true, "do_resize": true,
			"image_processor_type": "SmolVLMImageProcessor", ` + preSigLIP + `, "max_image_size": {"longest_edge": 56}, "resample": 1, "size": {"longest_edge": 224}}`},
		Tensors: siglip("model.vision_model.") + `
			model.connector.modality_projection.proj.weight   | 64, 4*w
			lm_head.weight                                     | 1024, 64
			` + textOf("model.text_model."),
	})
	add(Spec{
		Name:      "mm_idefics3",
		Encoder:   true,
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Idefics3ForConditionalGeneration"], "image_token_id": 1002, "model_type": "idefics3", "scale_factor": 2, "pad_token_id": 2, ` +
			textOfType("llama") + `, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.46.0.dev0", "use_cache": true,
			"vision_config": {"hidden_size": 32, "image_size": 56, "intermediate_size": 64, "model_type": "idefics3", "num_attention_heads": 2, "num_hidden_layers": 3,
				"patch_size": 14}}`,
		Files: map[string]string{"preprocessor_config.json": `{"do_convert_rgb": true, "do_image_splitting": true, "do_pad": true, "do_resize": true,
			"image_processor_type": "Idefics3ImageProcessor", ` + preSigLIP + `, "max_image_size": {"longest_edge": 56}, "resample": 1}`},
		Tensors: siglip("model.vision_model.") + `
			model.connector.modality_projection.proj.weight   | 64, 4*w
			` + textOf("model.text_model."),
	})
}
