package hftest

import "strings"

func init() {
	const moe = `{"architectures": ["NemotronHForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
		"auto_map": {"AutoConfig": "configuration_nemotron_h.NemotronHConfig",
		"AutoModelForCausalLM": "modeling_nemotron_h.NemotronHForCausalLM"}, "bos_token_id": $bos, "chunk_size": 128,
		"conv_kernel": 4, "dtype": "bfloat16", "eos_token_id": $eos, "expand": 2, "head_dim": 32, "hidden_dropout": 0.0,
		"hidden_size": 64, "hybrid_override_pattern": "ME*ME", "initializer_range": 0.02, "intermediate_size": 32,
		"layer_norm_epsilon": 1e-05, "mamba_head_dim": 32, "mamba_hidden_act": "silu", "mamba_num_heads": 4,
		"mamba_proj_bias": false, "mamba_ssm_cache_dtype": "float32", "max_position_embeddings": 262144,
		"mlp_bias": false, "mlp_hidden_act": "relu2", "model_type": "nemotron_h", "moe_intermediate_size": 32,
		"moe_shared_expert_intermediate_size": 64, "n_group": 1, "n_groups": 2, "n_routed_experts": 4,
		"n_shared_experts": 1, "norm_eps": 1e-05, "norm_topk_prob": true, "num_attention_heads": 4,
		"num_experts_per_tok": 2, "num_hidden_layers": 5, "num_key_value_heads": 2, "num_logits_to_keep": 1,
		"pad_token_id": 0, "partial_rotary_factor": 1.0, "rescale_prenorm_residual": true, "residual_in_fp32": false,
		"rope_theta": 10000, "routed_scaling_factor": 2.5, "sliding_window": null, "ssm_state_size": 16,
		"tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_limit": [0.0, {"__float__": "Infinity"}],
		"time_step_max": 0.1, "time_step_min": 0.001, "topk_group": 1, "transformers_version": "4.55.4",
		"use_bias": false, "use_cache": true, "use_conv_bias": true, "use_mamba_kernels": true, "vocab_size": 1006}`
	add(Spec{
		Name:      "nemotron_h_moe",
		Tokenizer: "bpe:llama3",
		Pre:       "pixtral",
		Config:    moe,
		Tensors: nemotronLayers(nemotronHTensors + `
			hd  = head_dim
			xid = n_routed_experts
			lat = opt(moe_latent_size) + hidden_size*(opt(moe_latent_size) == 0)
			` + nemotronHAttention + `
			backbone.layers.{bid}.mixer.gate.weight                            | n_routed_experts, hidden_size                     | if $E
			backbone.layers.{bid}.mixer.gate.e_score_correction_bias           | n_routed_experts                                  | if $E | as F32
			backbone.layers.{bid}.mixer.experts.{xid}.up_proj.weight           | moe_intermediate_size, lat                        | if $E
			backbone.layers.{bid}.mixer.experts.{xid}.down_proj.weight         | lat, moe_intermediate_size                        | if $E
			backbone.layers.{bid}.mixer.shared_experts.up_proj.weight          | moe_shared_expert_intermediate_size, hidden_size  | if $E
			backbone.layers.{bid}.mixer.shared_experts.down_proj.weight        | hidden_size, moe_shared_expert_intermediate_size  | if $E
			backbone.layers.{bid}.mixer.fc1_latent_proj.weight                 | lat, hidden_size                                  | if opt(moe_latent_size) | if $E
			backbone.layers.{bid}.mixer.fc2_latent_proj.weight                 | hidden_size, lat                                  | if opt(moe_latent_size) | if $E
			` + nemotronHNext),
		Variants: []Variant{
			// Nemotron 3 Super: experts on a narrower latent, and an MTP layer
			{Name: "super", Seed: 3, DType: "F16", Shards: 2, Out: "auto", Set: `{"hybrid_override_pattern": null,
				"layers_block_type": ["mamba", "moe", "attention", "mamba", "moe"], "num_hidden_layers": null,
				"moe_latent_size": 32, "num_nextn_predict_layers": 1, "mtp_layers_block_type": ["attention", "moe"],
				"norm_eps": null, "dtype": "float16"}`},
			{Name: "draft", Seed: 5, Out: "bf16", Flags: []string{"--mtp"},
				Set: `{"moe_latent_size": 32, "num_nextn_predict_layers": 1}`},
			{Name: "without", Seed: 6, Shards: 2, Flags: []string{"--no-nextn"},
				Set: `{"moe_latent_size": 32, "num_nextn_predict_layers": 1}`},
			{Name: "eleven-experts", Seed: 4, DType: "F32", Out: "f32",
				Set: `{"n_routed_experts": 11, "n_groups": 1, "use_conv_bias": false}`},
		},
	})
	// experts in NVFP4, projections of Mamba in FP8
	add(Spec{
		Name:      "nemotron_h_moe-nvfp4",
		Tokenizer: "bpe:llama3",
		Pre:       "pixtral",
		Config: strings.NewReplacer(`"moe_intermediate_size": 32`, `"moe_intermediate_size": 64`, `"n_group": 1`, `"quantization_config": {"config_groups": {}, "ignore": ["lm_head"],
			"producer": {"name": "modelopt", "version": "0.33.0"}, "quant_algo": "MIXED_PRECISION", "quant_method": "modelopt", "quantized_layers": {
			"backbone.layers.0.mixer.in_proj": {"quant_algo": "FP8"}, "backbone.layers.1.mixer.experts.0.up_proj": {"quant_algo": "NVFP4", "group_size": 16}}}, "n_group": 1`).Replace(moe),
		Tensors: nemotronLayers(strings.Replace(nemotronHTensors, "backbone.layers.{bid}.mixer.in_proj.weight   | d+ch+mamba_num_heads, hidden_size  | if $M", `
			backbone.layers.{bid}.mixer.in_proj.weight       | d+ch+mamba_num_heads, hidden_size | as F8_E4M3 | if $M
			backbone.layers.{bid}.mixer.in_proj.weight_scale |                                   | as F32 | fill scale | if $M
			backbone.layers.{bid}.mixer.in_proj.input_scale  |                                   | as F32 | fill scale | if $M`, 1) + `
			hd  = head_dim
			xid = n_routed_experts
			lat = hidden_size
			` + nemotronHAttention + `
			backbone.layers.{bid}.mixer.gate.weight                                  | n_routed_experts, hidden_size                       | if $E
			backbone.layers.{bid}.mixer.gate.e_score_correction_bias                 | n_routed_experts                                    | if $E | as F32
			backbone.layers.{bid}.mixer.experts.{xid}.up_proj.weight                 | moe_intermediate_size, hidden_size/2                | if $E | as U8
			backbone.layers.{bid}.mixer.experts.{xid}.up_proj.weight_scale           | moe_intermediate_size, hidden_size/16               | if $E | as F8_E4M3
			backbone.layers.{bid}.mixer.experts.{xid}.down_proj.weight               | hidden_size, moe_intermediate_size/2                | if $E | as U8
			backbone.layers.{bid}.mixer.experts.{xid}.down_proj.weight_scale         | hidden_size, moe_intermediate_size/16               | if $E | as F8_E4M3
			backbone.layers.{bid}.mixer.experts.{xid}.{up,down}_proj.weight_scale_2  |                                                     | if $E | as F32 | fill scale
			backbone.layers.{bid}.mixer.experts.{xid}.{up,down}_proj.input_scale     |                                                     | if $E | as F32 | fill scale
			backbone.layers.{bid}.mixer.shared_experts.up_proj.weight                | moe_shared_expert_intermediate_size, hidden_size/2  | if $E | as U8
			backbone.layers.{bid}.mixer.shared_experts.up_proj.weight_scale          | moe_shared_expert_intermediate_size, hidden_size/16 | if $E | as F8_E4M3
			backbone.layers.{bid}.mixer.shared_experts.down_proj.weight              | hidden_size, moe_shared_expert_intermediate_size/2  | if $E | as U8
			backbone.layers.{bid}.mixer.shared_experts.down_proj.weight_scale        | hidden_size, moe_shared_expert_intermediate_size/16 | if $E | as F8_E4M3
			backbone.layers.{bid}.mixer.shared_experts.{up,down}_proj.weight_scale_2 |                                                     | if $E | as F32 | fill scale
			backbone.layers.{bid}.mixer.shared_experts.{up,down}_proj.input_scale    |                                                     | if $E | as F32 | fill scale
			` + nemotronHNext),
		Variants: []Variant{
			{Name: "f32", Seed: 3, DType: "F16", Shards: 2, Out: "f32"},
			{Name: "predicting", Seed: 5, Out: "bf16",
				Set: `{"num_nextn_predict_layers": 1, "mtp_layers_block_type": ["attention", "moe"]}`},
			{Name: "auto", Seed: 4, Out: "auto", Set: `{"n_routed_experts": 11}`},
		},
	})
	add(Spec{
		Name:      "nemotron_h_puzzle",
		Tokenizer: "bpe:llama3",
		Pre:       "pixtral",
		Config: `{"architectures": ["NemotronHPuzzleForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_nemotron_h_puzzle.NemotronHPuzzleConfig"},
			"block_configs": [{"block_type": "mamba"}, {"block_type": "moe", "moe_intermediate_size": 32,
			"moe_latent_size": 32, "moe_shared_expert_intermediate_size": 64, "n_routed_experts": 4,
			"num_experts_per_tok": 2}, {"block_type": "attention"}, {"block_type": "mamba"}, {"block_type": "moe",
			"moe_intermediate_size": 64, "moe_latent_size": 32, "moe_shared_expert_intermediate_size": 64,
			"n_routed_experts": 4, "num_experts_per_tok": 3}], "bos_token_id": $bos, "chunk_size": 128,
			"conv_kernel": 4, "eos_token_id": $eos, "expand": 2, "head_dim": 32, "hidden_dropout": 0.0,
			"hidden_size": 64, "initializer_range": 0.02, "intermediate_size": 96, "layer_norm_epsilon": 1e-05,
			"layers_block_type": ["mamba", "moe", "attention", "mamba", "moe"], "mamba_head_dim": 32,
			"mamba_hidden_act": "silu", "mamba_num_heads": 4, "mamba_proj_bias": false,
			"mamba_ssm_cache_dtype": "float32", "max_position_embeddings": 262144, "mlp_bias": false,
			"mlp_hidden_act": "relu2", "model_type": "nemotron_h_puzzle", "moe_latent_size": 32,
			"moe_shared_expert_intermediate_size": 64, "moe_shared_expert_overlap": false,
			"mtp_block_configs": [{"block_type": "attention"}, {"block_type": "moe"}], "n_group": 1, "n_groups": 2,
			"n_routed_experts": 4, "n_shared_experts": 1, "norm_eps": 1e-05, "norm_topk_prob": true,
			"num_attention_heads": 4, "num_hidden_layers": null, "num_key_value_heads": 2, "num_logits_to_keep": 1,
			"num_nextn_predict_layers": 1, "pad_token_id": 0, "rescale_prenorm_residual": true,
			"residual_in_fp32": false, "routed_scaling_factor": 5.0, "sliding_window": null, "ssm_state_size": 16,
			"tie_word_embeddings": false, "time_step_floor": 0.0001, "time_step_max": 0.1, "time_step_min": 0.001,
			"topk_group": 1, "torch_dtype": "bfloat16", "transformers_version": "4.57.1", "use_bias": false,
			"use_cache": true, "use_conv_bias": true, "use_mamba_kernels": true, "vocab_size": 1006}`,
		Tensors: nemotronLayers(strings.ReplaceAll(nemotronHTensors+`
			hd  = head_dim
			xid = n_routed_experts
			`+nemotronHAttention, "backbone.", "model.") + `
			model.layers.{bid}.mixer.gate.weight                     | n_routed_experts, hidden_size                       | if bid == 1 || bid == 4
			model.layers.{bid}.mixer.gate.e_score_correction_bias    | n_routed_experts                                    | if bid == 1 || bid == 4 | as F32
			model.layers.1.mixer.experts.{xid}.up_proj.weight        | 32, moe_latent_size
			model.layers.1.mixer.experts.{xid}.down_proj.weight      | moe_latent_size, 32
			model.layers.4.mixer.experts.{xid}.up_proj.weight        | 64, moe_latent_size
			model.layers.4.mixer.experts.{xid}.down_proj.weight      | moe_latent_size, 64
			model.layers.{bid}.mixer.shared_experts.up_proj.weight   | moe_shared_expert_intermediate_size, hidden_size    | if bid == 1 || bid == 4
			model.layers.{bid}.mixer.shared_experts.down_proj.weight | hidden_size, moe_shared_expert_intermediate_size    | if bid == 1 || bid == 4
			model.layers.{bid}.mixer.fc1_latent_proj.weight          | moe_latent_size, hidden_size                        | if bid == 1 || bid == 4
			model.layers.{bid}.mixer.fc2_latent_proj.weight          | hidden_size, moe_latent_size                        | if bid == 1 || bid == 4
			mtp.layers.0.{enorm,hnorm,norm}.weight                   | hidden_size # are left out
			`),
	})
	add(Spec{
		Name:      "nemotron_h",
		Tokenizer: "bpe:llama3",
		Pre:       "pixtral",
		RawConfig: true,
		Config: `{"architectures": ["NemotronHForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
			"auto_map": {"AutoConfig": "configuration_nemotron_h.NemotronHConfig",
			"AutoModelForCausalLM": "modeling_nemotron_h.NemotronHForCausalLM"}, "bos_token_id": $bos,
			"chunk_size": 128, "conv_kernel": 4, "eos_token_id": $eos, "expand": 2, "attention_head_dim": 32,
			"hidden_dropout": 0.0, "hidden_size": 64, "hybrid_override_pattern": "M-*M-", "initializer_range": 0.02,
			"intermediate_size": 96, "layer_norm_epsilon": 1e-05, "mamba_head_dim": 32, "mamba_hidden_act": "silu",
			"mamba_num_heads": 4, "mamba_proj_bias": false, "max_position_embeddings": 8192, "mlp_bias": false,
			"mlp_hidden_act": "relu2", "model_type": "nemotron_h", "n_groups": 2, "num_attention_heads": 4,
			"num_hidden_layers": 5, "num_key_value_heads": 2, "num_logits_to_keep": 1, "num_query_groups": 2,
			"pad_token_id": 0, "rescale_prenorm_residual": true, "residual_in_fp32": false, "rms_norm_eps": 1e-05,
			"sliding_window": null, "ssm_state_size": 16, "tie_word_embeddings": false, "time_step_floor": 0.0001,
			"time_step_max": 0.1, "time_step_min": 0.001, "torch_dtype": "bfloat16",
			"transformers_version": "4.48.0.dev0", "use_bias": false, "use_cache": true, "use_conv_bias": true,
			"use_mamba_kernels": true, "vocab_size": 1006}`,
		Tensors: nemotronLayers(nemotronHTensors + `
			hd = opt(attention_head_dim) || head_dim` + nemotronHAttention + `
			backbone.layers.{bid}.mixer.up_proj.weight   | intermediate_size, hidden_size | if $D
			backbone.layers.{bid}.mixer.up_proj.bias     | intermediate_size              | if mlp_bias | if $D
			backbone.layers.{bid}.mixer.down_proj.weight | hidden_size, intermediate_size | if $D
			backbone.layers.{bid}.mixer.down_proj.bias   | hidden_size                    | if mlp_bias | if $D
			`),
		Variants: []Variant{
			{Name: "biases", Seed: 3, DType: "F16", Shards: 2, Out: "bf16",
				Set: `{"attention_bias": true, "mlp_bias": true, "n_groups": 4}`},
		},
	})
}

