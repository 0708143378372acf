package hftest

import "strings"

func init() {
	add(Spec{
		Name:      "kimi_linear",
		Tokenizer: "bpe:llama3",
		Pre:       "kimi-k2",
		Config: `{"architectures": ["KimiLinearForCausalLM"],
			"auto_map": {"AutoConfig": "configuration_kimi.KimiLinearConfig",
			"AutoModelForCausalLM": "modeling_kimi.KimiLinearForCausalLM"}, "bos_token_id": $bos, "dtype": "bfloat16",
			"eos_token_id": $eos, "first_k_dense_replace": 1, "head_dim": 24, "hidden_act": "silu", "hidden_size": 64,
			"initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32,
			"linear_attn_config": {"full_attn_layers": [3], "head_dim": 32, "kda_layers": [1, 2, 4], "num_heads": 4,
			"short_conv_kernel_size": 4}, "mla_use_nope": true, "model_max_length": 1048576,
			"model_type": "kimi_linear", "moe_intermediate_size": 32, "moe_layer_freq": 1, "moe_renormalize": true,
			"moe_router_activation_func": "sigmoid", "num_attention_heads": 4, "num_expert_group": 1, "num_experts": 4,
			"num_experts_per_token": 2, "num_hidden_layers": 4, "num_key_value_heads": 4, "num_nextn_predict_layers": 0,
			"num_shared_experts": 1, "pad_token_id": $eos, "q_lora_rank": null, "qk_nope_head_dim": 32,
			"qk_rope_head_dim": 16, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
			"routed_scaling_factor": 2.446, "tie_word_embeddings": false, "topk_group": 1,
			"transformers_version": "4.57.1", "use_cache": true, "use_grouped_topk": true, "v_head_dim": 32,
			"vocab_size": $vocab}`,
		Tensors: kimiLayers(kimiTensors("") + `
			model.layers.{bid}.self_attn.g_a_proj.weight                            | linear_attn_config.head_dim, hidden_size    | if !$mla
			model.layers.{bid}.self_attn.g_b_proj.weight                            | p, linear_attn_config.head_dim              | if !$mla
			model.layers.{bid}.self_attn.A_log                                      | 1, 1, num_attention_heads, 1                | if !$mla | fill log | as F32
			model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight        | moe_intermediate_size, hidden_size          | if bid > 0
			model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight             | hidden_size, moe_intermediate_size          | if bid > 0
			`),
		Variants: []Variant{
			{Name: "ranks", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"q_lora_rank": 32, "num_experts": 11, "first_k_dense_replace": 1, "head_dim": null}`},
		},
	})
	const k3 = `{"architectures": ["KimiK3ForConditionalGeneration"],
		"auto_map": {"AutoConfig": "configuration_kimi_k3.KimiK3Config"}, "bos_token_id": $bos, "eos_token_id": 1005,
		"dtype": "bfloat16", "media_placeholder_token_id": 5, "model_type": "kimi_k3", "pad_token_id": $eos,
		"tie_word_embeddings": false, "vision_config": {"model_type": "kimi_k3_vision", "vt_hidden_size": 32},
		"text_config": {"activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0,
		"architectures": ["KimiLinearForCausalLM"], "attn_res_block_size": 2, "bos_token_id": $bos,
		"eos_token_id": 1005, "first_k_dense_replace": 1, "hidden_act": "situ", "hidden_size": 64,
		"initializer_range": 0.02, "intermediate_size": 96, "kv_lora_rank": 32, "latent_moe_use_norm": true,
		"linear_attn_config": {"full_attn_layers": [3], "gate_lower_bound": -5.0, "head_dim": 32, "kda_layers": [1, 2,
		4], "num_heads": 4, "short_conv_kernel_size": 4, "use_full_rank_gate": true}, "mla_use_nope": true,
		"mla_use_output_gate": true, "model_max_length": 1048576, "model_type": "kimi_linear",
		"moe_intermediate_size": 32, "moe_layer_freq": 1, "moe_renormalize": true,
		"moe_router_activation_func": "sigmoid", "num_attention_heads": 4, "num_expert_group": 1, "num_experts": 4,
		"num_experts_per_token": 2, "num_hidden_layers": 4, "num_key_value_heads": 4, "num_nextn_predict_layers": 0,
		"num_shared_experts": 2, "pad_token_id": $eos, "q_lora_rank": 32, "qk_nope_head_dim": 32,
		"qk_rope_head_dim": 16, "rms_norm_eps": 1e-05, "routed_expert_hidden_size": 32, "routed_scaling_factor": 1.0,
		"tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc", "use_cache": true,
		"use_grouped_topk": true, "v_head_dim": 32, "vocab_size": $vocab}, "transformers_version": "4.57.1"}`
	add(Spec{
		Name:      "kimi_k3",
		Tokenizer: "bpe:llama3",
		Pre:       "kimi-k2",
		Config:    k3,
		Tensors: kimiLayers(kimiTensors("language_model.") + kimiK3Tensors + `
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight | moe_intermediate_size, routed_expert_hidden_size | if bid > 0
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight      | routed_expert_hidden_size, moe_intermediate_size | if bid > 0
			`),
		Variants: []Variant{
			{Name: "eleven-experts", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"text_config": {"num_experts": 11, "num_shared_experts": 1}}`},
		},
	})
	// experts in MXFP4; eleven layers, so that sorting layer 10 before layer 2 would show
	add(Spec{
		Name:      "kimi_k3-mxfp4",
		Tokenizer: "bpe:llama3",
		Pre:       "kimi-k2",
		Config: strings.Replace(strings.Replace(k3, `"text_config": {`, `"text_config": {"quantization_config": {"config_groups": {"group_0": {"input_activations": null, "output_activations": null,
			"targets": ["Linear"], "weights": {"dynamic": false, "group_size": 32, "num_bits": 4, "scale_dtype": "torch.uint8", "strategy": "group", "symmetric": true, "type": "float"}}},
			"format": "mxfp4-pack-quantized", "ignore": ["re:.*shared_experts.*"], "quant_method": "compressed-tensors", "quantization_status": "compressed"}, `, 1),
			`"num_hidden_layers": 4`, `"num_hidden_layers": 11`, 1),
		Tensors: kimiLayers(kimiTensors("language_model.") + kimiK3Tensors + `
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight_packed | moe_intermediate_size, routed_expert_hidden_size/2  | if bid > 0 | as U8
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.{w1,w3}.weight_scale  | moe_intermediate_size, routed_expert_hidden_size/32 | if bid > 0 | as U8 | fill scales
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight_packed      | routed_expert_hidden_size, moe_intermediate_size/2  | if bid > 0 | as U8
			language_model.model.layers.{bid}.block_sparse_moe.experts.{xid}.w2.weight_scale       | routed_expert_hidden_size, moe_intermediate_size/32 | if bid > 0 | as U8 | fill scales
			`),
		Variants: []Variant{
			{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32"},
		},
	})
}

