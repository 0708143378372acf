package hftest

func init() {
	add(Spec{
		Name:      "gemma",
		Tokenizer: "gemma",
		Config: `{"architectures": ["GemmaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 2, "eos_token_id": 1, "head_dim": 32, "hidden_act": "gelu",
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 0, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 10000.0, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1216}`,
		Tensors: llamaAttention + llamaMLP + `
			lm_head.weight | vocab_size, hidden_size | if opt(extra_head)
			`,
		Variants: []Variant{
			{Name: "lm-head", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"extra_head": true, "num_key_value_heads": 1}`},
			{Name: "few-keys", Seed: 4, DType: "F32", Out: "bf16",
				Set: `{"rms_norm_eps": null, "hidden_activation": null, "rope_theta": null, "num_key_value_heads": 4}`},
		},
	})
	add(Spec{
		Name:      "gemma2",
		Tokenizer: "gemma",
		Config: `{"architectures": ["Gemma2ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attn_logit_softcapping": 50.0, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
			"final_logit_softcapping": 30.0, "head_dim": 32, "hidden_act": "gelu_pytorch_tanh",
			"hidden_activation": "gelu_pytorch_tanh", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 0, "query_pre_attn_scalar": 64,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0, "sliding_window": 4096,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1216}`,
		Tensors: llamaAttention + llamaMLP + `
			model.layers.{bid}.{pre,post}_feedforward_layernorm.weight | hidden_size
			`,
		Variants: []Variant{
			{Name: "few-keys", Seed: 3, DType: "F16", Out: "f32",
				Set: `{"sliding_window": null, "attn_logit_softcapping": null}`},
		},
	})
	add(Spec{
		Name:      "gemma3",
		Tokenizer: "gemma",
		Config: `{"architectures": ["Gemma3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attn_logit_softcapping": null, "bos_token_id": 2, "cache_implementation": "hybrid", "eos_token_id": 1,
			"final_logit_softcapping": null, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768,
			"model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 3, "num_key_value_heads": 2,
			"pad_token_id": 0, "query_pre_attn_scalar": 64, "rms_norm_eps": 1e-06, "rope_local_base_freq": 10000,
			"rope_scaling": null, "rope_theta": 1000000, "sliding_window": 512, "sliding_window_pattern": 6,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1216}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 2, "eos_token_id": 1,
			"transformers_version": "4.51.3", "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95}`},
		Tensors: llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.{pre,post}_feedforward_layernorm.weight | hidden_size
			`,
		Variants: []Variant{
			{Name: "softcap", Seed: 3, DType: "F16", Out: "auto",
				Set: `{"num_hidden_layers": 7, "final_logit_softcapping": 30.0}`},
			{Name: "few-keys", Seed: 4, Out: "bf16",
				Set: `{"rope_theta": null, "rope_local_base_freq": null, "sliding_window": null,
					"max_position_embeddings": null}`},
			{Name: "v5", Seed: 5, Out: "f32", Set: `{"num_hidden_layers": 7, "rope_theta": null,
				"rope_local_base_freq": null, "rope_scaling": null,
				"rope_parameters": { "full_attention": {"rope_type": "yarn", "factor": 4.0, "rope_theta": 2000000.0},
				"sliding_attention": {"rope_type": "default", "rope_theta": 20000.0}}}`},
		},
	})
	add(Spec{
		Name:      "gemma3-vlm",
		Tokenizer: "gemma",
		Config: `{"architectures": ["Gemma3ForConditionalGeneration"], "boi_token_index": 20, "eoi_token_index": 21,
			"eos_token_id": [1, 10], "image_token_index": 22, "initializer_range": 0.02, "mm_tokens_per_image": 16,
			"model_type": "gemma3", "text_config": {"attention_bias": false, "attention_dropout": 0.0,
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 131072,
			"model_type": "gemma3_text", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-06, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "rope_theta": 1000000.0,
			"vocab_size": 1216, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 1024,
			"query_pre_attn_scalar": 64, "rope_local_base_freq": 10000.0}, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 64,
			"image_size": 56, "intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 1,
			"patch_size": 14, "vision_use_head": false}}`,
		Tensors: `
			bid = num_hidden_layers
			vid = vision_config.num_hidden_layers
			language_model.model.embed_tokens.weight                                                                   | vocab_size, hidden_size
			language_model.model.layers.{bid}.{input,post_attention,post_feedforward,pre_feedforward}_layernorm.weight | hidden_size
			language_model.model.layers.{bid}.mlp.down_proj.weight                                                     | hidden_size, intermediate_size
			language_model.model.layers.{bid}.mlp.{gate,up}_proj.weight                                                | intermediate_size, hidden_size
			language_model.model.layers.{bid}.self_attn.{k,q}_norm.weight                                              | head_dim
			language_model.model.layers.{bid}.self_attn.{k,v}_proj.weight                                              | num_key_value_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.o_proj.weight                                                  | hidden_size, num_attention_heads*head_dim
			language_model.model.layers.{bid}.self_attn.q_proj.weight                                                  | num_attention_heads*head_dim, hidden_size
			language_model.model.norm.weight                                                                           | hidden_size
			multi_modal_projector.mm_input_projection_weight                                                           | vision_config.hidden_size, hidden_size
			multi_modal_projector.mm_soft_emb_norm.weight                                                              | vision_config.hidden_size
			vision_tower.embeddings.patch_embedding.bias                                                               | vision_config.hidden_size
			vision_tower.embeddings.patch_embedding.weight                                                             | vision_config.hidden_size, 3, 14, 14
			vision_tower.embeddings.position_embedding.weight                                                          | 16, vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.layer_norm{1,2}.bias                                                     | vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.layer_norm{1,2}.weight                                                   | vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.mlp.fc1.bias                                                             | vision_config.intermediate_size
			vision_tower.encoder.layers.{vid}.mlp.fc1.weight                                                           | vision_config.intermediate_size, vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.mlp.fc2.bias                                                             | vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.mlp.fc2.weight                                                           | vision_config.hidden_size, vision_config.intermediate_size
			vision_tower.encoder.layers.{vid}.self_attn.{k,out,q,v}_proj.bias                                          | vision_config.hidden_size
			vision_tower.encoder.layers.{vid}.self_attn.{k,out,q,v}_proj.weight                                        | vision_config.hidden_size, vision_config.hidden_size
			vision_tower.post_layernorm.bias                                                                           | vision_config.hidden_size
			vision_tower.post_layernorm.weight                                                                         | vision_config.hidden_size
			`,
		Variants: []Variant{
			{Name: "few-keys", Seed: 3, Out: "auto", Set: `{"text_config": {"rope_scaling": null, "rope_theta": null,
				"rope_local_base_freq": null, "max_position_embeddings": null, "hidden_activation": null,
				"query_pre_attn_scalar": null}}`},
		},
	})
}