// nemotronHNext is the MTP layer.
const nemotronHNext = `
	mtp.layers.0.{enorm,hnorm,norm}.weight                             | hidden_size                                       | if opt(num_nextn_predict_layers)
	mtp.layers.0.eh_proj.weight                                        | hidden_size, 2*hidden_size                        | if opt(num_nextn_predict_layers)
	mtp.layers.0.mixer.q_proj.weight                                   | num_attention_heads*hd, hidden_size               | if opt(num_nextn_predict_layers)
	mtp.layers.0.mixer.{k,v}_proj.weight                               | num_key_value_heads*hd, hidden_size               | if opt(num_nextn_predict_layers)
	mtp.layers.0.mixer.o_proj.weight                                   | hidden_size, num_attention_heads*hd               | if opt(num_nextn_predict_layers)
	mtp.layers.1.{norm,final_layernorm}.weight                         | hidden_size                                       | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.gate.weight                                     | n_routed_experts, hidden_size                     | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.gate.e_score_correction_bias                    | n_routed_experts                                  | if opt(num_nextn_predict_layers) | as F32
	mtp.layers.1.mixer.experts.{xid}.up_proj.weight                    | moe_intermediate_size, lat                        | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.experts.{xid}.down_proj.weight                  | lat, moe_intermediate_size                        | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.shared_experts.up_proj.weight                   | moe_shared_expert_intermediate_size, hidden_size  | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.shared_experts.down_proj.weight                 | hidden_size, moe_shared_expert_intermediate_size  | if opt(num_nextn_predict_layers)
	mtp.layers.1.mixer.fc1_latent_proj.weight                          | lat, hidden_size                                  | if opt(num_nextn_predict_layers) && opt(moe_latent_size)
	mtp.layers.1.mixer.fc2_latent_proj.weight                          | hidden_size, lat                                  | if opt(num_nextn_predict_layers) && opt(moe_latent_size)
`

