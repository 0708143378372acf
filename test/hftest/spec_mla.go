package hftest

import "strings"

// The specs of this file are models with DeepSeek's attention (MLA).

// mlaNextN is deepseekMLA with MTP layers after the others.
var mlaNextN = strings.Replace(deepseekMLA, "bid = num_hidden_layers", "bid = num_hidden_layers + opt(num_nextn_predict_layers)", 1) + `
	model.layers.{bid}.eh_proj.weight                         | hidden_size, 2*hidden_size | if bid >= num_hidden_layers
	model.layers.{bid}.{enorm,hnorm,shared_head.norm}.weight  | hidden_size                | if bid >= num_hidden_layers
	model.layers.{bid}.{embed_tokens,shared_head.head}.weight | vocab_size, hidden_size    | if bid >= num_hidden_layers && !opt(shared_nextn)
	model.layers.{bid}.mlp.gate.e_score_correction_bias       | n_routed_experts           | if bid >= first_k_dense_replace | as F32
`

// mlaIndexer are the tensors of DeepSeek sparse attention's indexer, which layers with a shared indexer lack.
const mlaIndexer = `
	model.layers.{bid}.self_attn.indexer.k_norm.{weight,bias} | index_head_dim               | if opt(indexer_types[bid]) != "shared" | if opt(indexer_types) || !opt(index_topk_freq) || bid % index_topk_freq == 0 | as F32
	model.layers.{bid}.self_attn.indexer.weights_proj.weight  | index_n_heads, hidden_size   | if opt(indexer_types[bid]) != "shared" | if opt(indexer_types) || !opt(index_topk_freq) || bid % index_topk_freq == 0
	model.layers.{bid}.self_attn.indexer.wk.weight            | index_head_dim, hidden_size  | if opt(indexer_types[bid]) != "shared" | if opt(indexer_types) || !opt(index_topk_freq) || bid % index_topk_freq == 0
	model.layers.{bid}.self_attn.indexer.wq_b.weight          | index_n_heads*index_head_dim, q_lora_rank | if opt(indexer_types[bid]) != "shared" | if opt(indexer_types) || !opt(index_topk_freq) || bid % index_topk_freq == 0
`

// deepseekTokenizer is a tokenizer_config.json with a BOS token, which the reference demands.
const deepseekTokenizer = `{"add_bos_token": true, "add_eos_token": false, "bos_token": {"__type": "AddedToken",
	"content": "<｜begin▁of▁sentence｜>", "lstrip": false, "normalized": true, "rstrip": false, "single_word": false},
	"clean_up_tokenization_spaces": false, "eos_token": {"__type": "AddedToken", "content": "<｜end▁of▁sentence｜>",
	"lstrip": false, "normalized": true, "rstrip": false, "single_word": false}, "legacy": true,
	"model_max_length": 131072, "pad_token": {"__type": "AddedToken", "content": "<｜▁pad▁｜>", "lstrip": false,
	"normalized": true, "rstrip": false, "single_word": false}, "sp_model_kwargs": {}, "unk_token": null,
	"tokenizer_class": "LlamaTokenizerFast"}`

