package hftest

import "strings"

func init() {
	text := `"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "max_seq_len": 262144, "max_position_embeddings": 262144, "vocab_size": 1024, "dtype": "bfloat16",
		"use_qk_norm": true, "moe_layers_enum": "1,2,3", "num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 32, "hidden_act": "silu", "use_moe": true,
		"moe_num_experts": 4, "moe_top_k": 2, "moe_intermediate_size": 32, "share_expert_dim": 64, "moe_layer_offset": 0, "moe_every_n_layer": 1, "norm_expert_weight": true,
		"moe_router_activation": "sigmoid", "moe_router_scaling_factor": 3.0, "att_impl_type": "GQA", "use_head_wise_attn_gate": true,
		"rope_theta": [5000000.0, 10000.0, 10000.0, 10000.0], "use_moe_router_bias": true, "need_fp32_gate": true, "yarn_only_types": ["full_attention"],
		"layer_types": ["full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"], "use_rope_layers": [],
		"attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 6, "num_attention_groups": 2, "head_dim": 32, "true_head_dim": 32},
		"sliding_window": 512, "num_nextn_predict_layers": 2, "partial_rotary_factors": [0.5, 1.0, 1.0, 1.0, 0.5, 1.0], "swiglu_limits": [0.0, 0.0, 7.0, null, 0.0, 0.0],
		"swiglu_limits_shared": [0.0, 0.0, 0.0, 16.0, 0.0, 0.0], "zero_centered": true, "sink": false, "rms_norm_eps": 1e-05, "bos_token_id": 1002, "eos_token_id": [1005, 1002]`
	// transformers refuses this RoPE scaling in a config of an unknown model type
	scaled := `, "rope_scaling": {"factor": 2.0, "high_freq_factor": 32.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 131072, "rope_type": "llama3"}`
	// transformers also refuses lists with more layers than the model
	short := strings.NewReplacer(`, "full_attention", "sliding_attention"]`, "]", ", 0.5, 1.0]", "]").Replace(text)
	tensors := func(model, full string) string {
		return strings.NewReplacer("MODEL", model, "FULL", full).Replace(`
			bid = num_hidden_layers + opt(num_nextn_predict_layers)
			lm_head.weight                                       | vocab_size, hidden_size
			MODELembed_tokens.weight                             | vocab_size, hidden_size
			MODELnorm.weight                                     | hidden_size
			MODELlayers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
			MODELlayers.{bid}.self_attn.{q,k}_norm.weight        | head_dim
			MODELlayers.{bid}.self_attn.q_proj.weight            | num_attention_heads*head_dim, hidden_size | if FULL
			MODELlayers.{bid}.self_attn.o_proj.weight            | hidden_size, num_attention_heads*head_dim | if FULL
			MODELlayers.{bid}.self_attn.g_proj.weight            | num_attention_heads, hidden_size          | if FULL
			MODELlayers.{bid}.self_attn.q_proj.weight            | 6*head_dim, hidden_size                   | if !(FULL)
			MODELlayers.{bid}.self_attn.o_proj.weight            | hidden_size, 6*head_dim                   | if !(FULL)
			MODELlayers.{bid}.self_attn.g_proj.weight            | 6, hidden_size                            | if !(FULL)
			MODELlayers.{bid}.self_attn.{k,v}_proj.weight        | num_attention_groups*head_dim, hidden_size
			MODELlayers.{bid}.mlp.{gate,up}_proj.weight          | intermediate_size, hidden_size            | if bid < 1 || bid >= num_hidden_layers
			MODELlayers.{bid}.mlp.down_proj.weight               | hidden_size, intermediate_size            | if bid < 1 || bid >= num_hidden_layers
			MODELlayers.{bid}.moe.gate.weight                    | moe_num_experts, hidden_size              | if bid >= 1 && bid < num_hidden_layers
			MODELlayers.{bid}.moe.router_bias                    | moe_num_experts                           | if bid >= 1 && bid < num_hidden_layers | as F32
			MODELlayers.{bid}.moe.{gate,up}_proj.weight          | moe_num_experts, moe_intermediate_size, hidden_size | if bid >= 1 && bid < num_hidden_layers
			MODELlayers.{bid}.moe.down_proj.weight               | moe_num_experts, hidden_size, moe_intermediate_size | if bid >= 1 && bid < num_hidden_layers
			MODELlayers.{bid}.share_expert.{gate,up}_proj.weight | share_expert_dim, hidden_size             | if bid >= 1 && bid < num_hidden_layers
			MODELlayers.{bid}.share_expert.down_proj.weight      | hidden_size, share_expert_dim             | if bid >= 1 && bid < num_hidden_layers
			MODELlayers.{bid}.{enorm,hnorm}.weight               | hidden_size                               | if bid >= num_hidden_layers
			MODELlayers.{bid}.eh_proj.weight                     | hidden_size, 2*hidden_size                | if bid >= num_hidden_layers
			MODELlayers.{bid}.transformer.shared_head.norm.weight   | hidden_size                            | if bid >= num_hidden_layers
			MODELlayers.{bid}.transformer.shared_head.output.weight | vocab_size, hidden_size                | if bid >= num_hidden_layers
			`)
	}
	add(Spec{
		Name:      "step3p5",
		Tokenizer: "bpe:laguna",
		Config:    `{"architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", "transformers_version": "4.57.1", ` + short + `}`,
		Tensors:   tensors("model.", "bid == 0 || bid >= num_hidden_layers"),
		Variants: []Variant{
			{Name: "draft", Seed: 3, Out: "bf16", Flags: []string{"--mtp"}},
			{Name: "without", Seed: 4, DType: "F16", Shards: 2, Out: "auto", Flags: []string{"--no-nextn"}},
			{Name: "few-keys", Seed: 5, Out: "f32", Set: `{"num_nextn_predict_layers": null, "rope_theta": 10000.0,
				"swiglu_limits": null, "swiglu_limits_shared": null, "moe_router_scaling_factor": null,
				"norm_expert_weight": null, "rms_norm_eps": null}`},
		},
	})
	add(Spec{
		Name:      "step3p7",
		Tokenizer: "bpe:laguna",
		Config: `{"architectures": ["Step3p7ForConditionalGeneration"], "model_type": "step3p7", "transformers_version": "4.57.1", "understand_projector_stride": 2, "projector_bias": false,
			"image_token_id": 1001, "vision_select_layer": -1, "image_token_len": 169, "patch_token_len": 81, "im_start_token": "<im_start>", "im_end_token": "<im_end>",
			"vision_config": {"hidden_act": "quick_gelu", "hidden_size": 32, "image_size": 728, "layers": 2, "model_type": "perception_encoder", "patch_size": 14, "width": 32},
			"text_config": {"architectures": ["Step3p5ForCausalLM"], "model_type": "step3p5", ` + text + scaled + `}}`,
		Tensors: tensors("model.language_model.", "bid == 0 || bid == 4") + `
			vision_model.conv1.weight    | 32, 3, 4, 4
			vit_large_projector.weight   | 64, 32
			`,
	})
}
