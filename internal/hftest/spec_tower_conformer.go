package hftest

func init() {
	more := []Variant{{Name: "f16", Seed: 3, DType: "F16", Out: "f32"}, {Name: "q8_0", Seed: 4, Out: "q8_0"}}
	const graniteText = `"text_config": {"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_dropout": 0.1, "attention_multiplier": 0.015625, "embedding_multiplier": 12.0,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "logits_scaling": 8.0, "max_position_embeddings": 131072, "mlp_bias": false,
			"model_type": "granite", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_theta": 10000000.0,
			"vocab_size": 1024}`
	speech := func(plus, class, encoder, seen string) string {
		return `{"architectures": ["` + class + `"], "audio_token_index": 1010, "downsample_rate": 5, "encoder_config": {"context_size": 200, "conv_expansion_factor": 2, "conv_kernel_size": 15,
				"dim_head": 16, "dropout": 0.1, "feedforward_mult": 4, "hidden_dim": 32, "input_dim": 160, "max_pos_emb": 512, "model_type": "granite_speech` + plus + `_encoder", "num_heads": 2, "num_layers": 4,
				` + encoder + `"output_dim": 42}, "has_lora_adapter": false, "initializer_range": 0.02, "model_type": "granite_speech` + plus + `",
			"projector_config": {"attention_probs_dropout_prob": 0.1, "cross_attention_frequency": 1, "encoder_hidden_size": ` + seen + `, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "hidden_size": 32,
				"initializer_range": 0.02, "intermediate_size": 64, "layer_norm_eps": 1e-12, "max_position_embeddings": 2048, "model_type": "blip_2_qformer", "num_attention_heads": 2,
				"num_hidden_layers": 2, "position_embedding_type": "absolute", "use_qformer_text_input": false, "vocab_size": 30522}, ` + graniteText + `,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.52.0.dev0", "window_size": 15}`
	}
	const heard = `
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
		Name: "mm_granite_speech", Tower: true, Tokenizer: "bpe:starcoder", Variants: more,
		Config:  speech("", "GraniteSpeechForConditionalGeneration", "", "32"),
		Tensors: heard + textOf("language_model.model."),
	})
	add(Spec{
		Name: "mm_granite_speech_plus", Tower: true, Tokenizer: "bpe:starcoder", Variants: more,
		Config:  speech("_plus", "GraniteSpeechPlusForConditionalGeneration", `"cat_hidden_layers": [2], `, "64"),
		Tensors: heard + textOf("language_model.model."),
	})
}
