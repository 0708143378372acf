package hftest

// gemma4Tokens are Gemma 4's special tokens that the tokenizer kind gemma lacks. Some get token type USER_DEFINED
// instead of CONTROL, since chat parsers must see them.
var gemma4Tokens = []string{"<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>",
	`<|"|>`, "<|image>"}

// gemma4Layers returns the tensors that all layers have, with names that begin with prefix.
func gemma4Layers(prefix string) string {
	return `
			bid    = num_hidden_layers
			` + prefix + `embed_tokens.weight                                                                   | vocab_size, hidden_size
			` + prefix + `norm.weight                                                                           | hidden_size
			` + prefix + `layers.{bid}.{input,post_attention,post_feedforward,pre_feedforward}_layernorm.weight | hidden_size
			` + prefix + `layers.{bid}.layer_scalar                                                             | 1 | fill norm
			` + prefix + `layers.{bid}.mlp.{gate,up}_proj.weight     | intermediate_size, hidden_size | if bid < num_hidden_layers - num_kv_shared_layers || !opt(use_double_wide_mlp)
			` + prefix + `layers.{bid}.mlp.down_proj.weight          | hidden_size, intermediate_size | if bid < num_hidden_layers - num_kv_shared_layers || !opt(use_double_wide_mlp)
			` + prefix + `layers.{bid}.self_attn.q_proj.weight       | num_attention_heads*head_dim, hidden_size        | if layer_types[bid] == "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.q_proj.weight       | num_attention_heads*global_head_dim, hidden_size | if layer_types[bid] != "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.o_proj.weight       | hidden_size, num_attention_heads*head_dim        | if layer_types[bid] == "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.o_proj.weight       | hidden_size, num_attention_heads*global_head_dim | if layer_types[bid] != "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.q_norm.weight       | head_dim                                         | if layer_types[bid] == "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.q_norm.weight       | global_head_dim                                  | if layer_types[bid] != "sliding_attention"
	`
}

// gemma4Keys returns the tensors of K and V, which layers with shared KV lack.
func gemma4Keys(prefix string) string {
	return `
			` + prefix + `layers.{bid}.self_attn.{k,v}_proj.weight   | num_key_value_heads*head_dim, hidden_size        | if layer_types[bid] == "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.k_norm.weight       | head_dim                                         | if layer_types[bid] == "sliding_attention"
			` + prefix + `layers.{bid}.self_attn.{k,v}_proj.weight   | num_key_value_heads*global_head_dim, hidden_size | if layer_types[bid] != "sliding_attention" && !opt(attention_k_eq_v)
			` + prefix + `layers.{bid}.self_attn.k_proj.weight       | num_global_key_value_heads*global_head_dim, hidden_size | if layer_types[bid] != "sliding_attention" && opt(attention_k_eq_v)
			` + prefix + `layers.{bid}.self_attn.k_norm.weight       | global_head_dim                                  | if layer_types[bid] != "sliding_attention"
	`
}

