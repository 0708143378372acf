package hftest

func init() {
	add(Spec{
		Name:      "mistral3",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Mistral3ForConditionalGeneration"], "image_token_index": 10,
			"model_type": "mistral3", "multimodal_projector_bias": false, "projector_hidden_act": "gelu",
			"spatial_merge_size": 2, "text_config": {"attention_dropout": 0.0, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
			"model_type": "mistral", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-05, "rope_theta": 1000000000.0, "sliding_window": null, "use_cache": true,
			"vocab_size": 1024}, "torch_dtype": "bfloat16", "transformers_version": "4.50.0",
			"vision_config": {"attention_dropout": 0.0, "head_dim": 64, "hidden_act": "silu", "hidden_size": 64,
			"image_size": 1540, "initializer_range": 0.02, "intermediate_size": 96, "model_type": "pixtral",
			"num_attention_heads": 1, "num_channels": 3, "num_hidden_layers": 1, "patch_size": 14,
			"rope_theta": 10000.0}, "vision_feature_layer": -1}`,
		Tensors: `
			bid = num_hidden_layers
			language_model.lm_head.weight                                                 | vocab_size, hidden_size
			language_model.model.embed_tokens.weight                                      | vocab_size, hidden_size
			language_model.model.norm.weight                                              | hidden_size
			language_model.model.layers.{bid}.{input,post_attention}_layernorm.weight     | hidden_size
			language_model.model.layers.{bid}.self_attn.q_proj.weight                     | num_attention_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.{k,v}_proj.weight                 | num_key_value_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.o_proj.weight                     | hidden_size, num_attention_heads*head_dim
			language_model.model.layers.{bid}.mlp.{gate,up}_proj.weight                   | intermediate_size, hidden_size
			language_model.model.layers.{bid}.mlp.down_proj.weight                        | hidden_size, intermediate_size
			multi_modal_projector.linear_1.weight                                         | hidden_size, vision_config.hidden_size
			multi_modal_projector.patch_merger.merging_layer.weight                       | vision_config.hidden_size, 4*vision_config.hidden_size
			vision_tower.patch_conv.weight                                                | vision_config.hidden_size, 3, 14, 14
			vision_tower.ln_pre.weight                                                    | vision_config.hidden_size
			vision_tower.transformer.layers.0.attention.q_proj.weight                     | vision_config.hidden_size, vision_config.hidden_size
			`,
	})
	add(Spec{
		Name:      "ministral3",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["Ministral3ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $bos,
			"eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 262144, "model_type": "ministral3",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05,
			"rope_parameters": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 16.0, "llama_4_scaling_beta": 0.1,
			"mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 16384, "rope_theta": 1000000.0,
			"rope_type": "yarn", "type": "yarn"}, "sliding_window": null, "tie_word_embeddings": true,
			"torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
	})
	add(Spec{
		Name:      "llada_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["LLaDAMoEModelLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_lladamoe.LLaDAConfig"}, "clip_qkv": null,
			"dense_intermediate_size": 96, "eos_token_id": $eos, "expert_intermediate_size": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "max_position_embeddings": 8192, "model_type": "lladamoe",
			"moe_layer_freq": [1, 1], "norm_topk_prob": null, "num_attention_heads": 4, "num_experts": 11,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 4, "output_router_logits": false,
			"pad_token_id": $pad, "partial_rotary_factor": 1, "qk_layernorm": true, "rms_norm_eps": 1e-05,
			"rope_scaling": null, "rope_theta": 50000, "router_aux_loss_coef": 0.01, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.53.2", "use_cache": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + headNorms + `
			xid = num_experts
			model.layers.{bid}.mlp.gate.weight                                | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight        | expert_intermediate_size, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight             | hidden_size, expert_intermediate_size
			`,
	})
}
