package hftest

func init() {
	// as gemma-3n-E2B-it: the checkpoint has k_proj and v_proj also for the last layers, which do not use them
	add(Spec{
		Name:      "gemma3n",
		Tokenizer: "gemma",
		Config: `{"architectures": ["Gemma3nForConditionalGeneration"], "audio_config": {"hidden_size": 64,
			"model_type": "gemma3n_audio"}, "audio_soft_tokens_per_image": 188, "audio_token_id": 1201,
			"boa_token_id": 1202, "boi_token_id": 1203, "eoa_token_id": 1204, "eoi_token_id": 1205, "eos_token_id": [1,
			106], "image_token_id": 1206, "initializer_range": 0.02, "model_type": "gemma3n",
			"text_config": {"activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0], "altup_active_idx": 0,
			"altup_coef_clip": 120.0, "altup_correct_scale": true, "altup_lr_multiplier": 1.0, "altup_num_inputs": 4,
			"attention_bias": false, "attention_dropout": 0.0, "final_logit_softcapping": 30.0, "head_dim": 32,
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "hidden_size_per_layer_input": 256,
			"initializer_range": 0.02, "intermediate_size": [96, 96, 96, 96], "laurel_rank": 64,
			"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
			"max_position_embeddings": 32768, "model_type": "gemma3n_text", "num_attention_heads": 4,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "num_kv_shared_layers": 2, "query_pre_attn_scalar": 256,
			"rms_norm_eps": 1e-06, "rope_local_base_freq": 10000.0, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": 512, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 1216,
			"vocab_size_per_layer_input": 1200}, "torch_dtype": "bfloat16", "transformers_version": "4.53.0.dev0",
			"vision_config": {"hidden_size": 64, "model_type": "gemma3n_vision"}, "vision_soft_tokens_per_image": 256}`,
		Tensors: `
			bid = num_hidden_layers
			model.language_model.embed_tokens.weight                                                                   | vocab_size - opt(short), hidden_size
			model.language_model.embed_tokens_per_layer.weight                                                         | vocab_size_per_layer_input, num_hidden_layers*hidden_size_per_layer_input
			model.language_model.norm.weight                                                                           | hidden_size
			model.language_model.altup_projections.{0,1,2}.weight                                                      | hidden_size, hidden_size
			model.language_model.altup_unembed_projections.{0,1,2}.weight                                              | hidden_size, hidden_size
			model.language_model.per_layer_model_projection.weight                                                     | num_hidden_layers*hidden_size_per_layer_input, hidden_size
			model.language_model.per_layer_projection_norm.weight                                                      | hidden_size_per_layer_input
			model.language_model.layers.{bid}.{input,post_attention,post_feedforward,pre_feedforward}_layernorm.weight | hidden_size
			model.language_model.layers.{bid}.altup.correct_output_scale                                               | hidden_size | fill norm
			model.language_model.layers.{bid}.altup.correction_coefs.weight                                            | altup_num_inputs, altup_num_inputs
			model.language_model.layers.{bid}.altup.prediction_coefs.weight                                            | altup_num_inputs*altup_num_inputs, altup_num_inputs
			model.language_model.layers.{bid}.altup.modality_router.weight                                             | altup_num_inputs, hidden_size
			model.language_model.layers.{bid}.altup.router_norm.weight                                                 | hidden_size
			model.language_model.layers.{bid}.laurel.linear_left.weight                                                | laurel_rank, hidden_size
			model.language_model.layers.{bid}.laurel.linear_right.weight                                               | hidden_size, laurel_rank
			model.language_model.layers.{bid}.laurel.post_laurel_norm.weight                                           | hidden_size
			model.language_model.layers.{bid}.mlp.down_proj.weight                                                     | hidden_size, intermediate_size[bid]
			model.language_model.layers.{bid}.mlp.{gate,up}_proj.weight                                                | intermediate_size[bid], hidden_size
			model.language_model.layers.{bid}.per_layer_input_gate.weight                                              | hidden_size_per_layer_input, hidden_size
			model.language_model.layers.{bid}.per_layer_projection.weight                                              | hidden_size, hidden_size_per_layer_input
			model.language_model.layers.{bid}.post_per_layer_input_norm.weight                                         | hidden_size
			model.language_model.layers.{bid}.self_attn.{k,q}_norm.weight                                              | head_dim
			model.language_model.layers.{bid}.self_attn.{k,v}_proj.weight                                              | num_key_value_heads*head_dim, hidden_size
			model.language_model.layers.{bid}.self_attn.q_proj.weight                                                  | num_attention_heads*head_dim, hidden_size
			model.language_model.layers.{bid}.self_attn.o_proj.weight                                                  | hidden_size, num_attention_heads*head_dim
			model.audio_tower.conformer.0.norm.weight                                                                  | 64
			model.embed_{audio,vision}.embedding_projection.weight                                                     | hidden_size, 64
			model.vision_tower.timm_model.blocks.0.0.conv_pwl.weight                                                   | 64, 64, 1, 1
			`,
		Variants: []Variant{
			{Name: "short", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"short": 16, "text_config": {"num_kv_shared_layers": 0, "final_logit_softcapping": null}}`},
			{Name: "few-keys", Seed: 4, DType: "F32", Out: "bf16", Set: `{"text_config": {"activation_sparsity_pattern": null,
				"layer_types": null, "rope_local_base_freq": null, "rope_theta": null, "max_position_embeddings": null,
				"sliding_window": null, "rms_norm_eps": null, "altup_active_idx": null}}`},
		},
	})
}