func init() {
	add(Spec{
		Name:      "deepseek-v3.2",
		Tokenizer: "bpe:deepseek-v3",
		Files:     map[string]string{"tokenizer_config.json": deepseekTokenizer},
		Config: `{"architectures": ["DeepseekV32ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "ep_size": 1, "first_k_dense_replace": 1, "hidden_act": "silu",
			"hidden_size": 64, "index_head_dim": 128, "index_n_heads": 2, "index_topk": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 163840,
			"model_type": "deepseek_v32", "moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 2,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 3, "num_key_value_heads": 4, "num_nextn_predict_layers": 1,
			"q_lora_rank": 64, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
			"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 10000,
			"routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": false, "topk_group": 1,
			"topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.44.2", "use_cache": true,
			"v_head_dim": 16, "vocab_size": 1024}`,
		Tensors: mlaNextN + mlaIndexer + deepseekExperts,
		Variants: []Variant{{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"num_nextn_predict_layers": null,
			"n_group": 1, "n_routed_experts": 11, "rope_scaling": null, "routed_scaling_factor": null}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 5, Out: "f32", Flags: []string{"--no-nextn"}}},
	})
	add(Spec{
		Name:      "glm-5",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["GlmMoeDsaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"dtype": "bfloat16", "eos_token_id": [1000, 1007, 1009], "ep_size": 1, "first_k_dense_replace": 1,
			"hidden_act": "silu", "head_dim": 16, "hidden_size": 64, "index_head_dim": 128, "index_n_heads": 2,
			"index_topk": 64, "indexer_rope_interleave": true, "initializer_range": 0.02, "intermediate_size": 96,
			"kv_lora_rank": 32, "max_position_embeddings": 202752, "model_type": "glm_moe_dsa",
			"moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 4,
			"n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 4, "num_nextn_predict_layers": 1, "pad_token_id": $pad,
			"pretraining_tp": 1, "q_lora_rank": 64, "qk_head_dim": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16,
			"rms_norm_eps": 1e-05, "rope_interleave": true, "rope_parameters": {"rope_theta": 1000000,
			"rope_type": "default"}, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
			"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
			"transformers_version": "5.0.2.dev0", "use_cache": true, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: mlaNextN + mlaIndexer + deepseekExperts,
		Variants: []Variant{
			{Name: "shared", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_nextn_predict_layers": null, "index_topk_freq": 2, "index_skip_topk_offset": 1,
					"num_hidden_layers": 4}`},
			{Name: "listed", Seed: 4, Out: "bf16", Set: `{"num_hidden_layers": 4, "num_nextn_predict_layers": 0,
				"indexer_types": ["full", "shared", "full", "shared"], "index_topk_freq": 2,
				"rope_parameters": {"rope_theta": 1000000, "rope_type": "default", "partial_rotary_factor": 1.0}}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 6, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
	add(Spec{
		Name:      "glm-4.7-flash",
		Tokenizer: "bpe:glm4",
		Config: `{"architectures": ["Glm4MoeLiteForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"pad_token_id": $pad, "eos_token_id": [1000, 1007, 1009], "hidden_act": "silu", "hidden_size": 64,
			"intermediate_size": 96, "max_position_embeddings": 202752, "model_type": "glm4_moe_lite",
			"moe_intermediate_size": 32, "topk_method": "noaux_tc", "norm_topk_prob": true, "num_attention_heads": 4,
			"n_group": 1, "topk_group": 1, "n_routed_experts": 4, "n_shared_experts": 1, "routed_scaling_factor": 1.8,
			"num_experts_per_tok": 2, "first_k_dense_replace": 1, "num_hidden_layers": 3, "num_key_value_heads": 4,
			"num_nextn_predict_layers": 1, "partial_rotary_factor": 1.0, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 1000000, "tie_word_embeddings": false, "dtype": "bfloat16",
			"transformers_version": "5.0.0rc0", "q_lora_rank": 48, "kv_lora_rank": 32, "qk_nope_head_dim": 16,
			"qk_rope_head_dim": 16, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: mlaNextN + deepseekExperts,
		Variants: []Variant{
			{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"num_nextn_predict_layers": 0, "n_routed_experts": 11}`},
			{Name: "own-head", Seed: 4, Out: "bf16", Set: `{"shared_nextn": true, "num_hidden_layers": 2}`},
			{Name: "draft", Seed: 5, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 6, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
}

func init() {
	const (
		kimi = `"aux_loss_alpha": 0.001, "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $bos, "eos_token_id": $eos, "ep_size": 1, "first_k_dense_replace": 1,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 131072,
			"moe_intermediate_size": 32, "moe_layer_freq": 1, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 2, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4, "num_nextn_predict_layers": 0, "pretraining_tp": 1, "qk_nope_head_dim": 16,
			"qk_rope_head_dim": 8, "rms_norm_eps": 1e-05, "routed_scaling_factor": 2.446, "scoring_func": "sigmoid", "seq_aux": true, "tie_word_embeddings": false,
			"topk_group": 1, "topk_method": "noaux_tc", "torch_dtype": "bfloat16", "use_cache": true, "v_head_dim": 16, "vocab_size": 1024, `
		experts = `
			model.layers.{bid}.mlp.gate.e_score_correction_bias | n_routed_experts | if bid >= first_k_dense_replace | as F32
			`
	)
	add(Spec{
		Name:      "kimi-vl",
		NoLoad:    "the runtime recognizes this model by its 27 layers; the made-up one has fewer",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["KimiVLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_kimi_vl.KimiVLConfig"}, "ignore_index": -100,
			"media_placeholder_token_id": 1002, "model_type": "kimi_vl", "torch_dtype": "bfloat16", "transformers_version": "4.50.3", "vocab_size": 1024,
			"text_config": {` + kimi + `"model_type": "deepseek_v3", "q_lora_rank": null, "rope_scaling": null, "rope_theta": 800000.0},
			"vision_config": {"hidden_size": 32, "init_pos_emb_height": 64, "init_pos_emb_width": 64, "intermediate_size": 64, "merge_kernel_size": [2, 2], "model_type": "moonvit",
				"num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 14, "torch_dtype": "bfloat16"}}`,
		Tensors: prefixed("language_model.", strings.ReplaceAll(deepseekMLA+experts+deepseekExperts, "\n\t", "\n")) + `
			vision_tower.patch_embed.proj.weight         | 32, 3, 14, 14
			vision_tower.encoder.blocks.0.wqkv.weight    | 96, 32
			multi_modal_projector.linear_1.{weight,bias} | 64
			`,
		Variants: []Variant{{Name: "named", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"text_config": {"architectures": ["DeepseekV3ForCausalLM"], "q_lora_rank": 48}}`}},
	})
	add(Spec{
		Name:      "kimi-k2.5",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["KimiK25ForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_kimi_k25.KimiK25Config"}, "bos_token_id": $bos, "dtype": "bfloat16",
			"eos_token_id": $eos, "ignore_index": -100, "media_placeholder_token_id": 1002, "model_type": "kimi_k25", "pad_token_id": $eos, "tie_word_embeddings": false,
			"text_config": {` + kimi + `"model_type": "kimi_k2", "q_lora_rank": 48, "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 64.0, "mscale": 1.0, "mscale_all_dim": 1.0,
				"original_max_position_embeddings": 4096, "type": "yarn"}, "rope_theta": 50000.0},
			"use_unified_vision_chunk": true, "video_placeholder": "<|kimi_k25_video_placeholder|>", "vision_config": {"merge_kernel_size": [2, 2], "mm_hidden_size": 32,
				"mm_projector_type": "patchmerger", "model_type": "", "patch_size": 14, "vt_hidden_size": 32, "vt_intermediate_size": 64, "vt_num_attention_heads": 2, "vt_num_hidden_layers": 1}}`,
		Tensors: prefixed("language_model.", strings.ReplaceAll(deepseekMLA+experts+deepseekExperts, "\n\t", "\n")) + `
			vision_tower.patch_embed.proj.weight         | 32, 3, 14, 14
			vision_tower.encoder.blocks.0.wqkv.weight    | 96, 32
			mm_projector.proj.0.{weight,bias}            | 64
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"text_config": {"rope_scaling": null, "n_routed_experts": 11}}`}},
	})
	const youtu = `"attention_bias": false, "attention_dropout": 0.0, "bos_token_id": $bos, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 131072, "mlp_bias": false, "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "q_lora_rank": 48, "qk_head_dim": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-06,
			"rope_interleave": true, "rope_scaling": null, "rope_theta": 1600000, "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "v_head_dim": 16,
			"vocab_size": 1024, `
	mlp := `
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size
			`
	add(Spec{
		Name:      "youtu",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["YoutuForCausalLM"], "auto_map": {"AutoConfig": "configuration_youtu.YoutuConfig"}, ` + youtu + `"model_type": "youtu_llm",
			"transformers_version": "4.56.0"}`,
		Tensors: deepseekMLA + mlp,
		Variants: []Variant{{Name: "v5", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"model_type": "youtu", "auto_map": null, "tie_word_embeddings": false, "head_dim": null}`}},
	})
	add(Spec{
		Name:      "youtu-vl",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["YoutuVLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_youtu_vl.YoutuVLConfig"}, ` + youtu + `"image_token_id": 1002,
			"model_type": "youtu_vl", "transformers_version": "4.56.0", "vision_config": {"hidden_size": 32, "model_type": "siglip2_vision_model", "num_hidden_layers": 1}}`,
		Tensors: deepseekMLA + mlp + `
			siglip2.vision_model.embeddings.patch_embedding.weight | 32, 96
			merger.mlp.0.{weight,bias}                             | 64
			`,
		Variants: []Variant{{Name: "head", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"tie_word_embeddings": false}`}},
	})
	const ocr = `"bos_token_id": $bos, "eos_token_id": $eos, "first_k_dense_replace": 1, "hidden_size": 64, "intermediate_size": 96, "kv_lora_rank": null, "lm_head": true,
			"max_position_embeddings": 8192, "moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 2, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4, "q_lora_rank": null, "qk_nope_head_dim": 0, "qk_rope_head_dim": 0, "rm_head": false,
			"topk_group": 1, "topk_method": "greedy", "torch_dtype": "bfloat16", "use_mla": false, "v_head_dim": 0, "vocab_size": 1024`
	visionTensors := `
			model.sam_model.patch_embed.proj.weight           | 32, 3, 16, 16
			model.sam_model.blocks.0.attn.rel_pos_h           | 27, 16
			model.vision_model.embeddings.class_embedding     | 32
			model.projector.layers.{weight,bias}              | 64
			model.{image_newline,view_seperator}              | 64
			`
	ocrSpec := Spec{
		Name:      "deepseek-ocr",
		Tokenizer: "bpe:deepseek-v3",
		Config: `{"_name_or_path": "deepseek-ai/DeepSeek-OCR", "candidate_resolutions": [[1024, 1024]], "global_view_pos": "head", "architectures": ["DeepseekOCRForCausalLM"],
			"auto_map": {"AutoConfig": "modeling_deepseekocr.DeepseekOCRConfig", "AutoModel": "modeling_deepseekocr.DeepseekOCRForCausalLM"},
			"language_config": {"architectures": ["DeepseekV2ForCausalLM"], "auto_map": {"AutoConfig": "configuration_deepseekv2.DeepseekV2Config"}, ` + ocr + `},
			"model_type": "deepseek_vl_v2", "projector_config": {"input_dim": 2048, "model_type": "mlp_projector", "n_embed": 64, "projector_type": "linear"}, "tile_tag": "2D",
			"transformers_version": "4.46.3", "vision_config": {"image_size": 1024, "mlp_ratio": 3.7362, "model_name": "deeplip_b_l", "model_type": "vision",
				"width": {"clip-l-14-224": {"heads": 2, "image_size": 224, "layers": 1, "patch_size": 14, "width": 32}, "sam_vit_b": {"downsample_channels": [512, 1024],
				"global_attn_indexes": [2], "heads": 2, "layers": 1, "width": 32}}}, ` + ocr + `}`,
		Tensors: llamaHead + llamaAttention + deepseekExperts + visionTensors,
		Variants: []Variant{{Name: "grouped", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"language_config": {"num_key_value_heads": 2, "sliding_window_size": 512, "rms_norm_eps": 1e-5,
				"rope_theta": 20000, "architectures": null}, "num_key_value_heads": 2}`}},
	}
	add(ocrSpec)
	ocrSpec.Name = "unlimited-ocr"
	ocrSpec.Config = strings.NewReplacer(`["DeepseekOCRForCausalLM"]`, `["UnlimitedOCRForCausalLM"]`,
		`"architectures": ["DeepseekV2ForCausalLM"], `, "").Replace(ocrSpec.Config)
	add(ocrSpec)
	add(Spec{
		Name:      "mistral4",
		Tokenizer: "bpe:llama3",
		Pre:       "tekken",
		Config: `{"architectures": ["Mistral3ForConditionalGeneration"], "dtype": "bfloat16", "image_token_index": 10,
			"model_type": "mistral3", "multimodal_projector_bias": false, "projector_hidden_act": "gelu",
			"spatial_merge_size": 2, "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1, "eos_token_id": 2, "first_k_dense_replace": 0, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32,
			"max_position_embeddings": 1048576, "model_type": "mistral4", "moe_intermediate_size": 32, "n_group": 1,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4, "pretraining_tp": 1,
			"q_lora_rank": 48, "qk_head_dim": 32, "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-06,
			"rope_interleave": true, "rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 128.0,
			"llama_4_scaling_beta": 0.1, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 8192,
			"partial_rotary_factor": 0.5, "rope_theta": 10000.0, "rope_type": "yarn", "type": "yarn"},
			"routed_scaling_factor": 1.0, "sliding_window": null, "tie_word_embeddings": false, "topk_group": 1,
			"use_cache": true, "v_head_dim": 32, "vocab_size": 1024}, "transformers_version": "5.3.0.dev0",
			"vision_config": {"attention_dropout": 0.0, "dtype": "bfloat16", "head_dim": 16, "hidden_act": "silu",
			"hidden_size": 32, "image_size": 64, "intermediate_size": 64, "model_type": "pixtral",
			"num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 1, "patch_size": 16,
			"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}, "vision_feature_layer": -1}`,
		Tensors: prefixed("language_model.", strings.ReplaceAll(deepseekMLA+`
			model.layers.{bid}.mlp.gate.weight                          | n_routed_experts, hidden_size
			model.layers.{bid}.mlp.experts.gate_up_proj                 | n_routed_experts, 2*moe_intermediate_size, hidden_size
			model.layers.{bid}.mlp.experts.down_proj                    | n_routed_experts, hidden_size, moe_intermediate_size
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, n_shared_experts*moe_intermediate_size
			`, "\n\t", "\n")) + `
			vision_tower.patch_conv.weight                         | 32, 3, 16, 16
			multi_modal_projector.linear_{1,2}.weight              | 64, 32
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"text_config": {"rope_parameters": null, "n_group": null, "routed_scaling_factor": null}}`}},
	})
}

