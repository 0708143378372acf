package hftest

import "strings"

// omniAudioTensors returns the layers of Qwen Omni's audio encoder. keyBias is ",k" if k_proj has a bias, else "".
func omniAudioTensors(keyBias string) string {
	return `
		bid = thinker_config.audio_config.encoder_layers
		a = thinker_config.audio_config.d_model
		af = thinker_config.audio_config.encoder_ffn_dim
		thinker.audio_tower.layers.{bid}.{self_attn,final}_layer_norm.{weight,bias}       | a
		thinker.audio_tower.layers.{bid}.self_attn.{q,k,v,out}_proj.weight                | a, a
		thinker.audio_tower.layers.{bid}.self_attn.{q,v,out` + keyBias + `}_proj.bias     | a
		thinker.audio_tower.layers.{bid}.fc1.weight                                       | af, a
		thinker.audio_tower.layers.{bid}.fc1.bias                                         | af
		thinker.audio_tower.layers.{bid}.fc2.weight                                       | a, af
		thinker.audio_tower.layers.{bid}.fc2.bias                                         | a
		thinker.audio_tower.ln_post.{weight,bias}                                         | a
		`
}

func init() {
	const text = `"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768, "num_attention_heads": 4, "num_hidden_layers": 2,
					"num_key_value_heads": 2, "rms_norm_eps": 1e-05, "use_cache": true, "vocab_size": 1024`
	const pre = `{"chunk_length": 300, "dither": 0.0, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "hop_length": 160, ` + preCLIP + `, "image_processor_type": "Qwen2VLImageProcessor",
			"max_pixels": 12845056, "merge_size": 2, "min_pixels": 3136, "n_fft": 400, "n_samples": 4800000, "nb_max_frames": 30000, "padding_side": "right", "padding_value": 0.0, "patch_size": 14,
			"processor_class": "Qwen2_5OmniProcessor", "return_attention_mask": true, "sampling_rate": 16000, "temporal_patch_size": 2}`
	const audioConfig = `"activation_dropout": 0.0, "activation_function": "gelu", "attention_dropout": 0.0, "d_model": 64, "dropout": 0.0, "encoder_attention_heads": 2, "encoder_ffn_dim": 128, "encoder_layers": 4,
				"initializer_range": 0.02, "max_source_positions": 1500, "num_hidden_layers": 4, "num_mel_bins": 16, "output_dim": 64, "scale_embedding": false`
	const talkerTensors = `
			talker.thinker_to_talker_proj.weight           | 32, 64
			talker.model.layers.0.mlp.gate_proj.weight     | 32, 32
			`
	add(Spec{
		Name: "mm_qwen2_5_omni", Encoder: true, Tokenizer: "bpe:qwen2",
		Files: map[string]string{"preprocessor_config.json": pre},
		Config: `{"architectures": ["Qwen2_5OmniModel"], "enable_audio_output": true, "enable_talker": true, "model_type": "qwen2_5_omni",
			"talker_config": {"architectures": ["Qwen2OmniTalkerForConditionalGeneration"], "hidden_size": 32, "model_type": "qwen2_5_omni_talker"},
			"thinker_config": {"architectures": ["Qwen2OmniNaViTThinkerForConditionalGeneration"],
				"audio_config": {"encoder_layerdrop": 0.0, "init_std": 0.02, "model_type": "qwen2_5_omni_audio_encoder", "n_window": 100, ` + audioConfig + `},
				"audio_end_token_id": 1001, "audio_start_token_id": 1001, "audio_token_index": 1001, "image_token_index": 1001, "model_type": "qwen2_5_omni_thinker", "position_id_per_seconds": 25,
				"seconds_per_chunk": 2, "text_config": {` + text + `, "model_type": "qwen2_5_omni_text", "rope_scaling": {"mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"},
					"rope_theta": 1000000.0, "sliding_window": 32768, "use_sliding_window": false}, "torch_dtype": "bfloat16", "user_token_id": 872, "video_token_index": 1001,
				"vision_config": {"depth": 4, "embed_dim": 32, "fullatt_block_indexes": [1, 3], "hidden_act": "silu", "hidden_size": 32, "in_channels": 3, "in_chans": 3, "init_std": 0.02, "initializer_range": 0.02,
					"intermediate_size": 48, "model_type": "qwen2_5_omni_vision_encoder", "num_heads": 2, "out_hidden_size": 64, "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14,
					"temporal_patch_size": 2, "tokens_per_second": 25, "window_size": 112},
				"vision_end_token_id": 1001, "vision_start_token_id": 1001, "vision_token_id": 1001},
			"token2wav_config": {"model_type": "qwen2_5_omni_token2wav"}, "torch_dtype": "bfloat16", "transformers_version": "4.50.0.dev0"}`,
		Tensors: omniAudioTensors("") + `
			thinker.audio_tower.audio_bos_eos_token.weight              | 2, 64
			thinker.audio_tower.conv1.weight                            | a, 16, 3
			thinker.audio_tower.conv2.weight                            | a, a, 3
			thinker.audio_tower.conv{1,2}.bias                          | a
			thinker.audio_tower.proj.weight                             | 64, a
			thinker.audio_tower.proj.bias                               | 64
			bid = thinker_config.vision_config.depth
			w = 32
			ff = thinker_config.vision_config.intermediate_size
			thinker.visual.patch_embed.proj.weight                      | w, 3, 2, 14, 14
			thinker.visual.blocks.{bid}.norm{1,2}.weight                | w
			thinker.visual.blocks.{bid}.attn.{q,k,v,proj}.weight        | w, w
			thinker.visual.blocks.{bid}.attn.{q,k,v,proj}.bias          | w
			thinker.visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | ff, w
			thinker.visual.blocks.{bid}.mlp.{gate,up}_proj.bias         | ff
			thinker.visual.blocks.{bid}.mlp.down_proj.weight            | w, ff
			thinker.visual.blocks.{bid}.mlp.down_proj.bias              | w
			thinker.visual.merger.ln_q.weight                           | w
			thinker.visual.merger.mlp.0.weight                          | 4*w, 4*w
			thinker.visual.merger.mlp.0.bias                            | 4*w
			thinker.visual.merger.mlp.2.weight                          | 64, 4*w
			thinker.visual.merger.mlp.2.bias                            | 64
			token2wav.code2wav_bigvgan_model.conv_pre.weight            | 32, 16, 5
			` + textOf("thinker.model.") + "thinker.lm_head.weight | 1024, 64\n" + talkerTensors,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32",
			Set: `{"thinker_config": {"vision_config": {"embed_dim": null}}}`},
			{Name: "q8_0", Seed: 4, Out: "q8_0",
				Set: `{"thinker_config": {"audio_config": {"encoder_layers": 5, "num_hidden_layers": 5}}}`}},
	})

	const chunks = `"conv_chunksize": 500, "downsample_hidden_size": 8, "n_window": 50, "n_window_infer": 800, ` +
		audioConfig
	const convTensors = `
		thinker.audio_tower.conv2d1.weight           | 8, 1, 3, 3
		thinker.audio_tower.conv2d{2,3}.weight       | 8, 8, 3, 3
		thinker.audio_tower.conv2d{1,2,3}.bias       | 8
		thinker.audio_tower.conv_out.weight          | a, 2*8
		thinker.audio_tower.proj1.weight             | a, a
		thinker.audio_tower.proj1.bias               | a
		thinker.audio_tower.proj2.weight             | 64, a
		thinker.audio_tower.proj2.bias               | 64
		`
	add(Spec{
		Name: "mm_qwen3_omni_moe", Encoder: true, Tokenizer: "bpe:qwen2",
		NoReference: "the reference fails: Can not map tensor 'model.visual.blocks.0.attn.proj.bias'",
		Files: map[string]string{"preprocessor_config.json": strings.NewReplacer("Qwen2_5OmniProcessor",
			"Qwen3OmniMoeProcessor", preCLIP, preSigLIP, `"patch_size": 14`, `"patch_size": 16`).Replace(pre)},
		Config: `{"architectures": ["Qwen3OmniMoeForConditionalGeneration"], "assistant_token_id": 77091, "code2wav_config": {"hidden_size": 32}, "dtype": "bfloat16", "enable_audio_output": true,
			"im_end_token_id": 1002, "im_start_token_id": 1001, "model_type": "qwen3_omni_moe", "system_token_id": 8948, "talker_config": {"model_type": "qwen3_omni_moe_talker"},
			"thinker_config": {"audio_config": {"model_type": "qwen3_omni_moe_audio_encoder", ` + chunks + `},
				"audio_end_token_id": 1001, "audio_start_token_id": 1001, "audio_token_id": 1001, "image_token_id": 1001, "initializer_range": 0.02, "model_type": "qwen3_omni_moe_thinker",
				"position_id_per_seconds": 13, "seconds_per_chunk": 2, "text_config": {` + text + `, "decoder_sparse_step": 1, "head_dim": 16, "model_type": "qwen3_omni_moe_text",
					"rope_scaling": {"interleaved": true, "mrope_interleaved": true, "mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"}, "rope_theta": 1000000},
				"user_token_id": 872, "vision_config": {"apply_vit_abs_pos_embed": true, "deepstack_visual_indexes": [1, 2], "depth": 4, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "image_size": 64,
					"in_channels": 3, "in_chans": 3, "initializer_range": 0.02, "intermediate_size": 64, "model_type": "qwen3_omni_moe_vision_encoder", "num_heads": 2, "num_position_embeddings": 16,
					"out_hidden_size": 64, "patch_size": 16, "spatial_merge_size": 2, "spatial_patch_size": 16, "temporal_patch_size": 2, "tokens_per_second": 2},
				"vision_end_token_id": 1001, "vision_start_token_id": 1001},
			"transformers_version": "4.57.0.dev0", "tts_bos_token_id": 1001, "tts_eos_token_id": 1001, "tts_pad_token_id": 1001, "user_token_id": 872}`,
		Tensors: omniAudioTensors(",k") + convTensors + `
			bid = thinker_config.vision_config.depth
			w = 32
			thinker.visual.patch_embed.proj.weight                      | w, 3, 2, 16, 16
			thinker.visual.patch_embed.proj.bias                        | w
			thinker.visual.pos_embed.weight                             | 16, w
			thinker.visual.blocks.{bid}.norm{1,2}.{weight,bias}         | w
			thinker.visual.blocks.{bid}.attn.qkv.weight                 | 3*w, w
			thinker.visual.blocks.{bid}.attn.qkv.bias                   | 3*w
			thinker.visual.blocks.{bid}.attn.proj.weight                | w, w
			thinker.visual.blocks.{bid}.attn.proj.bias                  | w
			thinker.visual.blocks.{bid}.mlp.linear_fc1.weight           | 2*w, w
			thinker.visual.blocks.{bid}.mlp.linear_fc1.bias             | 2*w
			thinker.visual.blocks.{bid}.mlp.linear_fc2.weight           | w, 2*w
			thinker.visual.blocks.{bid}.mlp.linear_fc2.bias             | w
			thinker.visual.merger.ln_q.{weight,bias}                    | w
			thinker.visual.merger_list.{0,1}.ln_q.{weight,bias}         | 4*w
			thinker.visual.merger{,_list.0,_list.1}.mlp.0.weight        | 4*w, 4*w
			thinker.visual.merger{,_list.0,_list.1}.mlp.0.bias          | 4*w
			thinker.visual.merger{,_list.0,_list.1}.mlp.2.weight        | 64, 4*w
			thinker.visual.merger{,_list.0,_list.1}.mlp.2.bias          | 64
			code2wav.decoder.0.conv.weight                              | 32, 16, 5
			` + textOf("thinker.model.") + "thinker.lm_head.weight | 1024, 64\n" + talkerTensors,
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32",
			Set: `{"thinker_config": {"audio_config": {"encoder_layers": 5, "num_hidden_layers": 5}}}`},
			{Name: "q8_0", Seed: 4, Out: "q8_0", Set: `{"thinker_config": {"vision_config": {"image_size": null}}}`}},
	})
	omni := *Lookup("mm_qwen3_omni_moe")
	omni.Name, omni.NoReference = "mm_qwen3_omni_bare", ""
	omni.Tensors = strings.ReplaceAll(omni.Tensors, "thinker.visual.", "model.visual.")
	add(omni)
	omni.Name = "mm_qwen3_omni_flat" // without mergers for some layers
	omni.Config = strings.Replace(omni.Config, `"deepstack_visual_indexes": [1, 2]`,
		`"deepstack_visual_indexes": []`, 1)
	omni.Tensors = strings.NewReplacer("{,_list.0,_list.1}", "",
		"model.visual.merger_list.{0,1}.ln_q.{weight,bias}         | 4*w", "").Replace(omni.Tensors)
	omni.Variants = nil
	add(omni)
	add(Spec{
		Name: "mm_qwen3_asr", Encoder: true, Tokenizer: "bpe:qwen2",
		Files: map[string]string{"preprocessor_config.json": `{"chunk_length": 30, "dither": 0.0,
			"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 128, "hop_length": 160, "n_fft": 400,
			"n_samples": 480000, "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0,
			"processor_class": "Qwen3ASRProcessor", "return_attention_mask": true, "sampling_rate": 16000}`},
		Config: `{"architectures": ["Qwen3ASRForConditionalGeneration"], "model_type": "qwen3_asr", "support_languages": ["Chinese", "English"],
			"thinker_config": {"audio_config": {"model_type": "qwen3_asr_audio_encoder", ` + chunks + `}, "audio_end_token_id": 1001, "audio_start_token_id": 1001,
				"audio_token_id": 1001, "dtype": "bfloat16", "initializer_range": 0.02, "model_type": "qwen3_asr_thinker", "text_config": {` + text + `, "attention_bias": false,
					"head_dim": 16, "model_type": "qwen3", "rope_scaling": {"interleaved": true, "mrope_interleaved": true, "mrope_section": [2, 3, 3], "rope_type": "default", "type": "default"},
					"rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true}},
			"transformers_version": "4.57.6"}`,
		Tensors:  omniAudioTensors(",k") + convTensors + textOf("thinker.model.") + "thinker.lm_head.weight | 1024, 64\n",
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32"}, {Name: "q8_0", Seed: 4, Out: "q8_0"}},
	})
}