// kimiK3Tensors are the tensors that Kimi K3 has in addition to kimiTensors.
const kimiK3Tensors = `
	language_model.model.output_attn_res_norm.weight                       | hidden_size
	language_model.model.output_attn_res_proj.weight                       | 1, hidden_size
	language_model.model.layers.{bid}.{self_attention,mlp}_res_norm.weight | hidden_size
	language_model.model.layers.{bid}.{self_attention,mlp}_res_proj.weight | 1, hidden_size
	language_model.model.layers.{bid}.self_attn.g_proj.weight              | p, hidden_size | if !$mla
	language_model.model.layers.{bid}.self_attn.g_proj.weight                  | num_attention_heads*v_head_dim, hidden_size | if $mla
	language_model.model.layers.{bid}.self_attn.A_log                      | 2*num_attention_heads | if !$mla | fill log | as F32
	language_model.model.layers.{bid}.block_sparse_moe.routed_expert_down_proj.weight | routed_expert_hidden_size, hidden_size | if bid > 0
	language_model.model.layers.{bid}.block_sparse_moe.routed_expert_up_proj.weight   | hidden_size, routed_expert_hidden_size | if bid > 0
	language_model.model.layers.{bid}.block_sparse_moe.routed_expert_norm.weight      | routed_expert_hidden_size              | if bid > 0
	vision_tower.patch_embed.proj.weight                                   | 32, 48
	mm_projector.proj.0.weight                                             | 64, 32
`

