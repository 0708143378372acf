package hftest

func init() {
	add(Spec{
		Name:      "bitnet",
		Tokenizer: "spm-nojson",
		DType:     "F16",
		Config: `{"architectures": ["BitnetForCausalLM"], "attention_bias": false, "bos_token_id": 1, "eos_token_id": 2,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "input_bits": 8,
			"intermediate_size": 96, "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 4,
			"num_hidden_layers": 2, "num_key_value_heads": 4, "pad_token_id": 0, "pretraining_tp": 1,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": true,
			"torch_dtype": "float16", "transformers_version": "4.39.0", "use_cache": true, "vocab_size": 1008,
			"weight_bits": 1}`,
		Tensors: llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.inner_attn_ln.weight | hidden_size
			model.layers.{bid}.mlp.ffn_layernorm.weight       | intermediate_size
			`,
		Variants: []Variant{
			{Name: "f32", Seed: 3, DType: "F32", Out: "f32", Set: `{"hidden_size": 96, "intermediate_size": 160}`},
			{Name: "bf16", Seed: 4, DType: "BF16", Out: "bf16"},
		},
	})
}
