package hftest

func init() {
	add(Spec{
		Name:      "nemotron",
		Tokenizer: "spm",
		Config: `{"architectures": ["NemotronForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": $bos, "eos_token_id": $eos, "head_dim": 16, "hidden_act": "relu2", "hidden_size": 64,
			"initializer_range": 0.0134, "intermediate_size": 96, "max_position_embeddings": 4096, "mlp_bias": false,
			"model_type": "nemotron", "norm_eps": 1e-05, "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "partial_rotary_factor": 0.5, "rope_scaling": null, "rope_theta": 10000,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.44.0",
			"use_cache": true, "vocab_size": $vocab}`,
		Tensors: llamaHead + llamaAttention + `
			model.norm.bias                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.bias | hidden_size
			model.layers.{bid}.mlp.up_proj.weight                    | intermediate_size, hidden_size
			model.layers.{bid}.mlp.down_proj.weight                  | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "linear", Seed: 3, DType: "F16", Out: "bf16",
				Set: `{"rope_scaling": {"rope_type": "linear", "factor": 2.5}, "attention_bias": true}`},
			{Name: "no-head-dim", Seed: 4, DType: "F32", Out: "auto",
				Set: `{"head_dim": null, "partial_rotary_factor": null}`},
		},
	})
}
