package hftest

func init() {
	add(Spec{
		Name:      "stablelm",
		Tokenizer: "bpe:stablelm2",
		DType:     "F16",
		Config: `{"architectures": ["StableLmForCausalLM"], "bos_token_id": $eos, "eos_token_id": $eos,
			"attention_dropout": 0.0, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 4096, "model_type": "stablelm", "num_attention_heads": 2, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "partial_rotary_factor": 0.25, "qk_layernorm": false, "rope_scaling": null,
			"rope_theta": 10000, "tie_word_embeddings": false, "torch_dtype": "float16",
			"transformers_version": "4.38.0", "use_cache": true, "use_parallel_residual": false, "use_qkv_bias": true,
			"vocab_size": 1024}`,
		Tensors: stablelmTensors,
		Variants: []Variant{
			{Name: "3b", Seed: 3, DType: "BF16", Out: "auto", Set: `{"architectures": ["StableLMEpochForCausalLM"],
				"model_type": "stablelm_epoch", "use_qkv_bias": false, "rope_pct": 0.5, "partial_rotary_factor": null,
				"norm_eps": 1e-05, "layer_norm_eps": null, "use_parallel_residual": null}`},
			{Name: "parallel", Seed: 4, Out: "bf16", Set: `{"use_parallel_residual": true, "num_key_value_heads": 1}`},
		},
	})
	add(Spec{
		Name:      "stablelm-2-12b",
		Tokenizer: "bpe:stablelm2",
		Config: `{"architectures": ["StableLmForCausalLM"], "bos_token_id": $eos, "eos_token_id": $eos,
			"attention_dropout": 0.0, "hidden_act": "silu", "hidden_dropout": 0.0, "hidden_size": 384,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_norm_eps": 1e-05,
			"max_position_embeddings": 4096, "model_type": "stablelm", "num_attention_heads": 12,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "partial_rotary_factor": 0.25, "qk_layernorm": true,
			"rope_scaling": null, "rope_theta": 10000, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.40.0", "use_cache": true, "use_parallel_residual": true, "use_qkv_bias": false,
			"vocab_size": 1024}`,
		NoReference: "the reference collects the norms of the heads but never writes them",
		Tensors: stablelmTensors + `
			xid = num_attention_heads
			kid = num_key_value_heads
			model.layers.{bid}.self_attn.q_layernorm.norms.{xid}.weight | hd
			model.layers.{bid}.self_attn.k_layernorm.norms.{kid}.weight | hd
			`,
	})
}

const stablelmTensors = `
	bid = num_hidden_layers
	hd  = hidden_size / num_attention_heads
	lm_head.weight                                              | vocab_size, hidden_size
	model.embed_tokens.weight                                   | vocab_size, hidden_size
	model.norm.{weight,bias}                                    | hidden_size
	model.layers.{bid}.input_layernorm.{weight,bias}            | hidden_size
	model.layers.{bid}.post_attention_layernorm.{weight,bias}   | hidden_size | if !opt(use_parallel_residual)
	model.layers.{bid}.self_attn.q_proj.weight                  | hidden_size, hidden_size
	model.layers.{bid}.self_attn.q_proj.bias                    | hidden_size | if use_qkv_bias
	model.layers.{bid}.self_attn.{k,v}_proj.weight              | num_key_value_heads*hd, hidden_size
	model.layers.{bid}.self_attn.{k,v}_proj.bias                | num_key_value_heads*hd | if use_qkv_bias
	model.layers.{bid}.self_attn.o_proj.weight                  | hidden_size, hidden_size
	model.layers.{bid}.mlp.{gate,up}_proj.weight                | intermediate_size, hidden_size
	model.layers.{bid}.mlp.down_proj.weight                     | hidden_size, intermediate_size
`