func init() {
	add(Spec{
		Name:      "deepseek-v4",
		Tokenizer: "bpe:deepseek-v3",
		Config: `{"architectures": ["DeepseekV4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "expert_dtype": "fp4", "hc_eps": 1e-06, "hc_mult": 4,
			"hc_sinkhorn_iters": 20, "head_dim": 64, "hidden_act": "silu", "hidden_size": 256, "index_head_dim": 128,
			"index_n_heads": 2, "index_topk": 64, "initializer_range": 0.02, "max_position_embeddings": 1048576,
			"model_type": "deepseek_v4", "moe_intermediate_size": 64, "n_routed_experts": 4, "n_shared_experts": 1,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4,
			"num_hash_layers": 1, "num_key_value_heads": 1, "num_nextn_predict_layers": 1, "o_groups": 2,
			"o_lora_rank": 64, "q_lora_rank": 64, "qk_rope_head_dim": 16,
			"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
			"scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 65536,
			"type": "yarn"}, "rope_theta": 10000, "compress_rope_theta": 160000, "routed_scaling_factor": 1.5,
			"scoring_func": "sqrtsoftplus", "sliding_window": 128, "swiglu_limit": 10.0, "tie_word_embeddings": false,
			"topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.57.1", "use_cache": true,
			"vocab_size": 1024, "compress_ratios": [0, 4, 128, 4, 0]}`,
		Tensors: deepseekV4,
		Variants: []Variant{
			{Name: "f32", Seed: 3, Shards: 2, Out: "f32", Set: `{"vision_n_layers": 1, "num_hash_layers": 2}`},
			{Name: "auto", Seed: 4, Out: "auto",
				Set: `{"num_hash_layers": 0, "n_routed_experts": 11, "rope_scaling": null, "compress_ratios": [128, 4,
					4, 0]}`},
			{Name: "draft", Seed: 5, Out: "bf16", Flags: []string{"--mtp"}},
		},
	})
}

