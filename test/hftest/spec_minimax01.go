package hftest

func init() {
	add(Spec{
		Name:      "minimax_01",
		Tokenizer: "bpe:gpt-4o",
		Sharded:   true,
		NoEdge:    true,
		Config: `{"architectures": ["MiniMaxM1ForCausalLM"], "attention_dropout": 0.0, "attn_type_list": [0, 0, 0, 0, 0,
			0, 0, 1], "auto_map": {"AutoConfig": "configuration_minimax_m1.MiniMaxM1Config",
			"AutoModelForCausalLM": "modeling_minimax_m1.MiniMaxM1ForCausalLM"}, "bos_token_id": null,
			"eos_token_id": null, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 32, "layernorm_full_attention_alpha": 3.5565588200778455,
			"layernorm_full_attention_beta": 1.0, "layernorm_linear_attention_alpha": 3.5565588200778455,
			"layernorm_linear_attention_beta": 1.0, "layernorm_mlp_alpha": 3.5565588200778455,
			"layernorm_mlp_beta": 1.0, "max_position_embeddings": 10240000, "model_type": "minimax_m1",
			"num_attention_heads": 4, "num_experts_per_tok": 2, "num_hidden_layers": 8, "num_key_value_heads": 2,
			"num_local_experts": 4, "output_router_logits": false, "postnorm": true, "rms_norm_eps": 1e-05,
			"rope_theta": 10000000, "rotary_dim": 16, "router_aux_loss_coef": 0.001, "router_jitter_noise": 0.0,
			"shared_intermediate_size": 0, "shared_moe_mode": "sigmoid", "sliding_window": null,
			"tie_word_embeddings": false, "transformers_version": "4.45.2", "use_cache": true, "vocab_size": 1024}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_local_experts
			q   = num_attention_heads*head_dim
			model.embed_tokens.weight                                      | vocab_size, hidden_size | fill gaps
			lm_head.weight                                                 | vocab_size, hidden_size
			model.norm.weight                                              | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight     | hidden_size
			model.layers.{bid}.self_attn.qkv_proj.weight                   | 3*q, hidden_size                        | if attn_type_list[bid] == 0
			model.layers.{bid}.self_attn.output_gate.weight                | q, hidden_size                          | if attn_type_list[bid] == 0
			model.layers.{bid}.self_attn.out_proj.weight                   | hidden_size, q                          | if attn_type_list[bid] == 0
			model.layers.{bid}.self_attn.norm.weight                       | q                                       | if attn_type_list[bid] == 0
			model.layers.{bid}.self_attn.q_proj.weight                     | q, hidden_size                          | if attn_type_list[bid] == 1
			model.layers.{bid}.self_attn.{k,v}_proj.weight                 | num_key_value_heads*head_dim, hidden_size | if attn_type_list[bid] == 1
			model.layers.{bid}.self_attn.o_proj.weight                     | hidden_size, q                          | if attn_type_list[bid] == 1
			model.layers.{bid}.block_sparse_moe.gate.weight                | num_local_experts, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight | intermediate_size, hidden_size
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight    | hidden_size, intermediate_size
			`,
		Variants: []Variant{
			{Name: "text-01", Seed: 3, DType: "F16", Shards: 3, Out: "auto",
				Set: `{"architectures": ["MiniMaxText01ForCausalLM"], "model_type": "minimax_text_01",
					"num_local_experts": 11}`},
		},
	})
}
