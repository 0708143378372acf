package hftest

func init() {
	add(Spec{
		Name:      "qwen2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $pad, "eos_token_id": $eos, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 2, "model_type": "qwen2",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true, "use_sliding_window": false,
			"vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "do_sample": true, "eos_token_id": [1002, 1000], "pad_token_id": 1000,
			"repetition_penalty": 1.05, "temperature": 0.7, "top_k": 20, "top_p": 0.8, "transformers_version": "4.37.0"}`},
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.q_proj.bias      | num_attention_heads*hd
			model.layers.{bid}.self_attn.{k,v}_proj.bias  | num_key_value_heads*hd
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, DType: "F16", Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "qwen3",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "eos_token_id": 1002, "head_dim": 32,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 40960, "max_window_layers": 2,
			"model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null,
			"rope_theta": 1000000.0, "sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "eos_token_id": 1002, "transformers_version": "4.51.3", "do_sample": true,
			"temperature": 0.6, "top_k": 20, "top_p": 0.95}`},
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight | head_dim
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
			{Name: "yarn", Seed: 4, Out: "bf16", Set: `{"num_hidden_layers": 11, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}}`},
			{Name: "few-keys", Seed: 5, Set: `{"rms_norm_eps": null, "rope_theta": null, "max_position_embeddings": null, "hidden_act": null, "tie_word_embeddings": null}`},
		},
	})
	add(Spec{
		Name:      "qwen3_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 1000, "decoder_sparse_step": 1,
			"eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"max_position_embeddings": 40960, "max_window_layers": 2, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 32,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"output_router_logits": false, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001,
			"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true,
			"use_sliding_window": false, "vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "eos_token_id": 1002, "transformers_version": "4.51.3", "do_sample": true,
			"temperature": 0.6, "top_k": 20, "top_p": 0.95}`},
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size | if !opt(fused)
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size | if !opt(fused)
			model.layers.{bid}.mlp.experts.gate_up_proj                | num_experts, 2*moe_intermediate_size, hidden_size | if opt(fused)
			model.layers.{bid}.mlp.experts.down_proj                   | num_experts, hidden_size, moe_intermediate_size   | if opt(fused)
			`,
		Variants: []Variant{
			{Name: "fused", Seed: 3, DType: "F16", Shards: 2, Out: "bf16", Set: `{"fused": true}`}, // as transformers 5 keeps experts
			{Name: "eleven-experts", Seed: 4, Shards: 3, Out: "f32", Set: `{"num_experts": 11, "num_hidden_layers": 1}`},
		},
	})
	add(Spec{
		Name:      "qwen2_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1000, "decoder_sparse_step": 1, "eos_token_id": 1002,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 8192, "max_window_layers": 2,
			"model_type": "qwen2_moe", "moe_intermediate_size": 32, "norm_topk_prob": false, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "output_router_logits": false, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
			"router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 128, "sliding_window": 32768, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.51.3", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			xid = num_experts
			model.layers.{bid}.self_attn.q_proj.bias                   | hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.bias               | num_key_value_heads*hd
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size
			model.layers.{bid}.mlp.shared_expert.{gate,up}_proj.weight | shared_expert_intermediate_size, hidden_size
			model.layers.{bid}.mlp.shared_expert.down_proj.weight      | hidden_size, shared_expert_intermediate_size
			model.layers.{bid}.mlp.shared_expert_gate.weight           | 1, hidden_size
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size | if !opt(fused)
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size | if !opt(fused)
			model.layers.{bid}.mlp.experts.gate_up_proj                | num_experts, 2*moe_intermediate_size, hidden_size | if opt(fused)
			model.layers.{bid}.mlp.experts.down_proj                   | num_experts, hidden_size, moe_intermediate_size   | if opt(fused)
			`,
		Variants: []Variant{
			{Name: "fused", Seed: 3, DType: "F16", Shards: 2, Out: "bf16", Set: `{"fused": true}`}, // as transformers 5 keeps experts
		},
	})
}