func init() {
	// as gemma-4-E2B and E4B, which have per-layer inputs and layers with shared KV
	add(Spec{
		Name:        "gemma4",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files: map[string]string{"tokenizer.model": "", "generation_config.json": `{"bos_token_id": 2,
			"do_sample": true, "eos_token_id": [1, 106, 50], "pad_token_id": 0, "temperature": 1.0, "top_k": 64,
			"top_p": 0.95, "transformers_version": "5.5.0.dev0"}`},
		Config: `{"architectures": ["Gemma4ForConditionalGeneration"], "audio_config": {"hidden_size": 64,
			"model_type": "gemma4_audio", "num_hidden_layers": 1}, "audio_token_id": 1190, "boa_token_id": 1191,
			"boi_token_id": 1192, "dtype": "bfloat16", "eoa_token_id": 1193, "eoa_token_index": 1193,
			"eoi_token_id": 1194, "eos_token_id": [1, 106], "image_token_id": 1195, "initializer_range": 0.02,
			"model_type": "gemma4", "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": false, "bos_token_id": 2, "dtype": "bfloat16", "enable_moe_block": false,
			"eos_token_id": 1, "expert_intermediate_size": null, "final_logit_softcapping": 30.0, "global_head_dim": 64,
			"head_dim": 32, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64,
			"hidden_size_per_layer_input": 32, "initializer_range": 0.02, "intermediate_size": 96,
			"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
			"max_position_embeddings": 131072, "model_type": "gemma4_text", "num_attention_heads": 4,
			"num_experts": null, "num_global_key_value_heads": null, "num_hidden_layers": 4, "num_key_value_heads": 1,
			"num_kv_shared_layers": 2, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
			"rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 512, "tie_word_embeddings": true, "top_k_experts": null,
			"use_bidirectional_attention": null, "use_cache": true, "use_double_wide_mlp": true, "vocab_size": $vocab,
			"vocab_size_per_layer_input": $vocab}, "tie_word_embeddings": true, "transformers_version": "5.5.0.dev0",
			"video_token_id": 1196, "vision_config": {"hidden_size": 64, "model_type": "gemma4_vision",
			"num_hidden_layers": 1, "patch_size": 16}, "vision_soft_tokens_per_image": 280}`,
		Tensors: gemma4Layers("model.language_model.") + gemma4Keys("model.language_model.") + `
			wide = intermediate_size * 2
			model.language_model.layers.{bid}.mlp.{gate,up}_proj.weight        | wide, hidden_size | if bid >= num_hidden_layers - num_kv_shared_layers && opt(use_double_wide_mlp)
			model.language_model.layers.{bid}.mlp.down_proj.weight             | hidden_size, wide | if bid >= num_hidden_layers - num_kv_shared_layers && opt(use_double_wide_mlp)
			model.language_model.embed_tokens_per_layer.weight                 | vocab_size_per_layer_input, num_hidden_layers*hidden_size_per_layer_input
			model.language_model.per_layer_model_projection.weight             | num_hidden_layers*hidden_size_per_layer_input, hidden_size
			model.language_model.per_layer_projection_norm.weight              | hidden_size_per_layer_input
			model.language_model.layers.{bid}.per_layer_input_gate.weight      | hidden_size_per_layer_input, hidden_size
			model.language_model.layers.{bid}.per_layer_projection.weight      | hidden_size, hidden_size_per_layer_input
			model.language_model.layers.{bid}.post_per_layer_input_norm.weight | hidden_size | if hidden_size_per_layer_input
			model.language_model.layers.{bid}.pre_feedforward_layernorm_2.weight      | hidden_size                                     | if opt(enable_moe_block)
			model.language_model.layers.{bid}.post_feedforward_layernorm_{1,2}.weight | hidden_size                                     | if opt(enable_moe_block)
			model.language_model.layers.{bid}.router.proj.weight                      | num_experts, hidden_size                        | if opt(enable_moe_block)
			model.language_model.layers.{bid}.router.scale                            | hidden_size | fill norm                         | if opt(enable_moe_block)
			model.language_model.layers.{bid}.router.per_expert_scale                 | num_experts | fill norm                         | if opt(enable_moe_block)
			model.language_model.layers.{bid}.experts.gate_up_proj                    | num_experts, 2*moe_intermediate_size, hidden_size | if opt(enable_moe_block)
			model.language_model.layers.{bid}.experts.down_proj                       | num_experts, hidden_size, moe_intermediate_size | if opt(enable_moe_block)
			model.audio_tower.layers.0.self_attn.relative_k_proj.weight        | 64, 64
			model.embed_{audio,vision}.embedding_projection.weight             | hidden_size, 64
			model.vision_tower.patch_embedder.input_proj.weight                | 64, 768
			`,
		Variants: []Variant{
			{Name: "narrow", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"use_double_wide_mlp": false, "num_kv_shared_layers": 1,
					"final_logit_softcapping": null}}`},
		},
	})
	// as gemma-4-31B and 26B-A4B: experts next to a dense MLP, and full-attention layers whose V is K
	add(Spec{
		Name:        "gemma4-moe",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files:       map[string]string{"tokenizer.model": ""},
		Config: `{"architectures": ["Gemma4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": true, "bos_token_id": 2, "dtype": "bfloat16", "enable_moe_block": true,
			"eos_token_id": 1, "final_logit_softcapping": 30.0, "global_head_dim": 64, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "hidden_size_per_layer_input": 0,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "full_attention"], "max_position_embeddings": 262144, "model_type": "gemma4_text",
			"moe_intermediate_size": 32, "num_attention_heads": 4, "num_experts": 4, "num_global_key_value_heads": 1,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_kv_shared_layers": 0, "pad_token_id": 0,
			"rms_norm_eps": 1e-06, "rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25,
			"rope_theta": 1000000.0, "rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0,
			"rope_type": "default"}}, "sliding_window": 1024, "tie_word_embeddings": true, "top_k_experts": 2,
			"use_bidirectional_attention": "vision", "use_cache": true, "use_double_wide_mlp": false,
			"transformers_version": "5.5.0.dev0", "vocab_size": $vocab, "vocab_size_per_layer_input": $vocab}`,
		Tensors: gemma4Layers("model.") + gemma4Keys("model.") + `
			model.layers.{bid}.pre_feedforward_layernorm_2.weight      | hidden_size                                     | if opt(enable_moe_block)
			model.layers.{bid}.post_feedforward_layernorm_{1,2}.weight | hidden_size                                     | if opt(enable_moe_block)
			model.layers.{bid}.router.proj.weight                      | num_experts, hidden_size                        | if opt(enable_moe_block)
			model.layers.{bid}.router.scale                            | hidden_size | fill norm                         | if opt(enable_moe_block)
			model.layers.{bid}.router.per_expert_scale                 | num_experts | fill norm                         | if opt(enable_moe_block)
			model.layers.{bid}.experts.gate_up_proj                    | num_experts, 2*moe_intermediate_size, hidden_size | if opt(enable_moe_block)
			model.layers.{bid}.experts.down_proj                       | num_experts, hidden_size, moe_intermediate_size | if opt(enable_moe_block)
			`,
		Variants: []Variant{
			{Name: "dense", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"enable_moe_block": false, "num_experts": null, "top_k_experts": null,
					"moe_intermediate_size": null}`},
			{Name: "few-keys", Seed: 4, Out: "bf16", Set: `{"rope_parameters": null, "rms_norm_eps": null,
				"final_logit_softcapping": null, "sliding_window": null, "use_bidirectional_attention": null,
				"max_position_embeddings": null, "layer_types": ["sliding_attention", "full_attention",
				"full_attention"]}`},
			{Name: "both-ways", Seed: 5, Out: "f32",
				Set: `{"use_bidirectional_attention": "all", "layer_types": ["full_attention", "sliding_attention",
					"full_attention"]}`},
		},
	})
	add(Spec{
		Name:        "gemma4-nvfp4",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files:       map[string]string{"tokenizer.model": ""},
		Config: `{"architectures": ["Gemma4ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": true, "bos_token_id": 2, "dtype": "bfloat16", "enable_moe_block": true,
			"eos_token_id": 1, "final_logit_softcapping": 30.0, "global_head_dim": 64, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "hidden_size_per_layer_input": 0,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "full_attention"], "max_position_embeddings": 262144, "model_type": "gemma4_text",
			"moe_intermediate_size": 64, "num_attention_heads": 4, "num_experts": 4, "num_global_key_value_heads": 1,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_kv_shared_layers": 0, "pad_token_id": 0,
			"quantization_config": {"ignore": ["lm_head"], "producer": {"name": "modelopt", "version": "0.37.0"},
			"quant_algo": "NVFP4", "quant_method": "modelopt"}, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
			"rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 1024, "tie_word_embeddings": true, "top_k_experts": 2,
			"use_bidirectional_attention": "vision", "use_cache": true, "use_double_wide_mlp": false,
			"transformers_version": "5.5.0.dev0", "vocab_size": $vocab, "vocab_size_per_layer_input": $vocab}`,
		Tensors: gemma4Layers("model.") + gemma4Keys("model.") + `
			xid = num_experts
			model.layers.{bid}.pre_feedforward_layernorm_2.weight                   | hidden_size
			model.layers.{bid}.post_feedforward_layernorm_{1,2}.weight              | hidden_size
			model.layers.{bid}.router.proj.weight                                   | num_experts, hidden_size
			model.layers.{bid}.router.scale                                         | hidden_size | fill norm
			model.layers.{bid}.router.per_expert_scale                              | num_experts | fill norm
			model.layers.{bid}.experts.{xid}.{gate,up}_proj.weight                  | moe_intermediate_size, hidden_size/2  | as U8
			model.layers.{bid}.experts.{xid}.{gate,up}_proj.weight_scale            | moe_intermediate_size, hidden_size/16 | as F8_E4M3
			model.layers.{bid}.experts.{xid}.down_proj.weight                       | hidden_size, moe_intermediate_size/2  | as U8
			model.layers.{bid}.experts.{xid}.down_proj.weight_scale                 | hidden_size, moe_intermediate_size/16 | as F8_E4M3
			model.layers.{bid}.experts.{xid}.{gate,up}_proj.weight_scale_2          |                                       | as F32 | fill scale
			model.layers.{bid}.experts.{xid}.down_proj.weight_scale_2               |                                       | as F32 | fill scale | if !opt(unit)
			model.layers.{bid}.experts.{xid}.{gate,up,down}_proj.input_scale        |                                       | as F32 | fill scale | if !opt(unit)
			`,
		Variants: []Variant{
			{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32", Set: `{"num_experts": 11}`},
			{Name: "one", Seed: 4, Out: "auto",
				Set: `{"unit": true, "quantization_config": {"quant_algo": "W4A16_NVFP4"}}`},
		},
	})
	// as gemma-4-12B
	add(Spec{
		Name:        "gemma4-unified",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files: map[string]string{"tokenizer.model": "", "generation_config.json": `{"bos_token_id": 2,
			"do_sample": true, "eos_token_id": [1, 106, 50], "pad_token_id": 0, "suppress_tokens": [1195, 1190],
			"temperature": 1.0, "top_k": 64, "top_p": 0.95}`},
		Config: `{"architectures": ["Gemma4UnifiedForConditionalGeneration"], "audio_config": {"audio_embed_dim": 64,
			"model_type": "gemma4_unified_audio"}, "audio_token_id": 1190, "boa_token_id": 1191, "boi_token_id": 1192,
			"dtype": "bfloat16", "eoa_token_index": 1193, "eoi_token_id": 1194, "image_token_id": 1195,
			"model_type": "gemma4_unified", "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": true, "bos_token_id": 2, "dtype": "bfloat16", "eos_token_id": 1,
			"final_logit_softcapping": 30.0, "global_head_dim": 64, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
			"max_position_embeddings": 262144, "model_type": "gemma4_unified_text", "num_attention_heads": 4,
			"num_global_key_value_heads": 1, "num_hidden_layers": 3, "num_key_value_heads": 2,
			"num_kv_shared_layers": 0, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
			"rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 1024, "tie_word_embeddings": true, "use_bidirectional_attention": "vision",
			"use_cache": true, "use_double_wide_mlp": false, "vocab_size": $vocab}, "tie_word_embeddings": true,
			"transformers_version": "5.10.0", "video_token_id": 1196, "vision_config": {"mm_embed_dim": 64,
			"model_type": "gemma4_unified_vision", "patch_size": 16, "pooling_kernel_size": 3}}`,
		Tensors: gemma4Layers("model.language_model.") + gemma4Keys("model.language_model.") + `
			model.vision_embedder.patch_dense.weight               | 64, 96
			model.embed_{audio,vision}.embedding_projection.weight | hidden_size, 64
			`,
		Variants: []Variant{
			{Name: "own-values", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"attention_k_eq_v": false, "num_global_key_value_heads": null}}`},
		},
	})
	// as gemma-4-E2B-it-assistant
	add(Spec{
		Name:        "gemma4-assistant",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files:       map[string]string{"tokenizer.model": ""},
		NoLoad:      "a draft model: it runs only together with its target model",
		Config: `{"architectures": ["Gemma4AssistantForCausalLM"], "backbone_hidden_size": 96,
			"centroid_intermediate_top_k": 32, "dtype": "bfloat16", "model_type": "gemma4_assistant",
			"num_centroids": 64, "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": false, "bos_token_id": 2, "dtype": "bfloat16", "enable_moe_block": false,
			"eos_token_id": 1, "final_logit_softcapping": null, "global_head_dim": 64, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "hidden_size_per_layer_input": 0,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["sliding_attention",
			"sliding_attention", "sliding_attention", "full_attention"], "max_position_embeddings": 131072,
			"model_type": "gemma4_text", "num_attention_heads": 4, "num_experts": null,
			"num_global_key_value_heads": null, "num_hidden_layers": 4, "num_key_value_heads": 1,
			"num_kv_shared_layers": 4, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0,
			"rope_type": "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 512, "tie_word_embeddings": true, "top_k_experts": null,
			"use_bidirectional_attention": null, "use_cache": true, "use_double_wide_mlp": false, "vocab_size": $vocab,
			"vocab_size_per_layer_input": 0}, "tie_word_embeddings": true, "transformers_version": "5.7.0.dev0",
			"use_ordered_embeddings": true}`,
		Tensors: gemma4Layers("model.") + `
			pre_projection.weight               | hidden_size, 2*backbone_hidden_size
			post_projection.weight              | backbone_hidden_size, hidden_size
			masked_embedding.centroids.weight   | num_centroids, hidden_size | if opt(use_ordered_embeddings)
			masked_embedding.token_ordering     | vocab_size | as I64        | if opt(use_ordered_embeddings)
			`,
		Variants: []Variant{
			{Name: "unordered", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"use_ordered_embeddings": false, "text_config": {"num_kv_shared_layers": 0}}`},
		},
	})
	// an embedding model whose per-layer inputs come from a projection alone, without embedding rows; no published one
	// is known
	add(Spec{
		Name:        "embeddinggemma2",
		Tokenizer:   "gemma",
		AddedTokens: gemma4Tokens,
		Files: map[string]string{"tokenizer.model": "",
			"modules.json": `[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
			{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`,
			"1_Pooling/config.json": `{"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
				"pooling_mode_mean_tokens": true}`},
		Config: `{"architectures": ["EmbeddingGemma2Model"], "dtype": "bfloat16", "embedding_dim": 96,
			"model_type": "embedding_gemma2", "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"attention_k_eq_v": false, "bos_token_id": 2, "eos_token_id": 1, "global_head_dim": 64, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "hidden_size_per_layer_input": 32,
			"intermediate_size": 96, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
			"max_position_embeddings": 2048, "model_type": "embedding_gemma2_text", "num_attention_heads": 4,
			"num_hidden_layers": 3, "num_key_value_heads": 1, "num_kv_shared_layers": 0, "pad_token_id": 0,
			"rms_norm_eps": 1e-06, "rope_parameters": {"full_attention": {"rope_theta": 1000000.0,
			"rope_type": "default"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
			"sliding_window": 257, "use_bidirectional_attention": "all", "use_double_wide_mlp": false,
			"vocab_size": $vocab}, "tie_word_embeddings": true, "transformers_version": "5.14.0",
			"vision_config": {"hidden_size": 64, "num_hidden_layers": 1}}`,
		Tensors: gemma4Layers("language_model.") + gemma4Keys("language_model.") + `
			embedding_projection.weight                                            | embedding_dim, hidden_size
			language_model.ple.per_layer_model_projection.weight                   | num_hidden_layers*hidden_size_per_layer_input, hidden_size
			language_model.ple.per_layer_projection_norm.weight                    | hidden_size_per_layer_input
			language_model.layers.{bid}.ple_block.per_layer_input_gate.weight      | hidden_size_per_layer_input, hidden_size
			language_model.layers.{bid}.ple_block.per_layer_projection.weight      | hidden_size, hidden_size_per_layer_input
			language_model.layers.{bid}.ple_block.post_per_layer_input_norm.weight | hidden_size
			vision_tower.patch_embedder.input_proj.weight                          | 64, 768
			embed_vision.embedding_projection.weight                               | hidden_size, 64
			`,
		Variants: []Variant{
			{Name: "each-layer", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"is_causal": false, "text_config": {"use_double_wide_mlp": true,
					"per_layer_config": {"1": {"num_key_value_heads": 1}, "7": {"num_key_value_heads": 3}}}}`},
		},
	})
}
