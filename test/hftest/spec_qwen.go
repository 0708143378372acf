package hftest

import "strings"

func init() {
	add(Spec{
		Name:      "qwen2",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0, "bos_token_id": $pad,
			"eos_token_id": $eos, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02,
			"intermediate_size": 96, "max_position_embeddings": 32768, "max_window_layers": 2, "model_type": "qwen2",
			"num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
			"rope_theta": 1000000.0, "sliding_window": 32768, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.40.1", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "do_sample": true,
			"eos_token_id": [1002, 1000], "pad_token_id": 1000, "repetition_penalty": 1.05, "temperature": 0.7,
			"top_k": 20, "top_p": 0.8, "transformers_version": "4.37.0"}`},
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
		Config: `{"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 40960,
			"max_window_layers": 2, "model_type": "qwen3", "num_attention_heads": 4, "num_hidden_layers": 2,
			"num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000.0,
			"sliding_window": null, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.51.3", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "eos_token_id": 1002,
			"transformers_version": "4.51.3", "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95}`},
		Tensors: llamaHead + llamaAttention + llamaMLP + `
			model.layers.{bid}.self_attn.{q,k}_norm.weight | head_dim
			`,
		Variants: []Variant{
			{Name: "tied", Seed: 3, Out: "auto", Set: `{"tie_word_embeddings": true}`},
			{Name: "yarn", Seed: 4, Out: "bf16",
				Set: `{"num_hidden_layers": 11, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
					"original_max_position_embeddings": 32768}}`},
			{Name: "few-keys", Seed: 5,
				Set: `{"rms_norm_eps": null, "rope_theta": null, "max_position_embeddings": null, "hidden_act": null,
					"tie_word_embeddings": null}`},
		},
	})
	add(Spec{
		Name:      "qwen3_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3MoeForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "decoder_sparse_step": 1, "eos_token_id": 1002, "head_dim": 32, "hidden_act": "silu",
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 40960,
			"max_window_layers": 2, "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 32,
			"norm_topk_prob": true, "num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2,
			"num_hidden_layers": 2, "num_key_value_heads": 2, "output_router_logits": false, "rms_norm_eps": 1e-06,
			"rope_scaling": null, "rope_theta": 1000000.0, "router_aux_loss_coef": 0.001, "sliding_window": null,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Files: map[string]string{"generation_config.json": `{"bos_token_id": 1000, "eos_token_id": 1002,
			"transformers_version": "4.51.3", "do_sample": true, "temperature": 0.6, "top_k": 20, "top_p": 0.95}`},
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
			// as transformers 5 keeps experts
			{Name: "fused", Seed: 3, DType: "F16", Shards: 2, Out: "bf16", Set: `{"fused": true}`},
			{Name: "eleven-experts", Seed: 4, Shards: 3, Out: "f32",
				Set: `{"num_experts": 11, "num_hidden_layers": 1}`},
		},
	})
	add(Spec{
		Name:      "qwen2_moe",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen2MoeForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 1000,
			"decoder_sparse_step": 1, "eos_token_id": 1002, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "max_position_embeddings": 8192, "max_window_layers": 2,
			"model_type": "qwen2_moe", "moe_intermediate_size": 32, "norm_topk_prob": false, "num_attention_heads": 4,
			"num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 2, "num_key_value_heads": 2,
			"output_router_logits": false, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
			"router_aux_loss_coef": 0.001, "shared_expert_intermediate_size": 128, "sliding_window": 32768,
			"tie_word_embeddings": false, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
			"use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
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
			// as transformers 5 keeps experts
			{Name: "fused", Seed: 3, DType: "F16", Shards: 2, Out: "bf16", Set: `{"fused": true}`},
		},
	})
	add(Spec{
		Name:      "qwen3_next",
		NoLoad:    "the runtime expects other sizes of attn_qkv than these small ones",
		Tokenizer: "bpe:qwen2",
		Config: `{"architectures": ["Qwen3NextForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"bos_token_id": 1000, "decoder_sparse_step": 1, "eos_token_id": 1002, "full_attention_interval": 4,
			"head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96,
			"linear_conv_kernel_dim": 4, "linear_key_head_dim": 16, "linear_num_key_heads": 2,
			"linear_num_value_heads": 4, "linear_value_head_dim": 24, "max_position_embeddings": 262144,
			"mlp_only_layers": [], "model_type": "qwen3_next", "moe_intermediate_size": 32, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 5,
			"num_key_value_heads": 2, "output_router_logits": false, "partial_rotary_factor": 0.25,
			"rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000000, "router_aux_loss_coef": 0.001,
			"shared_expert_intermediate_size": 64, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
			"transformers_version": "4.57.0.dev0", "use_cache": true, "use_sliding_window": false, "vocab_size": 1024}`,
		Tensors: llamaHead + `
			bid = num_hidden_layers
			xid = num_experts
			int = opt(full_attention_interval) || 4
			kd  = linear_num_key_heads*linear_key_head_dim
			vd  = linear_num_value_heads*linear_value_head_dim
			model.embed_tokens.weight                                     | vocab_size, hidden_size
			model.norm.weight                                             | hidden_size
			model.layers.{bid}.linear_attn.A_log                          | linear_num_value_heads      | if (bid+1)%int != 0 | fill log
			model.layers.{bid}.linear_attn.dt_bias                        | linear_num_value_heads      | if (bid+1)%int != 0
			model.layers.{bid}.linear_attn.conv1d.weight                  | 2*kd+vd, 1, linear_conv_kernel_dim | if (bid+1)%int != 0
			model.layers.{bid}.linear_attn.in_proj_qkvz.weight            | 2*kd+2*vd, hidden_size      | if (bid+1)%int != 0
			model.layers.{bid}.linear_attn.in_proj_ba.weight              | 2*linear_num_value_heads, hidden_size | if (bid+1)%int != 0
			model.layers.{bid}.linear_attn.norm.weight                    | linear_value_head_dim       | if (bid+1)%int != 0
			model.layers.{bid}.linear_attn.out_proj.weight                | hidden_size, vd             | if (bid+1)%int != 0
			` + qwen3NextLayer("model.layers.{bid}", "(bid+1)%int == 0") + qwen3NextLayer("mtp.layers.0", "true") + `
			mtp.fc.weight                                                 | hidden_size, 2*hidden_size
			mtp.{norm,pre_fc_norm_embedding,pre_fc_norm_hidden}.weight    | hidden_size
			`,
		Variants: []Variant{
			{Name: "named-mtp", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"mtp_num_hidden_layers": 1, "num_experts": 11, "linear_num_value_heads": 8,
					"linear_value_head_dim": 16}`},
			{Name: "few-keys", Seed: 4, Out: "f32",
				Set: `{"full_attention_interval": null, "partial_rotary_factor": null, "rope_theta": null}`},
			{Name: "draft", Seed: 5, Shards: 2, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 6, Out: "q8_0", Flags: []string{"--no-mtp"}, Set: `{"mtp_num_hidden_layers": 1}`},
		},
	})
}

// qwen3NextLayer returns the tensors of a layer of Qwen3-Next; those of attention are subject to the condition
// attention.
func qwen3NextLayer(layer, attention string) string {
	return strings.NewReplacer("LAYER", layer, "COND", attention).Replace(`
		LAYER.{input,post_attention}_layernorm.weight         | hidden_size
		LAYER.self_attn.q_proj.weight                         | 2*num_attention_heads*head_dim, hidden_size | if COND
		LAYER.self_attn.{k,v}_proj.weight                     | num_key_value_heads*head_dim, hidden_size   | if COND
		LAYER.self_attn.o_proj.weight                         | hidden_size, num_attention_heads*head_dim   | if COND
		LAYER.self_attn.{q,k}_norm.weight                     | head_dim                                    | if COND
		LAYER.mlp.gate.weight                                 | num_experts, hidden_size
		LAYER.mlp.shared_expert_gate.weight                   | 1, hidden_size
		LAYER.mlp.shared_expert.{gate,up}_proj.weight         | shared_expert_intermediate_size, hidden_size
		LAYER.mlp.shared_expert.down_proj.weight              | hidden_size, shared_expert_intermediate_size
		LAYER.mlp.experts.{xid}.{gate,up}_proj.weight         | moe_intermediate_size, hidden_size
		LAYER.mlp.experts.{xid}.down_proj.weight              | hidden_size, moe_intermediate_size
	`)
}
