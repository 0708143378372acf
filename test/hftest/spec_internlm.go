package hftest

func init() {
	add(Spec{
		Name:      "internlm2",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["InternLM2ForCausalLM"], "attn_implementation": "eager",
			"auto_map": {"AutoConfig": "configuration_internlm2.InternLM2Config"}, "bias": false, "bos_token_id": 1,
			"eos_token_id": 2, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "internlm2",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 2,
			"pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"type": "dynamic", "factor": 2.0},
			"rope_theta": 1000000, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.41.0", "use_cache": true, "vocab_size": 1000}`,
		Tensors: `
			bid = num_hidden_layers
			hd  = hidden_size / num_attention_heads
			output.weight                                    | vocab_size, hidden_size | if !opt(tie_word_embeddings)
			model.tok_embeddings.weight                      | vocab_size, hidden_size
			model.norm.weight                                | hidden_size
			model.layers.{bid}.{attention,ffn}_norm.weight   | hidden_size
			model.layers.{bid}.attention.wqkv.weight         | (num_attention_heads+2*num_key_value_heads)*hd, hidden_size
			model.layers.{bid}.attention.wo.weight           | hidden_size, hidden_size
			model.layers.{bid}.feed_forward.w{1,3}.weight    | intermediate_size, hidden_size
			model.layers.{bid}.feed_forward.w2.weight        | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "one-key-head", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"num_key_value_heads": 1, "rope_scaling": null, "tie_word_embeddings": true}`},
			{Name: "all-key-heads", Seed: 4, Out: "f32",
				Set: `{"num_key_value_heads": 4, "num_hidden_layers": 11, "rope_scaling": {"type": "linear",
					"factor": 4}}`},
		},
	})
	add(Spec{
		Name:      "internlm3",
		Tokenizer: "spm-nojson",
		Config: `{"architectures": ["InternLM3ForCausalLM"], "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_internlm3.InternLM3Config"}, "bias": false, "bos_token_id": 1,
			"eos_token_id": 2, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "model_type": "internlm3",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 2,
			"qkv_bias": false, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 6.0, "rope_type": "dynamic"},
			"rope_theta": 50000000, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.47.1", "use_cache": true, "vocab_size": 1000}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "biases", Seed: 3, DType: "F16",
				Set: `{"attention_bias": true, "head_dim": null, "mlp_bias": true}`},
		},
	})
}