// nemotronLayers returns a table with $M, $E, $A and $D replaced by the conditions for layers with Mamba, experts,
// attention and a dense MLP.
func nemotronLayers(tensors string) string {
	kind := func(letter, name string) string {
		return `opt(hybrid_override_pattern[bid]) == "` + letter + `" || opt(layers_block_type[bid]) == "` + name + `"`
	}
	return strings.NewReplacer("$M", kind("M", "mamba"), "$E", kind("E", "moe"), "$A", kind("*", "attention"), "$D",
		kind("-", "mlp")).Replace(tensors)
}

// nemotronHTensors are the tensors outside the layers and those of Mamba.
const nemotronHTensors = `
	bid = opt(num_hidden_layers) || len(layers_block_type)
	d   = mamba_num_heads*mamba_head_dim
	ch  = d + 2*n_groups*ssm_state_size
	backbone.embeddings.weight                   | vocab_size+2, hidden_size # a multiple of 8
	lm_head.weight                               | vocab_size+2, hidden_size
	backbone.norm_f.weight                       | hidden_size
	backbone.layers.{bid}.norm.weight            | hidden_size
	backbone.layers.{bid}.mixer.A_log            | mamba_num_heads                    | if $M | fill log
	backbone.layers.{bid}.mixer.{D,dt_bias}      | mamba_num_heads                    | if $M
	backbone.layers.{bid}.mixer.conv1d.weight    | ch, 1, conv_kernel                 | if $M
	backbone.layers.{bid}.mixer.conv1d.bias      | ch                                 | if use_conv_bias | if $M
	backbone.layers.{bid}.mixer.in_proj.weight   | d+ch+mamba_num_heads, hidden_size  | if $M
	backbone.layers.{bid}.mixer.norm.weight      | d                                  | if $M
	backbone.layers.{bid}.mixer.out_proj.weight  | hidden_size, d                     | if $M
`

// nemotronHAttention are the tensors of attention.
const nemotronHAttention = `
	backbone.layers.{bid}.mixer.q_proj.weight     | num_attention_heads*hd, hidden_size | if $A
	backbone.layers.{bid}.mixer.{k,v}_proj.weight | num_key_value_heads*hd, hidden_size | if $A
	backbone.layers.{bid}.mixer.o_proj.weight     | hidden_size, num_attention_heads*hd | if $A
	backbone.layers.{bid}.mixer.q_proj.bias       | num_attention_heads*hd | if attention_bias | if $A
	backbone.layers.{bid}.mixer.{k,v}_proj.bias   | num_key_value_heads*hd | if attention_bias | if $A
	backbone.layers.{bid}.mixer.o_proj.bias       | hidden_size            | if attention_bias | if $A
`
