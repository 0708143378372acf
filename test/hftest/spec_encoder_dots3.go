package hftest

// The vision and audio encoders of dots3-note: the language model's keys are at the root.
func init() {
	add(Spec{
		Name: "mm_dots3note", Encoder: true, Tokenizer: "bpe:qwen2",
		Files: map[string]string{"preprocessor_config.json": `{"processor_class": "Dots3NoteProcessor", "vision_config": {"min_pixels": 3136, "max_pixels": 11289600, "patch_size": 14, "temporal_patch_size": 1,
			"merge_size": 2, ` + preCLIP + `}, "audio_config": {"sampling_rate": 16000}}`},
		Config: `{"architectures": ["Dots3NoteForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_dots3_note.Dots3NoteConfig"},
			"audio_config": {"audio_comp_end": "<|audio_comp_end|>", "audio_comp_span": "<|audio_comp_pad|>",
			"audio_comp_start": "<|audio_comp_start|>", "chunk_seconds": 60, "conv_bucket_max_elements": null,
			"conv_bucket_step": null, "data_type": "base64", "downsample_hidden_size": 8, "encoder_type": "dots",
			"merge_factor": 1, "model_type": "dots3_note_audio", "processor_type": "omni_audio_processor",
			"rope_parameters": {"partial_rotary_factor": 0.5, "rope_theta": 10000.0}, "sampling_rate": 16000,
			"use_causal": false, "use_conv2d_stem": true, "use_rms_norm": true, "use_rope": true,
			"whisper_adapter_in_dim": 32, "whisper_adapter_out_dim": 64, "whisper_config": {"activation_dropout": 0.0,
			"activation_function": "swiglu", "attention_dropout": 0.0, "d_model": 32, "dropout": 0.0,
			"encoder_attention_heads": 2, "encoder_ffn_dim": 48, "encoder_layers": 3, "max_source_positions": 1500,
			"num_mel_bins": 16, "scale_embedding": false}}, "dtype": "bfloat16", "hidden_act": "silu",
			"hidden_size": 64, "intermediate_size": 96, "model_type": "dots3_note", "num_attention_heads": 4,
			"num_hidden_layers": 2, "rms_norm_eps": 1e-05, "transformers_version": "4.57.1",
			"vision_config": {"adapter_in_dim": 32, "adapter_merge_size": 2, "adapter_out_dim": 64,
			"adapter_type": "patch_merger", "attn_implementation": "flash_attention_2", "capacity_factor": 2.0,
			"embed_dim": 32, "enable_fp8_moe": false, "enable_torch_compile": false, "hidden_size": 64,
			"intermediate_size": 64, "model_type": "dots3_note_vision", "moe_intermediate_size": 32,
			"num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "patch_size": 14, "post_norm": true,
			"pre_pixel_shuffle": true, "pyramid_num_routed": [-1, 0, 4, 6], "rms_norm_eps": 1e-05, "router_scale": 1.0,
			"router_scoring_func": "sigmoid", "spatial_merge_size": 2, "temporal_patch_size": 1, "use_bias": false,
			"use_qk_norm": true}, "vocab_size": 1024}`,
		Tensors: `
			bid = vision_config.num_hidden_layers
			aid = audio_config.whisper_config.encoder_layers
			xid = 6
			w   = vision_config.embed_dim
			ff  = vision_config.intermediate_size
			rf  = vision_config.moe_intermediate_size
			a   = audio_config.whisper_config.d_model
			af  = audio_config.whisper_config.encoder_ffn_dim
			vision_encoder.patch_embed.proj.weight                  | w, 3, 14, 14
			vision_encoder.patch_embed.proj.bias                    | w
			vision_encoder.patch_embed.norm.weight                  | w
			vision_encoder.blocks.{bid}.norm_{1,2}.weight           | w
			vision_encoder.blocks.{bid}.attn.qkv.weight             | 3*w, w
			vision_encoder.blocks.{bid}.attn.{q,k}_norm.weight      | w / vision_config.num_attention_heads
			vision_encoder.blocks.{bid}.attn.proj.weight            | w, w
			vision_encoder.blocks.{bid}.mlp.fc{1,3}.weight          | ff, w | if vision_config.pyramid_num_routed[bid] <= 0
			vision_encoder.blocks.{bid}.mlp.fc2.weight              | w, ff | if vision_config.pyramid_num_routed[bid] <= 0
			vision_encoder.blocks.{bid}.mlp.gate_weight             | vision_config.pyramid_num_routed[bid], w | if vision_config.pyramid_num_routed[bid] > 0
			vision_encoder.blocks.{bid}.mlp.router_bias             | vision_config.pyramid_num_routed[bid]    | if vision_config.pyramid_num_routed[bid] > 0
			vision_encoder.blocks.{bid}.mlp.experts.{xid}.fc{1,3}.weight | rf, w | if xid < vision_config.pyramid_num_routed[bid]
			vision_encoder.blocks.{bid}.mlp.experts.{xid}.fc2.weight     | w, rf | if xid < vision_config.pyramid_num_routed[bid]
			vision_encoder.post_trunk_norm.weight                   | w
			vision_encoder.adapter.ln_q.{weight,bias}               | w
			vision_encoder.adapter.mlp.0.weight                     | 4*w, 4*w
			vision_encoder.adapter.mlp.0.bias                       | 4*w
			vision_encoder.adapter.mlp.2.weight                     | 64, 4*w
			vision_encoder.adapter.mlp.2.bias                       | 64
			audio_encoder.dots_encoder.speech_encoder.conv2d1.weight     | 8, 1, 3, 3
			audio_encoder.dots_encoder.speech_encoder.conv2d{2,3}.weight | 8, 8, 3, 3
			audio_encoder.dots_encoder.speech_encoder.conv2d{1,2,3}.bias | 8
			audio_encoder.dots_encoder.speech_encoder.conv_out.weight    | a, 2*8
			audio_encoder.dots_encoder.speech_encoder.layer_norm.weight  | a
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.{self_attn,final}_layer_norm.weight       | a
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.self_attn.{q,k,v,out}_proj.weight         | a, a
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.self_attn.{q,v,out}_proj.bias             | a
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.fc1.weight                                | 2*af, a
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.fc1.bias                                  | 2*af
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.fc2.weight                                | a, af
			audio_encoder.dots_encoder.speech_encoder.layers.{aid}.fc2.bias                                  | a
			audio_encoder.audio_adapter.proj.0.{weight,bias}        | a
			audio_encoder.audio_adapter.proj.1.weight               | 64, a
			audio_encoder.audio_adapter.proj.1.bias                 | 64
			audio_encoder.audio_adapter.proj.3.weight               | 64, 64
			audio_encoder.audio_adapter.proj.3.bias                 | 64
			model.mtp.embed_tokens.weight                           | 1024, 64
			` + textOf("model."),
		Variants: []Variant{
			{Name: "f32", Seed: 3, DType: "F16", Out: "f32",
				Set: `{"architectures": ["Dots3NoteForConditionalGeneration"],
					"audio_config": {"whisper_config": {"encoder_layers": 5}}}`},
			{Name: "q8_0", Seed: 4, Out: "q8_0",
				Set: `{"vision_config": {"pyramid_num_routed": [2, 2, -1, 3], "capacity_factor": 1}}`},
		},
	})
}