// The block draft model of DeepSeek V4: as a checkpoint of its own and inside that of the model.
func init() {
	add(Spec{
		Name:      "dspark-deepseek4",
		Tokenizer: "bpe:deepseek-v3",
		Target:    "deepseek-v4",
		NoLoad:    draftAlone,
		Config: `{"architectures": ["DeepseekV4DSparkModel"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "dspark_block_size": 5, "dspark_markov_rank": 32, "dspark_noise_token_id": 1003,
			"dspark_target_layer_ids": [1, 2, 3], "eos_token_id": $eos, "expert_dtype": "fp4", "hc_eps": 1e-06,
			"hc_mult": 4, "hc_sinkhorn_iters": 20, "head_dim": 64, "hidden_act": "silu", "hidden_size": 256,
			"index_head_dim": 128, "index_n_heads": 2, "index_topk": 64, "initializer_range": 0.02,
			"max_position_embeddings": 1048576, "model_type": "deepseek_v4", "moe_intermediate_size": 64,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 4, "num_hash_layers": 1, "num_key_value_heads": 1,
			"num_nextn_predict_layers": 1, "o_groups": 2, "o_lora_rank": 64, "q_lora_rank": 64, "qk_rope_head_dim": 16,
			"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
			"scale_fmt": "ue8m0", "weight_block_size": [128, 128]}, "rms_norm_eps": 1e-06,
			"rope_scaling": {"beta_fast": 32, "beta_slow": 1, "factor": 16, "original_max_position_embeddings": 65536,
			"type": "yarn"}, "rope_theta": 10000, "compress_rope_theta": 160000, "routed_scaling_factor": 1.5,
			"scoring_func": "sqrtsoftplus", "sliding_window": 128, "swiglu_limit": 10.0, "tie_word_embeddings": false,
			"topk_method": "noaux_tc", "torch_dtype": "bfloat16", "transformers_version": "4.57.1", "use_cache": true,
			"vocab_size": 1024, "compress_ratios": [0, 4, 128, 4, 0, 0, 0]}`,
		Tensors: `
			bid = num_hidden_layers
			mid = 3
			xid = n_routed_experts
			{embed,head}.weight                   | vocab_size, hidden_size | if architectures[0] == "DeepseekV4ForCausalLM"
			norm.weight                           | hidden_size             | if architectures[0] == "DeepseekV4ForCausalLM"
			hc_head_base                          | hc_mult | as F32        | if architectures[0] == "DeepseekV4ForCausalLM"
			layers.{bid}.attn_norm.weight         | hidden_size             | if architectures[0] == "DeepseekV4ForCausalLM"
			mtp.0.main_norm.weight                | hidden_size
			mtp.2.norm.weight                     | hidden_size
			mtp.2.hc_head_fn                      | hc_mult, hc_mult*hidden_size | as F32
			mtp.2.hc_head_base                    | hc_mult | as F32
			mtp.2.hc_head_scale                   | 1 | as F32
			mtp.2.markov_head.markov_{w1,w2}.weight | vocab_size, dspark_markov_rank
			mtp.2.confidence_head.proj.weight     | 1, hidden_size + dspark_markov_rank
			mtp.{mid}.ffn.gate.bias               | n_routed_experts | as F32
			mtp.{mid}.ffn.gate.bias_vl            | n_routed_experts | as F32 | if opt(vision_n_layers)
			` + strings.NewReplacer("$n", "mtp.0.main_proj", "$out", "hidden_size", "$in", "3*hidden_size", "$if", "1").Replace(v4FP8) +
			v4Layer("mtp.{mid}") + strings.NewReplacer("$n", "layers.{bid}.attn.wq_a", "$out", "q_lora_rank", "$in",
			"hidden_size",
			"$if", `architectures[0] == "DeepseekV4ForCausalLM"`).Replace(v4FP8),
		Variants: []Variant{
			{Name: "next-to-the-model", Seed: 3, Shards: 2, Out: "bf16", Flags: []string{"--dspark"}, Set: `{"architectures": ["DeepseekV4ForCausalLM"],
				"vision_n_layers": 1, "dspark_target_layer_ids": [2], "rope_scaling": null}`},
		},
	})
}

