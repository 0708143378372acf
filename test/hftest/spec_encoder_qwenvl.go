package hftest

import "strings"

// preCLIP and preSigLIP are the normalization keys of preprocessor_config.json in most vision models.
const (
	preCLIP   = `"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711], "do_normalize": true, "do_rescale": true, "rescale_factor": 0.00392156862745098`
	preSigLIP = `"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "do_normalize": true, "do_rescale": true, "rescale_factor": 0.00392156862745098`
)

// textOf returns a few tensors of the language model, with names that begin with prefix.
func textOf(prefix string) string {
	return `
		` + prefix + `embed_tokens.weight                    | 1024, 64
		` + prefix + `layers.{0,1}.self_attn.q_proj.weight   | 64, 64
		` + prefix + `norm.weight                            | 64
		`
}

func init() {
	const text = `"attention_dropout": 0.0, "bos_token_id": $pad, "eos_token_id": $eos, "vision_start_token_id": 1000,
			"vision_end_token_id": 1001, "vision_token_id": 1001, "image_token_id": 1002, "video_token_id": 1002, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 2,
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": 32768,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.41.2", "use_cache": true, "use_sliding_window": false,
			"rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]}, "vocab_size": 1024`
	const pre = `{"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2, ` + preCLIP + `,
			"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2VLProcessor"}`
	add(Spec{
		Name:      "mm_qwen2_vl",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl", ` + text + `,
			"vision_config": {"depth": 4, "embed_dim": 32, "mlp_ratio": 4, "num_heads": 2, "in_chans": 3, "hidden_size": 64, "patch_size": 14,
				"spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": pre},
		Tensors: `
			bid = vision_config.depth
			w = vision_config.embed_dim
			visual.patch_embed.proj.weight                      | w, 3, 2, 14, 14
			visual.blocks.{bid}.norm{1,2}.{weight,bias}         | w
			visual.blocks.{bid}.attn.qkv.weight                 | 3*w, w
			visual.blocks.{bid}.attn.qkv.bias                   | 3*w
			visual.blocks.{bid}.attn.proj.weight                | w, w
			visual.blocks.{bid}.attn.proj.bias                  | w
			visual.blocks.{bid}.mlp.fc1.weight                  | 4*w, w
			visual.blocks.{bid}.mlp.fc1.bias                    | 4*w
			visual.blocks.{bid}.mlp.fc2.weight                  | w, 4*w
			visual.blocks.{bid}.mlp.fc2.bias                    | w
			visual.merger.ln_q.{weight,bias}                    | w
			visual.merger.mlp.0.weight                          | 4*w, 4*w
			visual.merger.mlp.0.bias                            | 4*w
			visual.merger.mlp.2.weight                          | 64, 4*w
			visual.merger.mlp.2.bias                            | 64
			` + textOf("model."),
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32"},
			{Name: "auto", Seed: 4, Out: "auto", Set: `{"vision_config": {"image_size": 336}}`}},
	})
	add(Spec{
		Name:      "mm_qwen2_5_vl",
		Encoder:   true,
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", ` + text + `,
			"vision_config": {"depth": 4, "hidden_act": "silu", "hidden_size": 32, "intermediate_size": 64, "num_heads": 2, "in_chans": 3, "out_hidden_size": 64,
				"patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112, "fullatt_block_indexes": [1, 3], "tokens_per_second": 2,
				"temporal_patch_size": 2}}`,
		Files: map[string]string{"preprocessor_config.json": pre},
		Tensors: `
			bid = vision_config.depth
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			visual.patch_embed.proj.weight                      | w, 3, 2, 14, 14
			visual.blocks.{bid}.norm{1,2}.weight                | w
			visual.blocks.{bid}.attn.qkv.weight                 | 3*w, w
			visual.blocks.{bid}.attn.qkv.bias                   | 3*w
			visual.blocks.{bid}.attn.proj.weight                | w, w
			visual.blocks.{bid}.attn.proj.bias                  | w
			visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | ff, w
			visual.blocks.{bid}.mlp.{gate,up}_proj.bias         | ff
			visual.blocks.{bid}.mlp.down_proj.weight            | w, ff
			visual.blocks.{bid}.mlp.down_proj.bias              | w
			visual.merger.ln_q.weight                           | w
			visual.merger.mlp.0.weight                          | 4*w, 4*w
			visual.merger.mlp.0.bias                            | 4*w
			visual.merger.mlp.2.weight                          | 64, 4*w
			visual.merger.mlp.2.bias                            | 64
			` + textOf("model."),
		Variants: []Variant{{Name: "bf16", Seed: 3, DType: "F16", Out: "bf16",
			Set: `{"vision_config": {"fullatt_block_indexes": [3], "depth": 5}}`}},
	})
	v := *Lookup("mm_qwen2_vl")
	v.Name = "mm_sarashina2"
	v.Config = strings.NewReplacer("Qwen2VLForConditionalGeneration", "Sarashina2VisionForCausalLM",
		`"model_type": "qwen2_vl"`, `"model_type": "sarashina2_vision"`, `"rms_norm_eps": 1e-05, `,
		"").Replace(v.Config)
	v.Tensors = strings.ReplaceAll(v.Tensors, "\t\tmodel.", "\t\tllm.model.") + "norm.weight | 64\n"
	v.Variants = nil
	add(v)
}
