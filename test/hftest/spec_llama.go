package hftest

func init() {
	add(Spec{
		Name:      "llama",
		Tokenizer: "spm",
		DType:     "F16",
		Config: `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 2048, "mlp_bias": false,
			"model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "float16", "transformers_version": "4.51.3", "use_cache": true,
			"vocab_size": $vocab}`,
		Files: map[string]string{"generation_config.json": `{"_from_model_config": true, "bos_token_id": 1,
			"eos_token_id": 2, "transformers_version": "4.51.3"}`},
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.rotary_emb.inv_freq | hd/2 | as F32 | if opt(old_buffers)
			`,
		Variants: []Variant{
			{Name: "biases", Seed: 3, DType: "BF16",
				Set: `{"attention_bias": true, "mlp_bias": true, "num_key_value_heads": 1}`},
			{Name: "llama3-rope", Seed: 4, Out: "bf16", Set: `{"tie_word_embeddings": true, "head_dim": 32,
				"rope_theta": 500000.0, "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
				"original_max_position_embeddings": 8192, "rope_type": "llama3"}}`},
			{Name: "old-buffers", Seed: 5, Out: "f32",
				Set: `{"old_buffers": true, "num_hidden_layers": 11, "rope_scaling": {"type": "linear", "factor": 2.5}}`},
		},
	})
	add(Spec{
		Name:      "mistral",
		Tokenizer: "spm",
		Config: `{"architectures": ["MistralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $bos,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "mistral",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-05,
			"rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.34.0", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "head-dim", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"head_dim": 32, "sliding_window": null}`},
			{Name: "yarn", Seed: 4,
				Set: `{"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}}`},
		},
	})
	add(Spec{
		Name:      "mixtral",
		Tokenizer: "spm",
		Config: `{"architectures": ["MixtralForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $bos,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "mixtral",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_local_experts": 4, "output_router_logits": false, "rms_norm_eps": 1e-05, "rope_theta": 1000000.0,
			"router_aux_loss_coef": 0.02, "sliding_window": null, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.36.0", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_local_experts
			model.layers.{bid}.block_sparse_moe.gate.weight                  | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w{1,3}.weight  | intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight      | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "eleven-experts", Seed: 3, DType: "F16", Shards: 2, Out: "bf16",
				Set: `{"num_local_experts": 11, "num_hidden_layers": 1}`},
		},
	})
	add(Spec{
		Name:      "llama-bpe",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "eos_token_id": 1001, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 8192, "mlp_bias": false,
			"model_type": "llama", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 500000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "llama3-rope", Seed: 3, DType: "F16", Out: "auto", Set: `{"head_dim": 32,
				"tie_word_embeddings": true, "eos_token_id": [1001, 1005], "max_position_embeddings": 131072,
				"rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
				"original_max_position_embeddings": 8192, "rope_type": "llama3"}}`},
		},
	})
	add(Spec{
		Name:      "llama4",
		Tokenizer: "bpe:llama4",
		Config: `{"architectures": ["Llama4ForConditionalGeneration"], "boi_token_index": 900, "eoi_token_index": 901,
			"image_token_index": 902, "model_type": "llama4", "text_config": {"attention_bias": false,
			"attention_dropout": 0.0, "bos_token_id": 1000, "eos_token_id": [1001, 1002], "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 262144,
			"model_type": "llama4_text", "num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2,
			"rms_norm_eps": 1e-05, "rope_scaling": {"factor": 16.0, "high_freq_factor": 1.0, "low_freq_factor": 1.0,
			"original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
			"tie_word_embeddings": false, "use_cache": true, "vocab_size": 1024, "attention_chunk_size": 8192,
			"attn_scale": 0.1, "attn_temperature_tuning": true, "floor_scale": 8192, "for_llm_compressor": false,
			"head_dim": 32, "interleave_moe_layer_step": 1, "intermediate_size_mlp": 160, "no_rope_layers": [],
			"num_experts_per_tok": 1, "num_local_experts": 4, "output_router_logits": false, "pad_token_id": 1003,
			"router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0, "use_qk_norm": true},
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"vision_config": {"model_type": "llama4_vision_model", "hidden_size": 64, "image_size": 56,
			"intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 1, "patch_size": 14,
			"pixel_shuffle_ratio": 0.5, "projector_input_dim": 64, "projector_output_dim": 64, "vision_output_dim": 64}}`,
		Tensors: `
			bid = num_hidden_layers
			vid = vision_config.num_hidden_layers
			vision_model.class_embedding                                                       | vision_config.hidden_size
			vision_model.positional_embedding_vlm                                              | 17, vision_config.hidden_size
			vision_model.patch_embedding.linear.weight                                         | vision_config.hidden_size, 588
			vision_model.layernorm_{pre,post}.weight                                           | vision_config.hidden_size
			vision_model.layernorm_{pre,post}.bias                                             | vision_config.hidden_size
			vision_model.model.layers.{vid}.self_attn.{q,k,v,o}_proj.weight                    | vision_config.hidden_size, vision_config.hidden_size
			vision_model.model.layers.{vid}.self_attn.{q,k,v,o}_proj.bias                      | vision_config.hidden_size
			vision_model.model.layers.{vid}.mlp.fc1.weight                                     | vision_config.intermediate_size, vision_config.hidden_size
			vision_model.model.layers.{vid}.mlp.fc1.bias                                       | vision_config.intermediate_size
			vision_model.model.layers.{vid}.mlp.fc2.weight                                     | vision_config.hidden_size, vision_config.intermediate_size
			vision_model.model.layers.{vid}.mlp.fc2.bias                                       | vision_config.hidden_size
			vision_model.model.layers.{vid}.{input,post_attention}_layernorm.weight            | vision_config.hidden_size
			vision_model.model.layers.{vid}.{input,post_attention}_layernorm.bias              | vision_config.hidden_size
			vision_model.vision_adapter.mlp.fc1.weight                                         | vision_config.hidden_size, vision_config.intermediate_size
			vision_model.vision_adapter.mlp.fc2.weight                                         | vision_config.hidden_size, vision_config.hidden_size
			multi_modal_projector.linear_1.weight                                              | hidden_size, vision_config.hidden_size
			language_model.model.embed_tokens.weight                                           | vocab_size, hidden_size
			language_model.model.layers.{bid}.self_attn.q_proj.weight                          | num_attention_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.{k,v}_proj.weight                      | num_key_value_heads*head_dim, hidden_size
			language_model.model.layers.{bid}.self_attn.o_proj.weight                          | hidden_size, num_attention_heads*head_dim
			language_model.model.layers.{bid}.feed_forward.experts.gate_up_proj                | num_local_experts, hidden_size, 2*intermediate_size | if (bid+1)%interleave_moe_layer_step == 0
			language_model.model.layers.{bid}.feed_forward.experts.down_proj                   | num_local_experts, intermediate_size, hidden_size   | if (bid+1)%interleave_moe_layer_step == 0
			language_model.model.layers.{bid}.feed_forward.router.weight                       | num_local_experts, hidden_size                      | if (bid+1)%interleave_moe_layer_step == 0
			language_model.model.layers.{bid}.feed_forward.shared_expert.{gate,up}_proj.weight | intermediate_size, hidden_size                      | if (bid+1)%interleave_moe_layer_step == 0
			language_model.model.layers.{bid}.feed_forward.shared_expert.down_proj.weight      | hidden_size, intermediate_size                      | if (bid+1)%interleave_moe_layer_step == 0
			language_model.model.layers.{bid}.feed_forward.{gate,up}_proj.weight               | intermediate_size_mlp, hidden_size                  | if (bid+1)%interleave_moe_layer_step != 0
			language_model.model.layers.{bid}.feed_forward.down_proj.weight                    | hidden_size, intermediate_size_mlp                  | if (bid+1)%interleave_moe_layer_step != 0
			language_model.model.layers.{bid}.{input,post_attention}_layernorm.weight          | hidden_size
			language_model.model.norm.weight                                                   | hidden_size
			language_model.lm_head.weight                                                      | vocab_size, hidden_size
			`,
		Variants: []Variant{
			{Name: "interleaved", Seed: 3, Shards: 2, Out: "auto",
				Set: `{"text_config": {"interleave_moe_layer_step": 2, "no_rope_layers": [0, 0, 0, 0],
					"num_local_experts": 11}}`},
		},
	})
}

// llamaAttention are the tensors that Llama and similar models share: embeddings, norms and attention.
const llamaAttention = `
	bid = num_hidden_layers
	hd  = opt(head_dim) || hidden_size / num_attention_heads
	model.embed_tokens.weight                               | vocab_size, hidden_size
	model.norm.weight                                       | hidden_size
	model.layers.{bid}.input_layernorm.weight               | hidden_size
	model.layers.{bid}.post_attention_layernorm.weight      | hidden_size
	model.layers.{bid}.self_attn.q_proj.weight              | num_attention_heads*hd, hidden_size
	model.layers.{bid}.self_attn.{k,v}_proj.weight          | num_key_value_heads*hd, hidden_size
	model.layers.{bid}.self_attn.o_proj.weight              | hidden_size, num_attention_heads*hd
	model.layers.{bid}.self_attn.q_proj.bias                | num_attention_heads*hd | if opt(attention_bias)
	model.layers.{bid}.self_attn.{k,v}_proj.bias            | num_key_value_heads*hd | if opt(attention_bias)
	model.layers.{bid}.self_attn.o_proj.bias                | hidden_size            | if opt(attention_bias)
`

// llamaHead is the output matrix, which models with tied embeddings do not have.
const llamaHead = `
	lm_head.weight                                          | vocab_size, hidden_size | if !opt(tie_word_embeddings)
`

// llamaMLP are the MLPs that go with llamaAttention.
const llamaMLP = `
	model.layers.{bid}.mlp.{gate,up}_proj.weight            | intermediate_size, hidden_size
	model.layers.{bid}.mlp.down_proj.weight                 | hidden_size, intermediate_size
	model.layers.{bid}.mlp.{gate,up}_proj.bias              | intermediate_size      | if opt(mlp_bias)
	model.layers.{bid}.mlp.down_proj.bias                   | hidden_size            | if opt(mlp_bias)
`
