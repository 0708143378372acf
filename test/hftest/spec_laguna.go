package hftest

func init() {
	add(Spec{
		Name:      "laguna",
		Tokenizer: "bpe:laguna",
		Config: `{"architectures": ["LagunaForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_laguna.LagunaConfig",
			"AutoModelForCausalLM": "modeling_laguna.LagunaForCausalLM"}, "attention_bias": false,
			"attention_dropout": 0.0, "bos_token_id": $bos, "decoder_sparse_step": 1, "eos_token_id": [$bos, $eos],
			"gating": "per-head", "gating_types": ["per_head", "per_head", "per_head", "per_head"], "head_dim": 32,
			"hidden_size": 64, "intermediate_size": 96, "layer_types": ["full_attention", "sliding_attention",
			"sliding_attention", "sliding_attention"], "max_position_embeddings": 262144, "mlp_layer_types": ["dense",
			"sparse", "sparse", "sparse"], "mlp_only_layers": [0], "model_type": "laguna",
			"moe_apply_router_weight_on_input": false, "moe_intermediate_size": 32, "moe_routed_scaling_factor": 2.5,
			"moe_router_logit_softcapping": 0.0, "norm_topk_prob": true, "num_attention_heads": 2,
			"num_attention_heads_per_layer": [2, 4, 4, 4], "num_experts": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 4, "num_key_value_heads": 2, "pad_token_id": $pad, "rms_norm_eps": 1e-06,
			"rope_parameters": {"full_attention": {"attention_factor": 1.4852030263919618, "beta_fast": 32.0,
			"beta_slow": 1.0, "factor": 128.0, "original_max_position_embeddings": 8192, "partial_rotary_factor": 0.5,
			"rope_theta": 500000.0, "rope_type": "yarn"}, "sliding_attention": {"partial_rotary_factor": 1.0,
			"rope_theta": 10000.0, "rope_type": "default"}}, "router_aux_loss_coef": 0.0,
			"shared_expert_intermediate_size": 64, "sliding_window": 512, "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "transformers_version": "5.9.0", "use_cache": true, "vocab_size": $vocab}`,
		Tensors: `
			bid = num_hidden_layers
			xid = num_experts
			model.embed_tokens.weight                                  | vocab_size, hidden_size
			lm_head.weight                                             | vocab_size, hidden_size
			model.norm.weight                                          | hidden_size
			model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			model.layers.{bid}.self_attn.q_proj.weight                 | num_attention_heads_per_layer[bid]*head_dim, hidden_size
			model.layers.{bid}.self_attn.{k,v}_proj.weight             | num_key_value_heads*head_dim, hidden_size
			model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, num_attention_heads_per_layer[bid]*head_dim
			model.layers.{bid}.self_attn.g_proj.weight                 | num_attention_heads_per_layer[bid], hidden_size          | if gating == "per-head"
			model.layers.{bid}.self_attn.g_proj.weight                 | num_attention_heads_per_layer[bid]*head_dim, hidden_size | if gating != "per-head"
			model.layers.{bid}.self_attn.{q,k}_norm.weight             | head_dim
			model.layers.{bid}.mlp.{gate,up}_proj.weight               | intermediate_size, hidden_size               | if mlp_layer_types[bid] == "dense"
			model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size               | if mlp_layer_types[bid] == "dense"
			model.layers.{bid}.mlp.gate.weight                         | num_experts, hidden_size                     | if mlp_layer_types[bid] != "dense"
			model.layers.{bid}.mlp.experts.e_score_correction_bias     | num_experts                                  | if mlp_layer_types[bid] != "dense" | as F32
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight | moe_intermediate_size, hidden_size           | if mlp_layer_types[bid] != "dense"
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight      | hidden_size, moe_intermediate_size           | if mlp_layer_types[bid] != "dense"
			model.layers.{bid}.mlp.shared_expert.{gate,up}_proj.weight | shared_expert_intermediate_size, hidden_size | if mlp_layer_types[bid] != "dense"
			model.layers.{bid}.mlp.shared_expert.down_proj.weight      | hidden_size, shared_expert_intermediate_size | if mlp_layer_types[bid] != "dense"
			`,
		Variants: []Variant{
			{Name: "whole-gates", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"gating": "per-element",
				"gating_types": null, "num_experts": 11, "num_attention_heads_per_layer": [2, 2, 2, 2],
				"sliding_window": 0, "layer_types": ["full_attention", "full_attention", "full_attention",
				"full_attention"], "mlp_layer_types": ["dense", "dense", "dense", "sparse"],
				"rope_parameters": {"sliding_attention": null}}`},
		},
	})
}
