package hftest

func init() {
	add(Spec{
		Name:      "hy_v3",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["HYV3ForCausalLM"], "bos_token_id": 1000, "enable_attention_fp32_softmax": false,
			"enable_lm_head_fp32": true, "enable_moe_fp32_combine": false, "eod_token_id": 1001, "eos_token_id": $eos,
			"expert_hidden_dim": 32, "first_k_dense_replace": 1, "head_dim": 16, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.006, "intermediate_size": 96, "max_position_embeddings": 262144,
			"model_type": "hy_v3", "moe_intermediate_size": 32, "moe_router_enable_expert_bias": true,
			"moe_router_use_sigmoid": true, "num_attention_heads": 4, "num_experts": 6, "num_experts_per_tok": 2,
			"num_hidden_layers": 3, "num_key_value_heads": 2, "num_nextn_predict_layers": 1, "num_shared_experts": 1,
			"output_router_logits": true, "pad_token_id": $pad, "qk_norm": true, "rms_norm_eps": 1e-05,
			"rope_parameters": {"rope_theta": 11158840.0, "rope_type": "default"}, "route_norm": true,
			"router_scaling_factor": 2.826, "sep_token_id": 1002, "tie_word_embeddings": false, "dtype": "bfloat16",
			"transformers_version": "5.6.0", "use_cache": true, "use_grouped_mm": false, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers + num_nextn_predict_layers
			xid = num_experts
			model.embed_tokens.weight                                       | vocab_size, hidden_size
			lm_head.weight                                                  | vocab_size, hidden_size
			model.norm.weight                                               | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight      | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                      | num_attention_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight                  | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                      | hidden_size, num_attention_heads*head_dim
			model.layers.{bid}.self_attn.{q,k}_norm.weight                  | head_dim
			model.layers.{bid}.mlp.{gate,up}_proj.weight                    | intermediate_size, hidden_size     | if bid < 1
			model.layers.{bid}.mlp.down_proj.weight                         | hidden_size, intermediate_size     | if bid < 1
			model.layers.{bid}.mlp.router.gate.weight                       | num_experts, hidden_size           | if bid >= 1
			model.layers.{bid}.mlp.expert_bias                              | num_experts | as F32               | if bid >= 1
			model.layers.{bid}.mlp.shared_mlp.{gate,up}_proj.weight         | num_shared_experts*moe_intermediate_size, hidden_size | if bid >= 1
			model.layers.{bid}.mlp.shared_mlp.down_proj.weight              | hidden_size, num_shared_experts*moe_intermediate_size | if bid >= 1
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight      | moe_intermediate_size, hidden_size | if bid >= 1
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight           | hidden_size, moe_intermediate_size | if bid >= 1
			model.layers.{bid}.eh_proj.weight                               | hidden_size, 2*hidden_size         | if bid >= num_hidden_layers
			model.layers.{bid}.{enorm,hnorm,final_layernorm}.weight         | hidden_size                        | if bid >= num_hidden_layers
			`,
		Variants: []Variant{
			{Name: "types", Seed: 3, DType: "F16", Out: "auto", Set: `{"first_k_dense_replace": null,
				"mlp_layer_types": ["dense", "sparse", "sparse"], "num_shared_experts": 2,
				"num_nextn_predict_layers": 0, "route_norm": null, "rope_parameters": null}`},
			{Name: "draft", Seed: 4, Out: "q8_0", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 5, Shards: 2, Out: "bf16", Flags: []string{"--no-nextn"}},
		},
	})
}