// v4FP8 is a matrix of DeepSeek V4 in FP8 with its scales.
const v4FP8 = `
	$n.weight | $out, $in | as F8_E4M3 | if $if
	$n.scale  | floor(($out+127)/128), floor(($in+127)/128) | as F8_E8M0 | fill scales | if $if
	`

// v4Layer returns the tensors of a layer of DeepSeek V4 or of its draft model, with names that begin with p, without
// the compressors of keys and values.
func v4Layer(p string) string {
	var b strings.Builder
	put := func(text string, pairs ...string) {
		b.WriteString(strings.NewReplacer(append(pairs, "$if", "1", "$p", p)...).Replace(text))
	}
	put(`
		$p.{attn_norm,ffn_norm}.weight     | hidden_size
		$p.hc_{attn,ffn}_fn                | hc_mult*(hc_mult+2), hc_mult*hidden_size | as F32
		$p.hc_{attn,ffn}_base              | hc_mult*(hc_mult+2) | as F32
		$p.hc_{attn,ffn}_scale             | 3 | as F32
		$p.attn.attn_sink                  | num_attention_heads | as F32
		$p.attn.q_norm.weight              | q_lora_rank
		$p.attn.kv_norm.weight             | head_dim
		$p.ffn.gate.weight                 | n_routed_experts, hidden_size
		`)
	for _, m := range [][3]string{
		{"attn.wq_a", "q_lora_rank", "hidden_size"}, {"attn.wq_b", "num_attention_heads*head_dim", "q_lora_rank"},
		{"attn.wkv", "head_dim", "hidden_size"},
		{"attn.wo_a", "o_groups*o_lora_rank", "num_attention_heads*head_dim/o_groups"},
		{"attn.wo_b", "hidden_size", "o_groups*o_lora_rank"},
		{"ffn.shared_experts.w1", "moe_intermediate_size", "hidden_size"},
		{"ffn.shared_experts.w2", "hidden_size", "moe_intermediate_size"},
		{"ffn.shared_experts.w3", "moe_intermediate_size", "hidden_size"},
	} {
		put(v4FP8, "$n", p+"."+m[0], "$out", m[1], "$in", m[2])
	}
	put(`
		$p.ffn.experts.{xid}.w{1,3}.weight | moe_intermediate_size, hidden_size/2 | as I8 | fill bytes
		$p.ffn.experts.{xid}.w{1,3}.scale  | moe_intermediate_size, hidden_size/32 | as F8_E8M0 | fill scales
		$p.ffn.experts.{xid}.w2.weight     | hidden_size, moe_intermediate_size/2 | as I8 | fill bytes
		$p.ffn.experts.{xid}.w2.scale      | hidden_size, moe_intermediate_size/32 | as F8_E8M0 | fill scales
		`)
	return b.String()
}

