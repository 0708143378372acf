package hftest

func init() {
	add(Spec{
		Name:      "smollm3",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["SmolLM3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "layer_types": ["full_attention", "full_attention",
			"full_attention", "full_attention"], "max_position_embeddings": 65536, "max_window_layers": 28,
			"mlp_bias": false, "model_type": "smollm3", "no_rope_layer_interval": 4, "no_rope_layers": [1, 1, 1, 0],
			"num_attention_heads": 4, "num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": $eos,
			"pretraining_tp": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 5000000.0,
			"sliding_window": null, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
			"transformers_version": "4.54.0", "use_cache": false, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "yarn", Seed: 3, DType: "F16", Out: "auto", Set: `{"tie_word_embeddings": false,
				"rope_scaling": {"factor": 2.0, "original_max_position_embeddings": 65536, "rope_type": "yarn"},
				"no_rope_layers": null, "layer_types": null}`},
		},
	})
}
