package hftest

import "strings"

func init() {
	// as DeepSeek-OCR, and Unlimited-OCR
	const text = `"bos_token_id": $bos, "eos_token_id": $eos, "first_k_dense_replace": 1, "hidden_size": 64, "intermediate_size": 96, "kv_lora_rank": null, "lm_head": true,
			"max_position_embeddings": 8192, "moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 2, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4, "q_lora_rank": null, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "rm_head": false,
			"topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16", "use_mla": false, "v_head_dim": 0, "vocab_size": 1024`
	const sam = `"sam_vit_b": {"downsample_channels": [24, 32], "global_attn_indexes": [2, 5, 8, 11], "heads": 2, "layers": 4, "width": 32}`
	config := func(class, vision string) string {
		return `{"_name_or_path": "deepseek-ai/DeepSeek-OCR", "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "architectures": ["` + class + `"],
			"auto_map": {"AutoConfig": "modeling_deepseekocr.DeepseekOCRConfig", "AutoModel": "modeling_deepseekocr.DeepseekOCRForCausalLM"},
			"language_config": {"architectures": ["DeepseekV2ForCausalLM"], "auto_map": {"AutoConfig": "configuration_deepseekv2.DeepseekV2Config"}, ` + text + `},
			"model_type": "deepseek_vl_v2", "projector_config": {"input_dim": 64, "model_type": "mlp_projector", "n_embed": 64, "projector_type": "linear"}, "tile_tag": "2D",
			"transformers_version": "4.46.3", "vision_config": {"image_size": 1024, "mlp_ratio": 3.7362, "model_name": "deeplip_b_l", "model_type": "vision", ` + vision + `}, ` + text + `}`
	}
	files := func(further string) map[string]string {
		return map[string]string{"processor_config.json": `{"add_special_token": false, "candidate_resolutions": [[1024, 1024]], "downsample_ratio": 4, "ignore_id": -100, "image_mean": [0.5, 0.5, 0.5],
			"image_std": [0.5, 0.5, 0.5], "image_token": "<image>", "mask_prompt": false, "normalize": true, "pad_token": "<pad>", "patch_size": 16,
			"processor_class": "DeepseekVLV2Processor", "sft_format": "deepseek"` + further + `}`}
	}
	samTensors := func(out string) string {
		return strings.NewReplacer("OUT", out).Replace(`
			model.sam_model.pos_embed                                       | 1, 64, 64, 32
			model.sam_model.patch_embed.proj.weight                         | 32, 3, 16, 16
			model.sam_model.patch_embed.proj.bias                           | 32
			model.sam_model.blocks.{0,1,2,3}.norm{1,2}.{weight,bias}        | 32
			model.sam_model.blocks.{0,1,3}.attn.rel_pos_{h,w}               | 27, 16
			model.sam_model.blocks.2.attn.rel_pos_{h,w}                     | 127, 16
			model.sam_model.blocks.{0,1,2,3}.attn.qkv.weight                | 96, 32
			model.sam_model.blocks.{0,1,2,3}.attn.qkv.bias                  | 96
			model.sam_model.blocks.{0,1,2,3}.attn.proj.weight               | 32, 32
			model.sam_model.blocks.{0,1,2,3}.attn.proj.bias                 | 32
			model.sam_model.blocks.{0,1,2,3}.mlp.lin1.weight                | 128, 32
			model.sam_model.blocks.{0,1,2,3}.mlp.lin1.bias                  | 128
			model.sam_model.blocks.{0,1,2,3}.mlp.lin2.weight                | 32, 128
			model.sam_model.blocks.{0,1,2,3}.mlp.lin2.bias                  | 32
			model.sam_model.neck.0.weight                                   | 16, 32, 1, 1
			model.sam_model.neck.{1,3}.{weight,bias}                        | 16
			model.sam_model.neck.2.weight                                   | 16, 16, 3, 3
			model.sam_model.net_2.weight                                    | 24, 16, 3, 3
			model.sam_model.net_3.weight                                    | OUT, 24, 3, 3
			model.view_seperator                                            | 64
			model.projector.layers.bias                                     | 64
			lm_head.weight                                                  | 1024, 64
			` + textOf("model."))
	}
	clip := samTensors("32") + `
			bid = 5
			w = 32
			model.vision_model.embeddings.class_embedding                   | w
			model.vision_model.embeddings.patch_embedding.weight            | w, 3, 14, 14
			model.vision_model.embeddings.position_embedding.weight         | 257, w
			model.vision_model.pre_layrnorm.{weight,bias}                   | w
			model.vision_model.transformer.layers.{bid}.layer_norm{1,2}.{weight,bias} | w
			model.vision_model.transformer.layers.{bid}.self_attn.qkv_proj.weight | 3*w, w
			model.vision_model.transformer.layers.{bid}.self_attn.qkv_proj.bias | 3*w
			model.vision_model.transformer.layers.{bid}.self_attn.out_proj.weight | w, w
			model.vision_model.transformer.layers.{bid}.self_attn.out_proj.bias | w
			model.vision_model.transformer.layers.{bid}.mlp.fc1.weight      | 128, w
			model.vision_model.transformer.layers.{bid}.mlp.fc1.bias        | 128
			model.vision_model.transformer.layers.{bid}.mlp.fc2.weight      | w, 128
			model.vision_model.transformer.layers.{bid}.mlp.fc2.bias        | w
			model.projector.layers.weight                                   | 64, 2*w
			model.image_newline                                             | 64
			`
	const widths = `"width": {"clip-l-14-224": {"heads": 2, "image_size": 224, "layers": 5, "patch_size": 14, "width": 32}, ` + sam + `}`
	add(Spec{
		Name:      "mm_deepseek_ocr",
		Encoder:   true,
		Tokenizer: "bpe:deepseek-v3",
		Config:    config("DeepseekOCRForCausalLM", widths),
		Files:     files(""),
		Tensors:   clip,
		Variants: []Variant{{Name: "bf16", Seed: 3, Out: "bf16", DType: "F16",
			Set: `{"vision_config": {"layer_norm_eps": 1e-5, "window_size": 7}}`}},
	})
	add(Spec{
		Name:      "mm_unlimited_ocr",
		Encoder:   true,
		Tokenizer: "bpe:deepseek-v3",
		Config:    strings.Replace(config("UnlimitedOCRForCausalLM", widths), `"deepseek_vl_v2"`, `"unlimited-ocr"`, 1),
		Files:     files(`, "image_seq_length": 64`),
		Tensors:   clip,
	})
	add(Spec{
		Name:      "mm_deepseek_ocr2",
		Encoder:   true,
		Tokenizer: "bpe:deepseek-v3",
		Config: strings.Replace(config("DeepseekOCR2ForCausalLM",
			`"intermediate_size": 96, "layers": 5, "width": {"qwen2-0-5b": {"dim": 56}, `+sam+`}`),
			"deeplip_b_l", "deepencoderv2", 1),
		Files: files(""),
		Tensors: samTensors("56") + `
			bid = vision_config.layers
			w = 56
			ff = vision_config.intermediate_size
			model.qwen2_model.query_768.weight                              | 144, w
			model.qwen2_model.query_1024.weight                             | 256, w
			model.qwen2_model.model.model.norm.weight                       | w
			model.qwen2_model.model.model.layers.{bid}.{input,post_attention}_layernorm.weight | w
			model.qwen2_model.model.model.layers.{bid}.self_attn.{q,o}_proj.weight | w, w
			model.qwen2_model.model.model.layers.{bid}.self_attn.q_proj.bias | w
			model.qwen2_model.model.model.layers.{bid}.self_attn.{k,v}_proj.weight | 8, w
			model.qwen2_model.model.model.layers.{bid}.self_attn.{k,v}_proj.bias | 8
			model.qwen2_model.model.model.layers.{bid}.mlp.{gate,up}_proj.weight | ff, w
			model.qwen2_model.model.model.layers.{bid}.mlp.down_proj.weight | w, ff
			model.projector.layers.weight                                   | 64, w
			`,
		Variants: []Variant{{Name: "sixteen", Seed: 3, Out: "bf16", DType: "F16",
			Set: `{"vision_config": {"patch_size": 16, "num_attention_heads": 14}}`}},
	})
}