// deepseekV4 are the tensors of DeepSeek V4 with its draft model.
var deepseekV4 = func() string {
	const (
		compressed = `
			$p.attn.compressor.ape             | $r, $c*head_dim | as F32 | if $if
			$p.attn.compressor.w{kv,gate}.weight | $c*head_dim, hidden_size | as BF16 | if $if
			$p.attn.compressor.norm.weight     | head_dim | if $if
			`
		indexed = `
			$p.attn.indexer.weights_proj.weight | index_n_heads, hidden_size | as BF16 | if $if
			$p.attn.indexer.compressor.ape     | 4, 2*index_head_dim | as F32 | if $if
			$p.attn.indexer.compressor.w{kv,gate}.weight | 2*index_head_dim, hidden_size | as BF16 | if $if
			$p.attn.indexer.compressor.norm.weight | index_head_dim | if $if
			`
	)
	var b strings.Builder
	put := func(text string, pairs ...string) { b.WriteString(strings.NewReplacer(pairs...).Replace(text)) }
	put(`
		bid = num_hidden_layers
		mid = num_nextn_predict_layers
		xid = n_routed_experts
		embed.weight    | vocab_size, hidden_size
		head.weight     | vocab_size, hidden_size
		norm.weight     | hidden_size
		hc_head_fn      | hc_mult, hc_mult*hidden_size | as F32
		hc_head_base    | hc_mult | as F32
		hc_head_scale   | 1 | as F32
		mtp.{mid}.hc_head_fn    | hc_mult, hc_mult*hidden_size | as F32
		mtp.{mid}.hc_head_base  | hc_mult | as F32
		mtp.{mid}.hc_head_scale | 1 | as F32
		mtp.{mid}.{enorm,hnorm,norm}.weight | hidden_size
		layers.{bid}.ffn.gate.tid2eid | vocab_size, num_experts_per_tok | as I64 | fill every 600 | if bid < num_hash_layers
		layers.{bid}.ffn.gate.bias    | n_routed_experts | as F32
		mtp.{mid}.ffn.gate.bias       | n_routed_experts | as F32
		layers.{bid}.ffn.gate.bias_vl | n_routed_experts | as F32 | if opt(vision_n_layers) && bid < num_hash_layers
		vision.blocks.0.norm1.weight  | 64 | if opt(vision_n_layers)
		aligner.w1.weight             | hidden_size, 64 | if opt(vision_n_layers)
		image_end                     | hidden_size | if opt(vision_n_layers)
		`)
	for _, n := range []string{"e", "h"} {
		put(v4FP8, "$n", "mtp.{mid}."+n+"_proj", "$out", "hidden_size", "$in", "hidden_size", "$if", "1")
	}
	b.WriteString(v4Layer("layers.{bid}") + v4Layer("mtp.{mid}"))
	put(compressed, "$p", "layers.{bid}", "$if", "compress_ratios[bid] == 4", "$r", "4", "$c", "2")
	put(compressed, "$p", "layers.{bid}", "$if", "compress_ratios[bid] == 128", "$r", "128", "$c", "1")
	put(indexed, "$p", "layers.{bid}", "$if", "compress_ratios[bid] == 4")
	put(v4FP8, "$n", "layers.{bid}.attn.indexer.wq_b", "$out", "index_n_heads*index_head_dim", "$in", "q_lora_rank",
		"$if", "compress_ratios[bid] == 4")
	return b.String()
}()

