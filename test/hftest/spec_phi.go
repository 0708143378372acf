package hftest

func init() {
	add(Spec{
		Name:      "phi",
		Tokenizer: "bpe:phi-2",
		DType:     "F16",
		Config: `{"architectures": ["PhiForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $bos,
			"embd_pdrop": 0.0, "eos_token_id": $eos, "hidden_act": "gelu_new", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 256, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 2048, "model_type": "phi", "num_attention_heads": 2, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "partial_rotary_factor": 0.4, "qk_layernorm": false, "resid_pdrop": 0.1,
			"rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "torch_dtype": "float16",
			"transformers_version": "4.37.0", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			lm_head.weight                                          | vocab_size, hidden_size
			lm_head.bias                                            | vocab_size
			model.embed_tokens.weight                               | vocab_size, hidden_size
			model.final_layernorm.{weight,bias}                     | hidden_size
			model.layers.{bid}.input_layernorm.{weight,bias}        | hidden_size
			model.layers.{bid}.self_attn.{q,k,v}_proj.weight        | hidden_size, hidden_size
			model.layers.{bid}.self_attn.{q,k,v}_proj.bias          | hidden_size
			model.layers.{bid}.self_attn.dense.weight               | hidden_size, hidden_size
			model.layers.{bid}.self_attn.dense.bias                 | hidden_size
			model.layers.{bid}.mlp.fc1.weight                       | intermediate_size, hidden_size
			model.layers.{bid}.mlp.fc1.bias                         | intermediate_size
			model.layers.{bid}.mlp.fc2.weight                       | hidden_size, intermediate_size
			model.layers.{bid}.mlp.fc2.bias                         | hidden_size
			`,
		Variants: []Variant{
			{Name: "lacking", Seed: 3, DType: "BF16", Out: "auto",
				Set: `{"partial_rotary_factor": null, "layer_norm_eps": null, "num_key_value_heads": null,
					"max_position_embeddings": null}`},
		},
	})
	add(Spec{
		Name:      "phi3",
		Tokenizer: "spm",
		AddedTokens: []string{"<|endoftext|>", "<|assistant|>", "<|placeholder1|>", "<|system|>",
			"<|end|>", "<|user|>"},
		Config: `{"architectures": ["Phi3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"}, "bos_token_id": $bos, "embd_pdrop": 0.0,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "original_max_position_embeddings": 4096,
			"pad_token_id": $eos, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 10000.0, "sliding_window": 2047, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.39.3", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: phi3Tensors,
		Variants: []Variant{
			{Name: "long", Seed: 3, Set: `{"max_position_embeddings": 131072, "sliding_window": 262144,
				"rope_scaling": {"long_factor": [1.05, 1.1, 2.25, 3.5, 9.123, 27.4, 60.3, 64.75], "short_factor": [1.0,
				1.01, 1.02, 1.03, 1.1, 1.25, 2.05, 2.55], "type": "longrope"}}`},
			{Name: "phi-4", Seed: 4, Out: "bf16", Set: `{"max_position_embeddings": 16384,
				"original_max_position_embeddings": 16384, "sliding_window": null, "num_key_value_heads": 2,
				"rope_theta": 250000}`},
			{Name: "phi-4-mini", Seed: 5, DType: "F16", Set: `{"tie_word_embeddings": true,
				"partial_rotary_factor": 0.75, "max_position_embeddings": 131072, "num_key_value_heads": 2,
				"sliding_window": 262144, "rope_scaling": {"long_factor": [1, 1.1186, 1.25, 9.5, 16.75, 32.4],
				"short_factor": [1, 1, 1, 1.1, 1.5, 2], "type": "su"}}`},
			{Name: "yarn", Seed: 6,
				Set: `{"max_position_embeddings": 8192, "rope_scaling": {"long_factor": [1, 1.1, 2, 3, 4, 5, 6, 7],
					"short_factor": [1, 1, 1, 1, 1, 1, 1, 1.5], "type": "yarn"}}`},
		},
	})
	add(Spec{
		Name:      "phimoe",
		Tokenizer: "spm",
		Config: `{"architectures": ["PhiMoEForCausalLM"], "attention_bias": true, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_phimoe.PhiMoEConfig"}, "bos_token_id": $bos, "eos_token_id": $eos,
			"hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 64, "initializer_range": 0.02,
			"input_jitter_noise": 0.01, "intermediate_size": 96, "lm_head_bias": true,
			"max_position_embeddings": 131072, "model_type": "phimoe", "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 11,
			"original_max_position_embeddings": 4096, "output_router_logits": false, "rms_norm_eps": 1e-05,
			"rope_scaling": {"long_factor": [1.02, 1.05, 1.1, 2.25, 3.5, 9.12, 27.4, 60.3],
			"long_mscale": 1.243163121016122, "original_max_position_embeddings": 4096, "short_factor": [1.0,
			1.0399999618530273, 1.0, 1.06, 1.1, 1.1, 1.25, 2.5], "short_mscale": 1.243163121016122, "type": "longrope"},
			"rope_theta": 10000.0, "router_aux_loss_coef": 0.0, "router_jitter_noise": 0.01, "sliding_window": 131072,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.43.3",
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_local_experts
			lm_head.bias                                                     | vocab_size | if opt(lm_head_bias)
			model.norm.bias                                                  | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.bias         | hidden_size
			model.layers.{bid}.block_sparse_moe.gate.weight                  | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w{1,3}.weight  | intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight      | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "unbiased", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"attention_bias": false, "lm_head_bias": false, "num_local_experts": 2}`},
		},
	})
}

const phi3Tensors = `
	bid = num_hidden_layers
	hd  = hidden_size / num_attention_heads
	lm_head.weight                                          | vocab_size, hidden_size | if !opt(tie_word_embeddings)
	model.embed_tokens.weight                               | vocab_size, hidden_size
	model.norm.weight                                       | hidden_size
	model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
	model.layers.{bid}.self_attn.qkv_proj.weight            | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
	model.layers.{bid}.self_attn.o_proj.weight              | hidden_size, hidden_size
	model.layers.{bid}.mlp.gate_up_proj.weight              | 2*intermediate_size, hidden_size
	model.layers.{bid}.mlp.down_proj.weight                 | hidden_size, intermediate_size
`
