package hftest

import "strings"

func init() {
	more := []Variant{{Name: "f16", Seed: 3, DType: "F16", Out: "f32"}, {Name: "q8_0", Seed: 4, Out: "q8_0"}}
	const graniteText = `"text_config": {"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_dropout": 0.1, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": false,
			"model_type": "granite", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_theta": 10000000.0,
			"vocab_size": 1024}`
	speech := func(plus, class, encoder, encoderWidth string) string {
		return `{"architectures": ["` + class + `"], "audio_token_index": 1010, "downsample_rate": 5, "encoder_config": {"context_size": 200, "conv_expansion_factor": 2, "conv_kernel_size": 15,
				"dim_head": 16, "dropout": 0.1, "feedforward_mult": 4, "hidden_dim": 32, "input_dim": 160, "max_pos_emb": 512, "model_type": "granite_speech` + plus + `_encoder", "num_heads": 2, "num_layers": 4,
				` + encoder + `"output_dim": 42}, "has_lora_adapter": false, "initializer_range": 0.02, "model_type": "granite_speech` + plus + `",
			"projector_config": {"attention_probs_dropout_prob": 0.1, "cross_attention_frequency": 1, "encoder_hidden_size": ` + encoderWidth + `, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 32,
				"initializer_range": 0.02, "intermediate_size": 64, "layer_norm_eps": 1e-12, "max_position_embeddings": 2048, "model_type": "blip_2_qformer", "num_attention_heads": 2,
				"num_hidden_layers": 2, "position_embedding_type": "absolute", "use_qformer_text_input": false, "vocab_size": 30522}, ` + graniteText + `,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0", "window_size": 15}`
	}
	const audioTensors = `
		bid = encoder_config.num_layers
		w = encoder_config.hidden_dim
		encoder.input_linear.weight                                   | w, 160
		encoder.input_linear.bias                                     | w
		encoder.out.weight                                            | 42, w
		encoder.out.bias                                              | 42
		encoder.out_mid.weight                                        | w, 42
		encoder.out_mid.bias                                          | w
		encoder.layers.{bid}.ff{1,2}.pre_norm.{weight,bias}           | w
		encoder.layers.{bid}.ff{1,2}.up_proj.weight                   | 4*w, w
		encoder.layers.{bid}.ff{1,2}.up_proj.bias                     | 4*w
		encoder.layers.{bid}.ff{1,2}.down_proj.weight                 | w, 4*w
		encoder.layers.{bid}.ff{1,2}.down_proj.bias                   | w
		encoder.layers.{bid}.attn.pre_norm.{weight,bias}              | w
		encoder.layers.{bid}.attn.to_q.weight                         | w, w
		encoder.layers.{bid}.attn.to_kv.weight                        | 2*w, w
		encoder.layers.{bid}.attn.to_out.weight                       | w, w
		encoder.layers.{bid}.attn.to_out.bias                         | w
		encoder.layers.{bid}.attn.rel_pos_emb.weight                  | 1025, 16
		encoder.layers.{bid}.conv.norm.{weight,bias}                  | w
		encoder.layers.{bid}.conv.up_conv.weight                      | 4*w, w, 1
		encoder.layers.{bid}.conv.up_conv.bias                        | 4*w
		encoder.layers.{bid}.conv.depth_conv.conv.weight              | 2*w, 1, 15
		encoder.layers.{bid}.conv.batch_norm.{weight,bias,running_mean} | 2*w
		encoder.layers.{bid}.conv.batch_norm.running_var              | 2*w | fill norm
		encoder.layers.{bid}.conv.batch_norm.num_batches_tracked      | 1 | as I64
		encoder.layers.{bid}.conv.down_conv.weight                    | w, 2*w, 1
		encoder.layers.{bid}.conv.down_conv.bias                      | w
		encoder.layers.{bid}.post_norm.{weight,bias}                  | w
		projector.query                                               | 1, 3, w
		projector.qformer.layernorm.{weight,bias}                     | w
		projector.linear.weight                                       | 64, w
		projector.linear.bias                                         | 64
		ly = 2
		projector.qformer.encoder.layer.{ly}.attention.attention.{query,key,value}.weight  | w, w
		projector.qformer.encoder.layer.{ly}.attention.attention.{query,key,value}.bias    | w
		projector.qformer.encoder.layer.{ly}.{attention,crossattention}.output.dense.weight | w, w
		projector.qformer.encoder.layer.{ly}.{attention,crossattention}.output.dense.bias  | w
		projector.qformer.encoder.layer.{ly}.{attention,crossattention}.output.LayerNorm.{weight,bias} | w
		projector.qformer.encoder.layer.{ly}.crossattention.attention.query.weight         | w, w
		projector.qformer.encoder.layer.{ly}.crossattention.attention.{key,value}.weight   | w, projector_config.encoder_hidden_size
		projector.qformer.encoder.layer.{ly}.crossattention.attention.{query,key,value}.bias | w
		projector.qformer.encoder.layer.{ly}.intermediate_query.dense.weight               | 64, w
		projector.qformer.encoder.layer.{ly}.intermediate_query.dense.bias                 | 64
		projector.qformer.encoder.layer.{ly}.output_query.dense.weight                     | w, 64
		projector.qformer.encoder.layer.{ly}.output_query.dense.bias                       | w
		projector.qformer.encoder.layer.{ly}.output_query.LayerNorm.{weight,bias}          | w
		`
	add(Spec{
		Name: "mm_granite_speech", Encoder: true, Tokenizer: "bpe:starcoder", Variants: more,
		Config:  speech("", "GraniteSpeechForConditionalGeneration", "", "32"),
		Tensors: audioTensors + textOf("language_model.model."),
	})
	add(Spec{
		Name: "mm_granite_speech_plus", Encoder: true, Tokenizer: "bpe:starcoder", Variants: more,
		Config:  speech("_plus", "GraniteSpeechPlusForConditionalGeneration", `"cat_hidden_layers": [2], `, "64"),
		Tensors: audioTensors + textOf("language_model.model."),
	})
	const nemo = `"feat_in": 128, "feat_out": -1, "n_layers": 7, "d_model": 64, "subsampling": "dw_striding", "subsampling_factor": 8, "subsampling_conv_channels": 32,
			"causal_downsampling": false, "reduction": null, "reduction_position": null, "reduction_factor": 1, "ff_expansion_factor": 4, "self_attention_model": "rel_pos", "n_heads": 2,
			"att_context_size": [-1, -1], "xscaling": false, "untie_biases": true, "pos_emb_max_len": 5000, "conv_kernel_size": 9, "conv_norm_type": "batch_norm", "conv_context_size": null,
			"dropout": 0.1, "dropout_pre_encoder": 0.1, "dropout_emb": 0.0, "dropout_att": 0.1`
	const conformer = `
		aid = 7
		P.pre_encode.conv.{0,2,5}.weight                        | 32, 1, 3, 3
		P.pre_encode.conv.{3,6}.weight                          | 32, 32, 1, 1
		P.pre_encode.conv.{0,2,3,5,6}.bias                      | 32
		P.pre_encode.out.weight                                 | 64, 32*16
		P.pre_encode.out.bias                                   | 64
		P.layers.{aid}.norm_{feed_forward1,feed_forward2,self_att,conv,out}.{weight,bias} | 64
		P.layers.{aid}.feed_forward{1,2}.linear1.weight         | 256, 64
		P.layers.{aid}.feed_forward{1,2}.linear1.bias           | 256
		P.layers.{aid}.feed_forward{1,2}.linear2.weight         | 64, 256
		P.layers.{aid}.feed_forward{1,2}.linear2.bias           | 64
		P.layers.{aid}.self_attn.linear_{q,k,v,out,pos}.weight  | 64, 64
		P.layers.{aid}.self_attn.linear_{q,k,v,out}.bias        | 64
		P.layers.{aid}.self_attn.pos_bias_{u,v}                 | 2, 32
		P.layers.{aid}.conv.pointwise_conv1.weight              | 128, 64, 1
		P.layers.{aid}.conv.pointwise_conv1.bias                | 128
		P.layers.{aid}.conv.depthwise_conv.weight               | 64, 1, 9
		P.layers.{aid}.conv.{depthwise_conv,pointwise_conv2}.bias | 64
		P.layers.{aid}.conv.batch_norm.{weight,bias,running_mean} | 64
		P.layers.{aid}.conv.batch_norm.running_var              | 64 | fill norm
		P.layers.{aid}.conv.batch_norm.num_batches_tracked      | 1 | as I64
		P.layers.{aid}.conv.pointwise_conv2.weight              | 64, 64, 1
		`
	add(Spec{
		Name: "mm_lfm2_audio", Encoder: true, Tokenizer: "bpe:llama3", Variants: more,
		Config: `{"architectures": ["Lfm2AudioForConditionalGeneration"], "codebooks": 8, "tie_audio_embeddings": false, "semantic_codebook_factor": 100, "codebook_weight": "log",
			"interleaved_n_text": 6, "interleaved_n_audio": 12, "model_type": "lfm2_audio", "preprocessor": {"sample_rate": 16000, "normalize": "per_feature", "window_size": 0.025,
				"window_stride": 0.01, "window": "hann", "features": 128, "n_fft": 512, "log": true, "frame_splicing": 1, "dither": 1e-05, "pad_to": 0, "pad_value": 0.0},
			"encoder": {` + nemo + `}, "lfm": {"_name_or_path": "LiquidAI/LFM2-1.2B", ` + lfm2Text + `}, "depthformer": {"layers": 6, "dim": 1024, "tie": true}, "torch_dtype": "bfloat16"}`,
		Tensors: strings.ReplaceAll(conformer, "P.", "conformer.") + `
			audio_adapter.model.0.{weight,bias}           | 64
			audio_adapter.model.{1,3}.weight              | 64, 64
			audio_adapter.model.{1,3}.bias                | 64
			audio_embedding.{embedding,to_logits}.weight  | 96, 64
			audio_embedding.embedding_norm.weight         | 64
			audio_loss_weights                            | 8
			codebook_offsets                              | 8 | as I64
			depth_embeddings.0.embedding.weight           | 32, 64
			depth_linear.weight                           | 64, 64
			depthformer.layers.0.feed_forward.w1.weight   | 64, 64
			` + textOf("lfm."),
	})
	add(Spec{
		Name: "mm_d1_omni", Encoder: true, Tokenizer: "bpe:llama3", Variants: more,
		Config: `{"architectures": ["D1OmniModel"], "audio_text_length": 15360, "auto_map": {"AutoModel": "modeling_d1_omni.D1OmniModel"}, "head_layers": 2, "image_text_length": 896,
			"max_length": 16384, "model_type": "d1_omni", "downsample_factor": 2, "text_config": {"model_type": "lfm2", "intermediate_size": 96, "block_auto_adjust_ff_dim": true, "block_multiple_of": 32, "block_ffn_dim_multiplier": 1.0, ` + lfm2Text + `}, "torch_dtype": "bfloat16", "transformers_version": "5.2.0",
			"audio_config": {` + nemo + `}, "vision_config": {"attention_dropout": 0.0, "hidden_act": "gelu_pytorch_tanh", "hidden_size": 32, "intermediate_size": 64, "layer_norm_eps": 1e-06,
				"model_type": "siglip2_vision_model", "num_attention_heads": 2, "num_channels": 3, "num_hidden_layers": 4, "num_patches": 16, "patch_size": 16}}`,
		Tensors: strings.Replace(siglip("vision.tower.vision_model."), "w, 3, patch, patch", "w, 3*patch*patch", 1) + strings.ReplaceAll(conformer, "P.", "audio.encoder.") + `
			vision.projector.linear_1.weight              | 96, 4*w
			vision.projector.linear_1.bias                | 96
			vision.projector.linear_2.weight              | 64, 96
			vision.projector.linear_2.bias                | 64
			audio.adapter.norm.{weight,bias}              | 64
			audio.adapter.linear_{1,2}.weight             | 64, 64
			audio.adapter.linear_{1,2}.bias               | 64
			audio.residual.ln.{weight,bias}               | 64
			audio.residual.down.weight                    | 32, 64
			audio.residual.down.bias                      | 32
			audio.residual.up.weight                      | 64, 32
			audio.residual.up.bias                        | 64
			head.head.layers.0.mlp.weight                 | 64, 64
			` + textOf("encoder."),
	})
}

// lfm2Text has the keys of a text_config for a small LFM2.
const lfm2Text = `"block_ff_dim": 96, "conv_L_cache": 3, "conv_bias": false, "hidden_size": 64, "layer_types": ["conv", "full_attention"], "max_position_embeddings": 128000,
				"norm_eps": 1e-05, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rope_theta": 1000000.0, "vocab_size": 1024`
