package hftest

func init() {
	add(Spec{
		Name:      "granite",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.015625, "bos_token_id": 1000,
			"embedding_multiplier": 12.0, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"logits_scaling": 8.0, "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "granite", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "pad_token_id": 1000, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
			{Name: "head-dim", Seed: 4, DType: "F16", Out: "bf16", Set: `{"head_dim": 16, "attention_bias": true, "mlp_bias": true, "rope_scaling": {"type": "linear", "factor": 2.0}}`},
		},
	})
	add(Spec{
		Name:      "granitemoe",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteMoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "attention_multiplier": 0.015625,
			"bos_token_id": 1000, "embedding_multiplier": 12.0, "eos_token_id": 1000, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "logits_scaling": 8.0, "max_position_embeddings": 4096, "model_type": "granitemoe", "num_attention_heads": 4,
			"num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2, "num_local_experts": 4, "output_router_logits": false,
			"pad_token_id": 1000, "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.001,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.block_sparse_moe.input_linear.weight  | num_local_experts, 2*intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.output_linear.weight | num_local_experts, hidden_size, intermediate_size
			model.layers.{bid}.block_sparse_moe.router.layer.weight  | num_local_experts, hidden_size
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
}
