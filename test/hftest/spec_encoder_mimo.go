package hftest

func init() {
	const codec = `{"activation_function": "gelu", "avg_pooler": 2, "codebook_size": [16, 16, 8, 4], "d_model": 64,
		"decoder_attention_heads": 2, "decoder_attn_window_size": [128, 0], "decoder_causal": true,
		"decoder_ffn_dim": 128, "decoder_kernel_size": 3, "decoder_layers": 1, "decoder_stride_size": 2,
		"encoder_attention_heads": 2, "encoder_attn_window_size": [128, 0], "encoder_causal": true,
		"encoder_ffn_dim": 128, "encoder_layers": 5, "encoder_skip_layer_id": 3, "fmax": null, "fmin": 0,
		"hop_length": 240, "hybrid_attention": true, "hybrid_block_size": 8, "kernel_size": 3, "ln_type": "LayerNorm",
		"max_audio_seconds": 300, "model_type": "mimo_audio_tokenizer", "n_mels": 16, "nfft": 960, "num_quantizers": 4,
		"position_embedding_type": "rope", "rope_theta": 10000, "rope_type": "default", "sampling_rate": 24000,
		"scale_embedding": false, "stride_size": 2, "swa_per_block": 2, "threshold_ema_dead_code": 2,
		"vocoder_attention_heads": 2, "vocoder_dim": 64, "vocoder_num_layers": 1, "vocoder_padding": "same",
		"window_size": 960}`
	const audioTensors = `
		bid = 5
		a = 64
		encoder.conv1.weight                                             | a, 16, 3
		encoder.conv2.weight                                             | a, a, 3
		encoder.conv{1,2}.bias                                           | a
		encoder.down_sample_layer.0.weight                               | a, a, 2
		encoder.{layer_norm,down_sample_norm}.{weight,bias}              | a
		encoder.layers.{bid}.{self_attn,final}_layer_norm.{weight,bias}  | a
		encoder.layers.{bid}.self_attn.{q,k,v,out}_proj.weight           | a, a
		encoder.layers.{bid}.self_attn.{q,v,out}_proj.bias               | a
		encoder.layers.{bid}.fc1.weight                                  | 2*a, a
		encoder.layers.{bid}.fc1.bias                                    | 2*a
		encoder.layers.{bid}.fc2.weight                                  | a, 2*a
		encoder.layers.{bid}.fc2.bias                                    | a
		encoder.quantizer.vq.layers.{0,1}._codebook.embed                | 16, a     | as F32
		encoder.quantizer.vq.layers.2._codebook.embed                    | 8, a      | as F32
		encoder.quantizer.vq.layers.3._codebook.embed                    | 4, a      | as F32
		encoder.quantizer.vq.layers.{0,1}._codebook.embed_avg            | 16, a     | as F32
		encoder.quantizer.vq.layers.{0,1}._codebook.cluster_size         | 16        | as F32
		encoder.quantizer.vq.layers.{0,1,2,3}._codebook.inited           | 1         | as F32
		decoder.layers.0.self_attn.q_proj.weight                         | a, a
		decoder.vocoder.head.out.weight                                  | 16, a
		`
	add(Spec{
		Name: "mm_mimo_v2", Encoder: true, Tokenizer: "bpe:qwen2",
		Config: `{"add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true,
			"architectures": ["MiMoV2ForCausalLM"], "attention_projection_layout": "fused_qkv",
			"attention_value_scale": 0.707, "audio_config": {"add_post_norm": true, "audio_channels": 4,
			"audio_segment_size": 6000, "group_size": 4, "input_full_attention": true, "input_local_attn_heads": 1,
			"input_local_dim": 64, "input_local_head_dim": 64, "input_local_hidden_dropout": 0.0,
			"input_local_intermediate_size": 96, "input_local_layers": 2, "out_hidden_size": 64,
			"partial_rotary_factor": 1.0, "projection_layers": 2, "rope_theta": 640000, "speech_vocab_size": "24",
			"speech_zeroemb_idx": "16", "tokenizer_version": "v2"}, "audio_model_type": "mimo_audio",
			"auto_map": {"AutoConfig": "configuration_mimo_v2.MiMoV2Config"}, "dtype": "bfloat16", "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "hybrid_layer_pattern": [0, 1], "initializer_range": 0.02,
			"intermediate_size": 96, "layernorm_epsilon": 1e-05, "max_position_embeddings": 262144,
			"model_type": "mimo_v2", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"processor_config": {"image_max_pixels": 8388608, "image_min_pixels": 8192, "merge_size": 2,
			"patch_size": 16}, "tie_word_embeddings": false, "vision_config": {"depth": 6, "fullatt_block_indexes": [0,
			5], "hidden_act": "silu", "hidden_size": 64, "in_chans": 3, "intermediate_size": 96, "model_type": "mimovl",
			"num_heads": 4, "num_key_value_heads": 2, "num_query_groups": 2, "out_hidden_size": 64, "patch_size": 16,
			"spatial_merge_size": 2, "spatial_patch_size": 16, "temporal_patch_size": 2, "tokens_per_second": 2,
			"use_sink": true, "visual_token_window_size": 64, "vit_window_attn_types": [-1, 0, 1, 0, 1, -1],
			"window_size": 128}, "vision_model_type": "mimovl", "vocab_size": 1024}`,
		Files: map[string]string{"audio_tokenizer/config.json": codec,
			"preprocessor_config.json": `{"min_pixels": 8192, "max_pixels": 8388608, "patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, ` + preCLIP + `, "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "MiMoVLProcessor"}`},
		ExtraFiles: map[string]string{"audio_tokenizer/model.safetensors": audioTensors},
		Tensors: `
			bid = vision_config.depth
			w = vision_config.hidden_size
			ff = vision_config.intermediate_size
			qkv = 64*(vision_config.num_heads + 2*vision_config.num_key_value_heads)
			visual.patch_embed.proj.weight                      | w, 3, 2, 16, 16
			visual.blocks.{bid}.norm{1,2}.weight                | w
			visual.blocks.{bid}.attn.qkv.weight                 | qkv, w
			visual.blocks.{bid}.attn.qkv.bias                   | qkv
			visual.blocks.{bid}.attn.proj.weight                | w, 64*vision_config.num_heads
			visual.blocks.{bid}.attn.proj.bias                  | w
			visual.blocks.{bid}.attn.sinks                      | vision_config.num_heads | if vision_config.vit_window_attn_types[bid] >= 0
			visual.blocks.{bid}.mlp.{gate,up}_proj.weight       | ff, w
			visual.blocks.{bid}.mlp.{gate,up}_proj.bias         | ff
			visual.blocks.{bid}.mlp.down_proj.weight            | w, ff
			visual.blocks.{bid}.mlp.down_proj.bias              | w
			visual.merger.ln_q.weight                           | w
			visual.merger.mlp.0.weight                          | 4*w, 4*w
			visual.merger.mlp.2.weight                          | 64, 4*w
			bid = audio_config.input_local_layers
			l = audio_config.input_local_dim
			lf = audio_config.input_local_intermediate_size
			audio_encoder.input_local_transformer.layers.{bid}.{input,post_attention}_layernorm.weight | l
			audio_encoder.input_local_transformer.layers.{bid}.self_attn.{q,k,v,o}_proj.weight         | l, l
			audio_encoder.input_local_transformer.layers.{bid}.self_attn.{q,k,v}_proj.bias             | l
			audio_encoder.input_local_transformer.layers.{bid}.mlp.{gate,up}_proj.weight               | lf, l
			audio_encoder.input_local_transformer.layers.{bid}.mlp.down_proj.weight                    | l, lf
			audio_encoder.input_local_transformer.norm.weight                                          | l
			audio_encoder.projection.mlp.0.weight                                                      | 16*l, 4*l
			audio_encoder.projection.mlp.2.weight                                                      | 64, 16*l
			speech_embeddings.{0,1,2,3}.weight                                                         | 24, l
			` + textOf("model.") + "lm_head.weight | 1024, 64\nmodel.mtp.layers.0.enorm.weight | 64\n",
		Variants: []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32", Shards: 2},
			{Name: "q8_0", Seed: 4, Out: "q8_0"}},
	})
}
