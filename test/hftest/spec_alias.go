package hftest

import "strings"

// Classes whose language model is an architecture with a spec elsewhere: under another class name, or inside a
// multimodal model. A few tensors of the vision or audio encoder are enough, since they are left out.

func init() {
	const (
		spmEnd = `"bos_token_id": $bos, "eos_token_id": $eos, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": $vocab}`
		plain  = `"attention_bias": false, "attention_dropout": 0.0, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"mlp_bias": false, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, `
		qwen = `"attention_dropout": 0.0, "bos_token_id": $pad, "eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_window_layers": 2, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
			"use_cache": true, "use_sliding_window": false, `
		qkvBias = `
			model.layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			model.layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`
		audioTensors = `
			audio_tower.conv1.weight                       | 32, 16, 3
			audio_tower.layers.0.self_attn.q_proj.weight   | 32, 32
			multi_modal_projector.linear_1.weight          | 64, 32
			`
		audioConfig = `"audio_config": {"model_type": "voxtral_encoder", "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_mel_bins": 16}, `
	)
	llama := llamaHead + llamaAttention + llamaMLP

	add(Spec{
		Name:      "iquestcoder",
		Tokenizer: "spm",
		Config: `{"architectures": ["IQuestCoderForCausalLM"], "auto_map": {"AutoConfig": "configuration_iquestcoder.IQuestCoderConfig"}, "clip_qkv": null, "head_dim": 16,
			"model_type": "iquestcoder", "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0, "sliding_window": null,
			"tie_word_embeddings": false, "use_sliding_window": false, "transformers_version": "4.55.4", ` + plain + spmEnd,
		Tensors: llama,
		Variants: []Variant{{Name: "few-keys", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"clip_qkv": null, "head_dim": null, "rope_scaling": null, "tie_word_embeddings": true}`}},
	})
	add(Spec{
		Name:      "pixtral",
		Tokenizer: "bpe:llama3",
		Pre:       "pixtral",
		Config: `{"architectures": ["LlavaForConditionalGeneration"], "ignore_index": -100, "image_seq_length": 1,
			"image_token_index": 10, "model_type": "llava", "projector_hidden_act": "gelu",
			"text_config": {"hidden_size": 64, "head_dim": 32, "num_attention_heads": 4, "intermediate_size": 96,
			"is_composition": true, "max_position_embeddings": 1024000, "model_type": "mistral", "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-05, "rope_theta": 1000000000.0, "sliding_window": null,
			"vocab_size": $vocab}, "torch_dtype": "bfloat16", "transformers_version": "4.45.0.dev0",
			"vision_config": {"head_dim": 16, "hidden_act": "silu", "image_size": 64, "is_composition": true,
			"model_type": "pixtral", "patch_size": 16, "rope_theta": 10000.0, "tie_word_embeddings": false},
			"vision_feature_layer": -1, "vision_feature_select_strategy": "full"}`,
		Tensors: prefixed("language_model.", llama) + `
			vision_tower.patch_conv.weight                                       | 32, 3, 16, 16
			vision_tower.transformer.layers.0.attention.{q,k,v,o}_proj.weight    | 32, 32
			multi_modal_projector.linear_{1,2}.{weight,bias}                     | 64
			`,
		// as transformers 5 saves it
		Variants: []Variant{{Name: "tied", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
			Set: `{"tie_word_embeddings": true, "text_config": {"rope_theta": 1000000.0}}`}},
	})
	add(Spec{
		Name:      "voxtral",
		Tokenizer: "bpe:llama3",
		Pre:       "tekken",
		Config: `{"architectures": ["VoxtralForConditionalGeneration"], ` + audioConfig + `"audio_token_id": 24, "hidden_size": 64, "model_type": "voxtral",
			"projector_hidden_act": "gelu", "text_config": {` + plain + `"head_dim": 32, "max_position_embeddings": 131072, "model_type": "llama", "pretraining_tp": 1,
				"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 100000000.0, "use_cache": true, "vocab_size": $vocab},
			"torch_dtype": "bfloat16", "transformers_version": "4.54.0.dev0", "vocab_size": $vocab}`,
		Tensors: prefixed("language_model.", llama) + audioTensors,
	})
	add(Spec{
		Name:      "smolvlm",
		Tokenizer: "bpe:smollm",
		Config: `{"architectures": ["SmolVLMForConditionalGeneration"], "image_token_id": 1001, "model_type": "smolvlm",
			"pad_token_id": 1002, "scale_factor": 4, "text_config": {"_flash_attn_2_enabled": true,
			"_name_or_path": "None", "architectures": ["VLlama3ForCausalLM"], "attention_bias": false,
			"attention_dropout": 0.0, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "is_llama_config": true,
			"max_position_embeddings": 8192, "mlp_bias": false, "model_type": "llama", "neftune_noise_alpha": 0.0,
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1002,
			"perceiver_config": {"_attn_implementation_autoset": false, "attention_dropout": 0.0, "hidden_act": "silu",
			"model_type": "vllama3", "resampler_depth": 6, "resampler_head_dim": 96, "resampler_n_heads": 16,
			"resampler_n_latents": 64}, "pixel_shuffle_factor": 4, "pretraining_tp": 1, "qk_layer_norms": false,
			"rms_norm_eps": 1e-05, "rope_interleaved": false, "rope_scaling": null, "rope_theta": 130000,
			"transformers.js_config": {"kv_cache_dtype": {"fp16": "float16", "q4f16": "float16"}},
			"torch_dtype": "bfloat16", "use_cache": true, "use_resampler": false, "vocab_size": $vocab},
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.47.1",
			"use_cache": true, "use_reentrant_checkpointing": false, "vision_config": {"hidden_size": 32,
			"image_size": 64, "max_image_size": {"longest_edge": 64}, "model_type": "smolvlm_vision",
			"num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 16, "size": {"longest_edge": 256},
			"tie_word_embeddings": false, "use_base_siglip": false}, "vocab_size": $vocab}`,
		Tensors: llamaHead + prefixed("model.text_model.", bare(llamaAttention+llamaMLP)) + `
			model.vision_model.embeddings.patch_embedding.weight             | 32, 3, 16, 16
			model.vision_model.encoder.layers.0.self_attn.{k,out,q,v}_proj.weight | 32, 32
			model.connector.modality_projection.proj.weight                  | 64, 512
			`,
		Variants: []Variant{{Name: "tied", Seed: 3, Shards: 2, Out: "bf16",
			Set: `{"tie_word_embeddings": true, "text_config": {"tie_word_embeddings": true}}`}},
	})
	add(Spec{
		Name:      "janus",
		Tokenizer: "bpe:deepseek-llm",
		Config: `{"architectures": ["JanusForConditionalGeneration"], "image_token_id": 998, "model_type": "janus",
			"text_config": {` + plain + `"head_dim": 16, "max_position_embeddings": 16384, "model_type": "llama", "pretraining_tp": 1, "rms_norm_eps": 1e-06,
				"rope_scaling": null, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": $vocab},
			"torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0", "vision_config": {"attention_bias": true, "depth": 2, "hidden_act": "gelu", "hidden_size": 32,
				"image_size": 64, "mlp_ratio": 4.0, "model_type": "janus_vision_model", "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 16},
			"vq_config": {"embed_dim": 8, "model_type": "janus_vqgan", "num_embeddings": 64}}`,
		Tensors: llamaHead + prefixed("model.language_model.", bare(llamaAttention+llamaMLP)) + `
			model.vision_model.embeddings.patch_embedding.weight        | 32, 3, 16, 16
			model.vision_model.encoder.layers.0.mlp.fc1.weight          | 64, 32
			model.aligner.{fc1,hidden_layers.0}.weight                  | 64, 32
			model.vqmodel.quantize.embedding.weight                     | 64, 8
			model.generation_embeddings.weight                          | 64, 8
			model.generation_aligner.{fc1,hidden_layers.0}.weight       | 64, 8
			model.generation_head.{proj_out,vision_head}.weight         | 64, 64
			`,
	})
	add(Spec{
		Name:      "sarashina2_vision",
		Tokenizer: "spm",
		Config: `{"architectures": ["Sarashina2VisionForCausalLM"], "auto_map": {"AutoConfig": "configuration_sarashina2_vision.Sarashina2VisionConfig"}, "bos_token_id": $bos,
			"end_image_token_index": 998, "eos_token_id": $eos, "image_token_index": 14, "start_image_token_index": 997, "model_type": "sarashina2_vision", "pad_token_id": 4,
			"sep_token": "", "text_config": {"_attn_implementation_autoset": true, "architectures": ["LlamaForCausalLM"], ` + plain + `"head_dim": 16,
				"max_position_embeddings": 8192, "max_length": 4096, "model_type": "llama", "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
				"rope_theta": 500000, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": $vocab},
			"torch_dtype": "bfloat16", "transformers_version": "4.48.0", "use_cache": true, "vision_config": {"depth": 1, "embed_dim": 32, "hidden_act": "quick_gelu",
				"hidden_size": 64, "in_channels": 3, "mlp_ratio": 4, "model_type": "qwen2_vl", "num_heads": 2, "patch_size": 14, "spatial_merge_size": 2,
				"temporal_patch_size": 2, "torch_dtype": "bfloat16"}}`,
		Tensors: prefixed("llm.", llama) + `
			norm.{weight,bias}                       | 64
			visual.patch_embed.proj.weight           | 32, 3, 2, 14, 14
			visual.blocks.0.attn.qkv.{weight,bias}   | 96
			visual.merger.mlp.{0,2}.weight           | 64, 64
			`,
		Variants: []Variant{{Name: "many", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"text_config": {"num_hidden_layers": 11, "rope_theta": 10000}}`}},
	})
	add(Spec{
		Name:      "olmo_old_name",
		Tokenizer: "bpe:neox",
		Config: `{"architectures": ["OLMoForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"clip_qkv": null, "eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 2048, "model_type": "olmo", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "rope_theta": 10000.0, "tie_word_embeddings": true,
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			model.embed_tokens.weight                             | vocab_size, hidden_size
			model.layers.{bid}.self_attn.{q,k,v,o}_proj.weight    | hidden_size, hidden_size
			` + llamaMLP,
		Variants: []Variant{{Name: "clipped", Seed: 3, Out: "auto", Set: `{"clip_qkv": 8.0}`}},
	})
	add(Spec{
		Name:      "kormo",
		Tokenizer: "bpe:llama3",
		Pre:       "kormo",
		Config: `{"architectures": ["KORMoForCausalLM"], "auto_map": {"AutoConfig": "configuration_kormo.KORMoConfig"}, "head_dim": 16, "mask_type": null,
			"max_position_embeddings": 131072, "model_type": "kormo", "pad_token_id": 1002, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
			"tie_word_embeddings": false, "transformers_version": "4.53.0", ` + plain + spmEnd,
		Tensors: strings.NewReplacer("input_layernorm", "pre_attention_layernorm", "{input,post_attention}_layernorm",
			"pre_{attention,mlp}_layernorm",
			"post_attention_layernorm", "pre_mlp_layernorm").Replace(llama),
		Variants: []Variant{{Name: "tied", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"tie_word_embeddings": true, "rope_theta": null}`}},
	})
	add(Spec{
		Name:      "dots_ocr",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["DotsOCRForCausalLM"], "model_type": "dots_ocr", "auto_map": {"AutoConfig": "configuration_dots.DotsOCRConfig"}, "attention_bias": true,
			"image_token_id": 1002, "video_token_id": 1001, "max_position_embeddings": 131072, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 131072,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "vision_config": {"embed_dim": 32, "hidden_size": 64,
				"intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "num_channels": 3, "patch_size": 14, "post_norm": true, "rms_norm_eps": 1e-05,
				"spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": false},
			` + qwen + `"vocab_size": $vocab}`,
		Tensors: llamaHead + strings.ReplaceAll(llamaAttention, "| hidden_size            | if opt(attention_bias)", "| hidden_size | if opt(nowhere)") + llamaMLP + `
			vision_tower.patch_embed.patchifier.proj.weight    | 32, 3, 14, 14
			vision_tower.blocks.0.attn.qkv.weight              | 96, 32
			vision_tower.merger.mlp.0.weight                   | 128, 128
			`,
		Variants: []Variant{{Name: "tied", Seed: 3, Shards: 2, Out: "auto", Set: `{"tie_word_embeddings": true}`}},
	})
	add(Spec{
		Name:      "qwen2_audio",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2AudioForConditionalGeneration"], ` + strings.ReplaceAll(audioConfig,
			"voxtral_encoder", "qwen2_audio_encoder") +
			`"audio_token_index": 1001, "ignore_index": -100, "model_type": "qwen2_audio", "text_config": {` + qwen + `"max_position_embeddings": 8192, "model_type": "qwen2",
				"rope_theta": 10000, "sliding_window": 32768, "torch_dtype": "bfloat16", "use_mrope": false, "vocab_size": $vocab},
			"torch_dtype": "bfloat16", "transformers_version": "4.38.1", "vocab_size": $vocab}`,
		Tensors: prefixed("language_model.", llama+qkvBias) + strings.ReplaceAll(audioTensors, "linear_1", "linear"),
	})
	add(Spec{
		Name:      "audioflamingo3",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["AudioFlamingo3ForConditionalGeneration"], ` + strings.ReplaceAll(audioConfig,
			"voxtral_encoder", "audioflamingo3_encoder") +
			`"audio_token_id": 1001, "dtype": "bfloat16", "model_type": "audioflamingo3", "projector_bias": true, "projector_hidden_act": "gelu", "text_config": {` + qwen +
			`"dtype": "bfloat16", "layer_types": ["full_attention", "full_attention"], "max_position_embeddings": 32768, "model_type": "qwen2", "rope_scaling": null,
				"rope_theta": 1000000.0, "sliding_window": null, "vocab_size": $vocab},
			"transformers_version": "4.57.0"}`,
		Tensors: prefixed("language_model.", llama+qkvBias) + audioTensors,
	})
	add(Spec{
		Name:      "step3_vl",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["StepVLForConditionalGeneration"], "auto_map": {"AutoConfig": "configuration_step_vl.StepRoboticsConfig"}, "model_type": "step_robotics",
			"im_end_token": "<im_end>", "im_patch_token": "<im_patch>", "im_start_token": "<im_start>", "image_token_len": 169, "patch_token_len": 81,
			"image_token_id": 1001, "understand_projector_stride": 2, "use_im_start_end": "true", "vision_select_layer": -1, "projector_bias": false,
			"vision_config": {"image_size": 728, "patch_size": 14, "width": 32, "layers": 1, "heads": 2, "use_ln_post": false, "use_abs_posemb": true},
			"text_config": {"architectures": ["Qwen3ForCausalLM"], ` + qwen + `"attention_bias": false, "head_dim": 32, "max_position_embeddings": 65536, "model_type": "qwen3",
				"rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "vocab_size": $vocab},
			"torch_dtype": "bfloat16", "transformers_version": "4.57.0", "vocab_size": $vocab}`,
		Tensors: llama + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight                     | head_dim
			vision_model.conv1.weight                                          | 32, 3, 14, 14
			vision_model.transformer.resblocks.0.attn.in_proj_{weight,bias}    | 96
			vision_model.vit_downsampler{1,2}.weight                           | 64, 32, 3, 3
			vit_large_projector.weight                                         | 64, 64
			`,
		Variants: []Variant{{Name: "eleven", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"text_config": {"num_hidden_layers": 11, "tie_word_embeddings": true}}`}},
	})

	const otherTensors = `
			thinker.audio_tower.conv1.weight               | 32, 16, 3
			thinker.visual.blocks.0.attn.q.weight          | 32, 32
			talker.thinker_to_talker_proj.weight           | 32, 64
			talker.model.layers.0.mlp.gate_proj.weight     | 32, 32
			`
	add(Spec{
		Name:      "qwen2_5_omni",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2_5OmniModel"], "enable_audio_output": true, "enable_talker": true, "model_type": "qwen2_5_omni",
			"talker_config": {"architectures": ["Qwen2OmniTalkerForConditionalGeneration"], "hidden_size": 32, "model_type": "qwen2_5_omni_talker"},
			"thinker_config": {"architectures": ["Qwen2OmniNaViTThinkerForConditionalGeneration"], "audio_config": {"d_model": 32, "model_type": "qwen2_5_omni_audio_encoder"},
				"audio_end_token_id": 1001, "audio_start_token_id": 1001, "audio_token_index": 1001, "bos_token_id": $pad, "eos_token_id": $eos, "ignore_index": -100,
				"image_token_index": 1001, "init_std": 0.02, "initializer_range": 0.02, "model_type": "qwen2_5_omni_thinker", "pad_token_id": $pad, "position_id_per_seconds": 25,
				"seconds_per_chunk": 2, "text_config": {` + qwen + `"init_std": 0.02, "max_position_embeddings": 32768, "model_type": "qwen2_5_omni_text",
					"rope_scaling": {"mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"}, "rope_theta": 1000000.0, "sliding_window": 32768,
					"vocab_size": $vocab},
				"torch_dtype": "bfloat16", "user_token_id": 872, "video_token_index": 1001, "vision_config": {"depth": 1, "model_type": "qwen2_5_omni_vision_encoder"},
				"vision_end_token_id": 1001, "vision_start_token_id": 1001, "vision_token_id": 1001},
			"token2wav_config": {"model_type": "qwen2_5_omni_token2wav"}, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0"}`,
		Tensors: prefixed("thinker.", llama+qkvBias) + otherTensors + `
			token2wav.code2wav_bigvgan_model.conv_pre.weight  | 32, 16, 5
			`,
		Variants: []Variant{{Name: "few-keys", Seed: 3, Shards: 2, Out: "auto",
			Set: `{"thinker_config": {"text_config": {"rms_norm_eps": null, "rope_theta": null}}}`}},
	})
	add(Spec{
		Name:      "qwen3_omni_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "assistant_token_id": 77091, "code2wav_config": {"hidden_size": 32}, "dtype": "bfloat16",
			"enable_audio_output": true, "im_end_token_id": 1002, "im_start_token_id": 1001, "model_type": "qwen3_omni_moe", "system_token_id": 8948,
			"talker_config": {"model_type": "qwen3_omni_moe_talker"}, "thinker_config": {"audio_config": {"d_model": 32, "model_type": "qwen3_omni_moe_audio_encoder"},
				"audio_start_token_id": 1001, "audio_token_id": 1001, "image_token_id": 1001, "initializer_range": 0.02, "model_type": "qwen3_omni_moe_thinker",
				"text_config": {` + strings.ReplaceAll(qwen, `"max_window_layers": 2, `, "") + `"attention_bias": false, "decoder_sparse_step": 1, "head_dim": 32,
					"max_position_embeddings": 65536, "mlp_only_layers": [], "model_type": "qwen3_omni_moe_text", "moe_intermediate_size": 32, "norm_topk_prob": true,
					"num_experts": 4, "num_experts_per_tok": 2, "output_router_logits": false, "rope_scaling": {"interleaved": true, "mrope_interleaved": true,
						"mrope_section": [6, 5, 5], "rope_type": "default", "type": "default"},
					"rope_theta": 1000000, "router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 0, "sliding_window": null, "use_qk_norm": true,
					"vocab_size": $vocab},
				"user_token_id": 872, "vision_config": {"deepstack_visual_indexes": [8, 16, 24], "depth": 1, "model_type": "qwen3_omni_moe_vision_encoder"}},
			"transformers_version": "4.57.0.dev0", "tts_bos_token_id": 1001, "tts_eos_token_id": 1001, "tts_pad_token_id": 1001, "user_token_id": 872}`,
		Tensors: prefixed("thinker.", llamaHead+llamaAttention+`
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size
			`) + otherTensors + `
			code2wav.decoder.0.conv.weight   | 32, 16, 5
			`,
	})
	add(Spec{
		Name:      "qwen3_asr",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3ASRForConditionalGeneration"], "model_type": "qwen3_asr", "support_languages": ["Chinese", "English"],
			"thinker_config": {"audio_config": {"d_model": 32, "model_type": "qwen3_asr_audio_encoder"}, "audio_end_token_id": 1001, "audio_start_token_id": 1001,
				"audio_token_id": 1001, "dtype": "bfloat16", "initializer_range": 0.02, "model_type": "qwen3_asr_thinker", "text_config": {` + qwen + `"attention_bias": false,
					"head_dim": 32, "max_position_embeddings": 65536, "model_type": "qwen3", "rope_scaling": {"interleaved": true, "mrope_interleaved": true,
						"mrope_section": [6, 5, 5], "rope_type": "default", "type": "default"},
					"rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true, "vocab_size": $vocab}},
			"transformers_version": "4.57.6"}`,
		Tensors: prefixed("thinker.", llamaAttention+llamaMLP+`
			model.layers.{bid}.self_attn.{q,k}_norm.weight   | head_dim
			audio_tower.conv2d1.weight                       | 32, 1, 3, 3
			audio_tower.layers.0.self_attn.q_proj.weight     | 32, 32
			lm_head.weight                                   | vocab_size, hidden_size
			`),
	})
}
