package hftest

func init() {
	add(Spec{
		Name:      "granite",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_multiplier": 0.015625, "bos_token_id": 1000, "embedding_multiplier": 12.0, "eos_token_id": 1000,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"logits_scaling": 8.0, "max_position_embeddings": 4096, "mlp_bias": false, "model_type": "granite",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "pad_token_id": 1000,
			"residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + llamaMLP,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
			{Name: "head-dim", Seed: 4, DType: "F16", Out: "bf16",
				Set: `{"head_dim": 16, "attention_bias": true, "mlp_bias": true, "rope_scaling": {"type": "linear",
					"factor": 2.0}}`},
		},
	})
	add(Spec{
		Name:      "granitemoe",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteMoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_multiplier": 0.015625, "bos_token_id": 1000, "embedding_multiplier": 12.0, "eos_token_id": 1000,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"logits_scaling": 8.0, "max_position_embeddings": 4096, "model_type": "granitemoe",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"num_local_experts": 4, "output_router_logits": false, "pad_token_id": 1000, "residual_multiplier": 0.22,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "router_aux_loss_coef": 0.001,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "vocab_size": 1024}`,
		Tensors: llamaHead + llamaAttention + `
			model.layers.{bid}.block_sparse_moe.input_linear.weight  | num_local_experts, 2*intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.output_linear.weight | num_local_experts, hidden_size, intermediate_size
			model.layers.{bid}.block_sparse_moe.router.layer.weight  | num_local_experts, hidden_size
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
		},
	})
	add(Spec{
		Name:      "granitemoehybrid",
		Tokenizer: "bpe:refact",
		Config: `{"architectures": ["GraniteMoeHybridForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attention_multiplier": 0.0078125, "bos_token_id": 1000, "embedding_multiplier": 12, "eos_token_id": 1000,
			"hidden_act": "silu", "hidden_size": 64, "init_method": "mup", "initializer_range": 0.1,
			"intermediate_size": 32, "layer_types": ["mamba", "mamba", "attention", "mamba"], "logits_scaling": 6,
			"mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 16,
			"mamba_d_state": 32, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 8, "mamba_proj_bias": false,
			"max_position_embeddings": 131072, "model_type": "granitemoehybrid", "normalization_function": "rmsnorm",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "num_key_value_heads": 2,
			"num_local_experts": 4, "output_router_logits": false, "pad_token_id": 1000,
			"position_embedding_type": "nope", "residual_multiplier": 0.22, "rms_norm_eps": 1e-05, "rope_scaling": null,
			"rope_theta": 10000, "router_aux_loss_coef": 0.0001, "shared_intermediate_size": 64,
			"tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.56.0", "use_cache": true,
			"vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers
			in  = mamba_expand*hidden_size
			hd  = hidden_size / num_attention_heads
			ch  = in + 2*mamba_n_groups*mamba_d_state
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight             | hidden_size, hidden_size            | if layer_types[bid] == "attention"
			model.layers.{bid}.self_attn.{k,v}_proj.weight             | num_key_value_heads*hd, hidden_size | if layer_types[bid] == "attention"
			model.layers.{bid}.mamba.A_log                             | mamba_n_heads                       | if layer_types[bid] == "mamba" | fill log
			model.layers.{bid}.mamba.{D,dt_bias}                       | mamba_n_heads                       | if layer_types[bid] == "mamba"
			model.layers.{bid}.mamba.conv1d.weight                     | ch, 1, mamba_d_conv                 | if layer_types[bid] == "mamba"
			model.layers.{bid}.mamba.conv1d.bias                       | ch                                  | if layer_types[bid] == "mamba"
			model.layers.{bid}.mamba.in_proj.weight                    | in+ch+mamba_n_heads, hidden_size    | if layer_types[bid] == "mamba"
			model.layers.{bid}.mamba.norm.weight                       | in                                  | if layer_types[bid] == "mamba"
			model.layers.{bid}.mamba.out_proj.weight                   | hidden_size, in                     | if layer_types[bid] == "mamba"
			model.layers.{bid}.block_sparse_moe.input_linear.weight    | num_local_experts, 2*intermediate_size, hidden_size | if opt(num_local_experts)
			model.layers.{bid}.block_sparse_moe.output_linear.weight   | num_local_experts, hidden_size, intermediate_size   | if opt(num_local_experts)
			model.layers.{bid}.block_sparse_moe.router.layer.weight    | num_local_experts, hidden_size                      | if opt(num_local_experts)
			model.layers.{bid}.shared_mlp.input_linear.weight          | 2*shared_intermediate_size, hidden_size
			model.layers.{bid}.shared_mlp.output_linear.weight         | hidden_size, shared_intermediate_size
			`,
		Variants: []Variant{
			{Name: "dense", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"intermediate_size": 64, "num_local_experts": 0, "num_experts_per_tok": 0, "mamba_n_groups": 2,
					"tie_word_embeddings": false}`},
			{Name: "attention-only", Seed: 4, Out: "bf16", Set: `{"intermediate_size": 64, "layer_types": ["attention",
				"attention", "attention", "attention"], "num_local_experts": 0, "num_experts_per_tok": 0,
				"position_embedding_type": "rope"}`},
			{Name: "attention-experts", Seed: 5, Out: "f32",
				Set: `{"layer_types": ["attention", "attention", "attention", "attention"],
					"position_embedding_type": "rope"}`},
		},
	})
	add(Spec{
		Name:      "bamba",
		Tokenizer: "bpe:llama3",
		Config: `{"architectures": ["BambaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"attn_layer_indices": [1, 3], "attn_rotary_emb": 8, "bos_token_id": $bos, "eos_token_id": $eos,
			"hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"mamba_chunk_size": 256, "mamba_conv_bias": true, "mamba_d_conv": 4, "mamba_d_head": 16,
			"mamba_d_state": 32, "mamba_expand": 2, "mamba_n_groups": 1, "mamba_n_heads": 8, "mamba_proj_bias": false,
			"max_position_embeddings": 4096, "mlp_bias": false, "model_type": "bamba", "num_attention_heads": 4,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "num_logits_to_keep": 1, "pad_token_id": 0,
			"rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "4.48.0.dev0", "use_cache": true,
			"use_mamba_kernels": true, "vocab_size": 1008}`,
		Tensors: `
			bid = num_hidden_layers
			in  = mamba_expand*hidden_size
			hd  = hidden_size / num_attention_heads
			ch  = in + 2*mamba_n_groups*mamba_d_state
			model.embed_tokens.weight                               | vocab_size, hidden_size
			lm_head.weight                                          | vocab_size, hidden_size
			model.final_layernorm.weight                            | hidden_size
			model.layers.{bid}.{input,pre_ff}_layernorm.weight      | hidden_size
			model.layers.{bid}.feed_forward.{gate,up}_proj.weight   | intermediate_size, hidden_size
			model.layers.{bid}.feed_forward.down_proj.weight        | hidden_size, intermediate_size
			model.layers.{bid}.self_attn.{q,o}_proj.weight          | hidden_size, hidden_size            | if bid == 1 || bid == 3
			model.layers.{bid}.self_attn.{k,v}_proj.weight          | num_key_value_heads*hd, hidden_size | if bid == 1 || bid == 3
			model.layers.{bid}.mamba.A_log                          | mamba_n_heads                       | if bid == 0 || bid == 2 | fill log
			model.layers.{bid}.mamba.{D,dt_bias}                    | mamba_n_heads                       | if bid == 0 || bid == 2
			model.layers.{bid}.mamba.conv1d.weight                  | ch, 1, mamba_d_conv                 | if bid == 0 || bid == 2
			model.layers.{bid}.mamba.conv1d.bias                    | ch                                  | if bid == 0 || bid == 2
			model.layers.{bid}.mamba.in_proj.weight                 | in+ch+mamba_n_heads, hidden_size    | if bid == 0 || bid == 2
			model.layers.{bid}.mamba.norm.weight                    | in                                  | if bid == 0 || bid == 2
			model.layers.{bid}.mamba.out_proj.weight                | hidden_size, in                     | if bid == 0 || bid == 2
			`,
		Variants: []Variant{
			{Name: "period", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"attn_layer_indices": null, "attn_layer_period": 2, "attn_layer_offset": 1,
					"attn_rotary_emb": null, "mamba_n_groups": 2}`},
		},
	})
}