// kimiLayers returns a table with $mla replaced by the condition for layers with MLA.
func kimiLayers(tensors string) string {
	return strings.ReplaceAll(tensors, "$mla", "has(linear_attn_config.full_attn_layers, bid+1)")
}

// kimiTensors returns the tensors that Kimi Linear and Kimi K3 share, with names that begin with prefix.
func kimiTensors(prefix string) string {
	return `
	bid = num_hidden_layers
	xid = num_experts
	p   = linear_attn_config.num_heads*linear_attn_config.head_dim
	` + prefix + `model.embed_tokens.weight                                  | vocab_size, hidden_size
	` + prefix + `lm_head.weight                                             | vocab_size, hidden_size
	` + prefix + `model.norm.weight                                          | hidden_size
	` + prefix + `model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
	` + prefix + `model.layers.{bid}.self_attn.{q,k,v}_proj.weight           | p, hidden_size                              | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.{q,k,v}_conv1d.weight         | p, 1, linear_attn_config.short_conv_kernel_size | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.f_a_proj.weight               | linear_attn_config.head_dim, hidden_size    | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.f_b_proj.weight               | p, linear_attn_config.head_dim              | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.b_proj.weight                 | num_attention_heads, hidden_size            | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.dt_bias                       | p                                           | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.o_norm.weight                 | linear_attn_config.head_dim                 | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, p                              | if !$mla
	` + prefix + `model.layers.{bid}.self_attn.q_proj.weight                     | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), hidden_size | if !opt(q_lora_rank) | if $mla
	` + prefix + `model.layers.{bid}.self_attn.q_a_proj.weight                   | q_lora_rank, hidden_size                    | if opt(q_lora_rank) | if $mla
	` + prefix + `model.layers.{bid}.self_attn.q_a_layernorm.weight              | q_lora_rank                                 | if opt(q_lora_rank) | if $mla
	` + prefix + `model.layers.{bid}.self_attn.q_b_proj.weight                   | num_attention_heads*(qk_nope_head_dim+qk_rope_head_dim), q_lora_rank | if opt(q_lora_rank) | if $mla
	` + prefix + `model.layers.{bid}.self_attn.kv_a_proj_with_mqa.weight         | kv_lora_rank+qk_rope_head_dim, hidden_size | if $mla
	` + prefix + `model.layers.{bid}.self_attn.kv_a_layernorm.weight             | kv_lora_rank | if $mla
	` + prefix + `model.layers.{bid}.self_attn.kv_b_proj.weight                  | num_attention_heads*(qk_nope_head_dim+v_head_dim), kv_lora_rank | if $mla
	` + prefix + `model.layers.{bid}.self_attn.o_proj.weight                     | hidden_size, num_attention_heads*v_head_dim | if $mla
	` + prefix + `model.layers.{bid}.mlp.{gate,up}_proj.weight               | intermediate_size, hidden_size              | if bid == 0
	` + prefix + `model.layers.{bid}.mlp.down_proj.weight                    | hidden_size, intermediate_size              | if bid == 0
	` + prefix + `model.layers.{bid}.block_sparse_moe.gate.weight            | num_experts, hidden_size                    | if bid > 0
	` + prefix + `model.layers.{bid}.block_sparse_moe.gate.e_score_correction_bias              | num_experts              | if bid > 0 | as F32
	` + prefix + `model.layers.{bid}.block_sparse_moe.shared_experts.{gate,up}_proj.weight      | num_shared_experts*moe_intermediate_size, hidden_size | if bid > 0
	` + prefix + `model.layers.{bid}.block_sparse_moe.shared_experts.down_proj.weight           | hidden_size, num_shared_experts*moe_intermediate_size | if bid > 0
	`
}
