package hftest

import "strings"

// whisperEncoder returns the table of Whisper's encoder; names begin with prefix, c is the key of the number of layers.
func whisperEncoder(prefix, c string) string {
	return `
		bid = ` + c + `
		` + prefix + `conv1.weight                                                  | 64, 16, 3
		` + prefix + `conv2.weight                                                  | 64, 64, 3
		` + prefix + `conv{1,2}.bias                                                | 64
		` + prefix + `embed_positions.weight                                        | 1500, 64
		` + prefix + `layers.{bid}.{self_attn,final}_layer_norm.{weight,bias}       | 64
		` + prefix + `layers.{bid}.self_attn.{q,k,v,out}_proj.weight                | 64, 64
		` + prefix + `layers.{bid}.self_attn.{q,v,out}_proj.bias                    | 64
		` + prefix + `layers.{bid}.fc1.weight                                       | 128, 64
		` + prefix + `layers.{bid}.fc1.bias                                         | 128
		` + prefix + `layers.{bid}.fc2.weight                                       | 64, 128
		` + prefix + `layers.{bid}.fc2.bias                                         | 64
		` + prefix + `layer_norm.{weight,bias}                                      | 64
		`
}

func init() {
	const encoder = `"num_mel_bins": 16, "encoder_layers": 3, "encoder_attention_heads": 2, "encoder_ffn_dim": 128, "d_model": 64, "max_source_positions": 1500, "activation_function": "gelu",
			"scale_embedding": false, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0, "encoder_layerdrop": 0.0`
	const text = `"text_config": {"model_type": "qwen2", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"vocab_size": 1024, "max_position_embeddings": 8192, "rms_norm_eps": 1e-06}`
	const llamaText = `"text_config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"vocab_size": 1024, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05}`
	const pre = `{"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 16, "sampling_rate": 16000,
		"hop_length": 160, "n_fft": 400, "chunk_length": 30}`
	more := []Variant{{Name: "f32", Seed: 3, DType: "F16", Out: "f32"}, {Name: "q8_0", Seed: 4, Out: "q8_0"}}
	files := map[string]string{"preprocessor_config.json": pre}
	add(Spec{
		Name: "mm_qwen2_audio", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["Qwen2AudioForConditionalGeneration"], "model_type": "qwen2_audio", "audio_token_index": 1010, "ignore_index": -100, "torch_dtype": "bfloat16",
			"audio_config": {"model_type": "qwen2_audio_encoder", ` + encoder + `}, ` + text + `}`,
		Tensors: whisperEncoder("audio_tower.", "audio_config.encoder_layers") + `
			multi_modal_projector.linear.weight | 64, 64
			multi_modal_projector.linear.bias   | 64
			` + textOf("language_model.model."),
	})
	add(Spec{
		Name: "mm_ultravox", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["UltravoxModel"], "model_type": "ultravox", "audio_config": {"model_type": "whisper", ` + encoder + `}, "audio_model_id": "openai/whisper-large-v3-turbo",
			"auto_map": {"AutoConfig": "ultravox_config.UltravoxConfig"}, "hidden_size": 48, "ignore_index": -100, "initializer_range": 0.02, "norm_init": 0.4, "pad_token_id": $pad,
			"projector_act": "swiglu", "projector_ln_mid": true, "stack_factor": 8, ` + llamaText + `, "text_model_id": null, "torch_dtype": "bfloat16", "vocab_size": 1024}`,
		Tensors: whisperEncoder("audio_tower.", "audio_config.encoder_layers") + `
			multi_modal_projector.ln_pre.weight   | 8*64
			multi_modal_projector.linear_1.weight | 48, 8*64
			multi_modal_projector.ln_mid.weight   | 24
			multi_modal_projector.linear_2.weight | 64, 24
			`,
	})
	add(Spec{
		Name: "mm_voxtral", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["VoxtralForConditionalGeneration"], "model_type": "voxtral", "audio_token_id": 24, "hidden_size": 64, "projector_hidden_act": "gelu", "torch_dtype": "bfloat16",
			"audio_config": {"model_type": "voxtral_encoder", "num_mel_bins": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 256, "hidden_size": 64, "head_dim": 32,
				"max_source_positions": 1500, "activation_function": "gelu", "scale_embedding": false}, ` + llamaText + `}`,
		Tensors: strings.ReplaceAll(whisperEncoder("audio_tower.", "audio_config.num_hidden_layers"), "128", "256") + `
			multi_modal_projector.linear_1.weight | 64, 256
			multi_modal_projector.linear_2.weight | 64, 64
			` + textOf("language_model.model."),
	})
	add(Spec{
		Name: "mm_audioflamingo3", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["AudioFlamingo3ForConditionalGeneration"], "model_type": "audioflamingo3", "audio_token_id": 1010, "projector_bias": true, "projector_hidden_act": "gelu",
			"torch_dtype": "bfloat16", "audio_config": {"model_type": "audioflamingo3_encoder", "num_mel_bins": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 128,
				"hidden_size": 64, "max_source_positions": 1500, "activation_function": "gelu", "scale_embedding": false, "layerdrop": 0.0}, ` + text + `}`,
		Tensors: whisperEncoder("audio_tower.", "audio_config.num_hidden_layers") + `
			multi_modal_projector.linear_{1,2}.weight | 64, 64
			multi_modal_projector.linear_{1,2}.bias   | 64
			` + textOf("language_model.model."),
	})
	add(Spec{
		Name: "mm_meralion2", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["MERaLiON2ForConditionalGeneration"], "model_type": "meralion2", "auto_map": {"AutoConfig": "configuration_meralion2.MERaLiON2Config"}, "head_dim": 16,
			"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "sliding_window": 4096, "speech_mlp_scale_factor": 3,
			"speech_mlp_use_projection": true, "speech_token_index": 1010, "torch_dtype": "bfloat16", "speech_config": {"model_type": "meralion_speech_encoder", ` + encoder + `},
			"text_config": {"model_type": "gemma2", "hidden_size": 64}, "vocab_size": 1024}`,
		Tensors: whisperEncoder("speech_encoder.", "speech_config.encoder_layers") + `
			ln_speech.{weight,bias}                               | 64
			speech_audio_adapter.mlp_adapter.0.weight             | 96, 3*64
			speech_audio_adapter.mlp_adapter.0.bias               | 96
			speech_audio_adapter.{gate,pool}_proj.weight          | 160, 96
			speech_audio_adapter.{gate,pool}_proj.bias            | 160
			speech_audio_adapter.out_proj.weight                  | 64, 160
			speech_audio_adapter.out_proj.bias                    | 64
			` + textOf("text_decoder.model."),
	})
	add(Spec{
		Name: "mm_glmasr", Encoder: true, Tokenizer: "bpe:qwen2", Files: files, Variants: more,
		Config: `{"architectures": ["GlmasrModel"], "model_type": "Glmasr", "auto_map": {"AutoConfig": "configuration_glmasr.GlmasrConfig"}, "adapter_type": "mlp", "max_whisper_length": 1500,
			"merge_factor": 4, "mlp_adapter_act": "gelu", "spec_aug": false, "use_rope": true, "torch_dtype": "bfloat16", "whisper_config": {"model_type": "whisper", ` + encoder + `},
			"lm_config": {"model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": 1024}}`,
		Tensors: strings.ReplaceAll(whisperEncoder("audio_encoder.whisper.", "whisper_config.encoder_layers"), `
		audio_encoder.whisper.layer_norm.`, `
		audio_encoder.layer_norm.`) + `
			audio_encoder.adapting.0.weight            | 128, 4*64
			audio_encoder.adapting.0.bias              | 128
			audio_encoder.adapting.2.weight            | 64, 128
			audio_encoder.adapting.2.bias              | 64
			audio_encoder.audio_bos_eos_token.weight   | 2, 64
			` + textOf("model."),
	})
}