func init() {
	add(Spec{
		Name:      "hy-v4",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["HYV4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_hy_v4.HYV4Config"}, "bos_token_id": $bos, "dtype": "bfloat16",
			"enable_lm_head_fp32": true, "eos_token_id": $eos, "first_k_dense_replace": 1, "hc_eps": 1e-06,
			"hc_magnitude": 2.0, "hc_mult": 4, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"index_head_dim": 128, "index_n_heads": 2, "index_topk": 64, "indexer_types": ["full", "shared", "full"],
			"initializer_range": 0.006, "intermediate_size": 96, "kv_lora_rank": 32, "max_position_embeddings": 262144,
			"mlp_bias": false, "mlp_layer_types": ["dense", "sparse", "sparse"], "model_type": "hy_v4",
			"moe_intermediate_size": 32, "n_group": 1, "n_routed_experts": 4, "n_shared_experts": 1,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 3,
			"num_key_value_heads": 2, "num_nextn_predict_layers": 1, "q_lora_rank": 64, "qk_nope_head_dim": 16,
			"qk_rope_head_dim": 16, "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 10000000.0,
			"rope_type": "default"}, "routed_scaling_factor": 2.5, "swiglu_limit": 10.0, "tie_word_embeddings": false,
			"topk_group": 1, "transformers_version": "5.9.0", "use_cache": true, "v_head_dim": 32, "vocab_size": 1024}`,
		Tensors: deepseekMLA + `
			full = first_k_dense_replace
			model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size                                   | if bid < full
			model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size                                   | if bid < full
			model.layers.{bid}.mlp.gate.weight                          | n_routed_experts, hidden_size                                    | if bid >= full
			model.layers.{bid}.mlp.gate.e_score_correction_bias         | n_routed_experts | as F32                                        | if bid >= full
			model.layers.{bid}.mlp.experts.gate_up_proj                 | n_routed_experts, 2*moe_intermediate_size, hidden_size           | if bid >= full
			model.layers.{bid}.mlp.experts.down_proj                    | n_routed_experts, hidden_size, moe_intermediate_size             | if bid >= full
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | n_shared_experts*moe_intermediate_size, hidden_size              | if bid >= full
			model.layers.{bid}.mlp.shared_experts.down_proj.weight      | hidden_size, n_shared_experts*moe_intermediate_size              | if bid >= full
			model.layers.{bid}.self_attn.linear_gate.weight             | num_attention_heads*v_head_dim, hidden_size
			model.layers.{bid}.self_attn.learnable_sink_param           | num_attention_heads | as F32
			model.layers.{bid}.self_attn.indexer.k_norm.{weight,bias}   | index_head_dim | as F32                                          | if indexer_types[bid] == "full"
			model.layers.{bid}.self_attn.indexer.weights_proj.weight    | index_n_heads, hidden_size                                       | if indexer_types[bid] == "full"
			model.layers.{bid}.self_attn.indexer.wk.weight              | index_head_dim, hidden_size                                      | if indexer_types[bid] == "full"
			model.layers.{bid}.self_attn.indexer.wq_b.weight            | index_n_heads*index_head_dim, q_lora_rank                        | if indexer_types[bid] == "full"
			model.layers.{bid}.hc_{attn,mlp}_layer.hc_pre.hc_fn         | 2*hc_mult, hc_mult*hidden_size | as F32
			model.layers.{bid}.hc_{attn,mlp}_layer.hc_pre.hc_base       | 2*hc_mult | as F32
			model.layers.{bid}.hc_{attn,mlp}_layer.hc_pre.hc_scale      | 2 | as F32
			model.hc_head.hc_head_fn                                    | hc_mult, hc_mult*hidden_size | as F32
			model.hc_head.hc_head_base                                  | hc_mult | as F32
			model.hc_head.hc_head_scale                                 | 1 | as F32
			model.mtp_layers.0.eh_proj.weight                           | hidden_size, 2*hidden_size
			`,
		Variants: []Variant{
			{Name: "few-keys", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"enable_lm_head_fp32": false,
				"n_group": 2, "swiglu_limit": 0.0, "mlp_layer_types": null, "indexer_types": ["full", "full", "full"]}`},
		},
	})
}

func init() {
	const config = `"attention_dropout": 0.0, "bos_token_id": $bos, "dtype": "bfloat16", "eos_token_id": $eos, "expert_swiglu_limit_list": [null, 7.0, 7.0, 7.0, null],
			"first_k_dense_replace": 1, "gated_attention_proj_granularity_type": "head_wise", "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.006,
			"intermediate_size": 96, "kda_lower_bound": -5.0, "kda_safe_gate": true, "kv_lora_rank": 32, "layer_group_size": 2, "max_position_embeddings": 131072,
			"moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 32, "n_group": 2, "no_kda_lora": true, "norm_topk_prob": true, "num_attention_heads": 4,
			"num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 4, "num_nextn_predict_layers": 1, "num_shared_experts": 1,
			"q_lora_rank": null, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "rms_norm_eps": 1e-06, "rope_interleave": true, "rope_scaling": null, "rope_theta": 600000,
			"routed_scaling_factor": 2.5, "router_dtype": "fp32", "score_function": "sigmoid", "short_conv_kernel_size": 4, "tie_word_embeddings": false, "topk_group": 1,
			"use_bias": false, "use_cache": true, "use_qkv_bias": false, "v_head_dim": 32, "vocab_size": 1024, `
	const tensors = `
			bid = num_hidden_layers + opt(num_nextn_predict_layers)
			xid = num_experts
			kda = num_attention_heads*head_dim
			qd  = num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim)
			model.word_embeddings.weight                               | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			lm_head.weight                                             | vocab_size, hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.layers.{bid}.attention.{q,k,v}_proj.weight           | kda, hidden_size        | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.{q,k,v}_conv1d.weight         | kda, 1, short_conv_kernel_size | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.{f,g}_proj.weight             | kda, hidden_size        | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.b_proj.weight                 | num_attention_heads, hidden_size | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.A_log                         | num_attention_heads | as F32 | fill log | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.dt_bias                       | kda | as F32 | fill bias    | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.o_norm.weight                 | head_dim                | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.o_proj.weight                 | hidden_size, kda        | if bid < num_hidden_layers && bid % 2 == 0
			model.layers.{bid}.attention.q_proj.weight                 | qd, hidden_size         | if !opt(q_lora_rank) && (bid >= num_hidden_layers || bid % 2 == 1)
			model.layers.{bid}.attention.q_a_proj.weight               | q_lora_rank, hidden_size | if opt(q_lora_rank) && (bid >= num_hidden_layers || bid % 2 == 1)
			model.layers.{bid}.attention.q_a_layernorm.weight          | q_lora_rank             | if opt(q_lora_rank) && (bid >= num_hidden_layers || bid % 2 == 1)
			model.layers.{bid}.attention.q_b_proj.weight               | qd, q_lora_rank         | if opt(q_lora_rank) && (bid >= num_hidden_layers || bid % 2 == 1)
			model.layers.{bid}.attention.kv_a_proj_with_mqa.weight     | kv_lora_rank+qk_rope_head_dim, hidden_size | if bid >= num_hidden_layers || bid % 2 == 1
			model.layers.{bid}.attention.kv_a_layernorm.weight         | kv_lora_rank            | if bid >= num_hidden_layers || bid % 2 == 1
			model.layers.{bid}.attention.kv_b_proj.weight              | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank | if bid >= num_hidden_layers || bid % 2 == 1
			model.layers.{bid}.attention.g_proj.weight                 | num_attention_heads, hidden_size | if bid >= num_hidden_layers || bid % 2 == 1
			model.layers.{bid}.attention.dense.weight                  | hidden_size, num_attention_heads*v_head_dim | if bid >= num_hidden_layers || bid % 2 == 1
			model.layers.{bid}.mlp.{gate,up}_proj.weight               | intermediate_size, hidden_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size     | if bid < first_k_dense_replace
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size           | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.gate.expert_bias                    | num_experts | as F32               | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.{gate,up}_proj.weight | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.shared_experts.down_proj.weight     | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size | if bid >= first_k_dense_replace
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size | if bid >= first_k_dense_replace
			model.layers.{bid}.eh_proj.weight                          | hidden_size, 2*hidden_size         | if bid >= num_hidden_layers
			model.layers.{bid}.{enorm,hnorm,final_layernorm}.weight    | hidden_size                        | if bid >= num_hidden_layers
			`
	add(Spec{
		Name:      "ling-3",
		Tokenizer: "bpe:llama3",
		Config:    `{"architectures": ["BailingMoeV3ForCausalLM"], "auto_map": {"AutoConfig": "configuration_bailing_moe_v3.BailingMoeV3Config"}, ` + config + `"model_type": "bailing_moe_v3", "transformers_version": "4.57.1"}`,
		Tensors:   tensors,
		Variants: []Variant{
			{Name: "rank", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"q_lora_rank": 48,
				"num_nextn_predict_layers": 0, "num_experts": 12, "expert_swiglu_limit_list": null,
				"share_expert_swiglu_limit_list": [0.5, 7]}`},
			{Name: "draft", Seed: 4, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "alone", Seed: 5, Out: "f32", Flags: []string{"--no-nextn"}},
		},
	})
	add(Spec{
		Name:      "ling-3-vl",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["BailingMoeV3VLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_bailing_moe_v3_vl.BailingMoeV3VLConfig"}, "image_token_id": 1002,
			"model_type": "bailing_moe_v3_vl", "text_config": {` + config + `"model_type": "bailing_moe_v3", "mrope_section": [2, 3, 3]}, "transformers_version": "4.57.1",
			"vision_config": {"depth": 1, "hidden_size": 32, "disable_merger_proj": true, "out_hidden_size": 64}}`,
		Tensors: tensors + `
			model.visual.blocks.0.attn.qkv.weight | 96, 32
			linear_proj.0.weight                  | 64, 64
			`,
		Variants: []Variant{{Name: "without", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"text_config": {"num_nextn_predict_layers": 0}}`}},
	})
}
