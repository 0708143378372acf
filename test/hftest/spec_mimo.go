package hftest

import (
	"slices"
	"strings"
)

func init() {
	const config = `{"add_full_attention_sink_bias": false, "add_swa_attention_sink_bias": true,
		"architectures": ["MiMoV2FlashForCausalLM"], "attention_bias": false, "attention_chunk_size": 128,
		"attention_dropout": 0.0, "attention_value_scale": 0.707,
		"auto_map": {"AutoConfig": "configuration_mimo_v2_flash.MiMoV2FlashConfig"}, "bos_token_id": $pad,
		"eos_token_id": $eos, "head_dim": 32, "hidden_act": "silu", "hidden_size": 64, "hybrid_block_size": null,
		"hybrid_layer_pattern": [0, 1, 1, 0], "initializer_range": 0.02, "intermediate_size": 96,
		"layernorm_epsilon": 1e-06, "max_position_embeddings": 262144, "model_type": "mimo_v2_flash",
		"moe_intermediate_size": 32, "moe_layer_freq": [0, 1, 1, 1], "n_group": 1, "n_routed_experts": 4,
		"n_shared_experts": null, "norm_topk_prob": true, "num_attention_heads": 8, "num_experts_per_tok": 2,
		"num_hidden_layers": 4, "num_key_value_heads": 4, "partial_rotary_factor": 0.334, "rope_theta": 5000000,
		"routed_scaling_factor": null, "scoring_func": "sigmoid", "sliding_window": 128, "sliding_window_size": 128,
		"swa_head_dim": 32, "swa_num_attention_heads": 8, "swa_num_key_value_heads": 8, "swa_rope_theta": 10000,
		"swa_v_head_dim": 16, "tie_word_embeddings": false, "topk_group": 1, "topk_method": "noaux_tc",
		"torch_dtype": "bfloat16", "transformers_version": "4.40.1", "use_cache": true, "v_head_dim": 16,
		"vocab_size": $vocab}`
	const tensors = `
		bid = num_hidden_layers
		xid = n_routed_experts
		nid = opt(drafts)
		qd  = num_attention_heads*head_dim
		od  = num_attention_heads*v_head_dim
		model.embed_tokens.weight                                  | vocab_size, hidden_size
		lm_head.weight                                             | vocab_size, hidden_size
		model.norm.weight                                          | hidden_size
		model.layers.{bid}.{input,post_attention}_layernorm.weight | hidden_size
		model.layers.{bid}.self_attn.o_proj.weight                 | hidden_size, od
		model.layers.{bid}.self_attn.attention_sink_bias           | num_attention_heads                | if hybrid_layer_pattern[bid] == 1
		model.layers.{bid}.mlp.gate.weight                         | n_routed_experts, hidden_size      | if bid > 0
		model.layers.{bid}.mlp.gate.e_score_correction_bias        | n_routed_experts                   | if bid > 0 | as F32
		model.mtp.layers.{nid}.{enorm,hnorm,input_layernorm,pre_mlp_layernorm,final_layernorm}.weight | hidden_size
		model.mtp.layers.{nid}.eh_proj.weight                      | hidden_size, 2*hidden_size
		model.mtp.layers.{nid}.self_attn.o_proj.weight             | hidden_size, od
		model.mtp.layers.{nid}.self_attn.attention_sink_bias       | num_attention_heads
		`
	// matrices returns the table with line expanded for each matrix, given as name, rows, columns and condition, except
	// for those whose names contain one of but.
	matrices := func(line string, attention [][4]string, but ...string) string {
		var b strings.Builder
		b.WriteString(tensors)
		for _, m := range append(attention, [][4]string{
			{"model.layers.{bid}.mlp.{gate,up}_proj", "intermediate_size", "hidden_size", "bid == 0"},
			{"model.layers.{bid}.mlp.down_proj", "hidden_size", "intermediate_size", "bid == 0"},
			{"model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj", "moe_intermediate_size", "hidden_size", "bid > 0"},
			{"model.layers.{bid}.mlp.experts.{xid}.down_proj", "hidden_size", "moe_intermediate_size", "bid > 0"},
			{"model.mtp.layers.{nid}.mlp.{gate,up}_proj", "intermediate_size", "hidden_size", "1"},
			{"model.mtp.layers.{nid}.mlp.down_proj", "hidden_size", "intermediate_size", "1"},
		}...) {
			if slices.ContainsFunc(but, func(part string) bool { return strings.Contains(m[0], part) }) {
				continue
			}
			b.WriteString(strings.NewReplacer("$w", m[0], "$out", m[1], "$in", m[2], "$if", m[3]).Replace(line))
		}
		return b.String()
	}
	add(Spec{
		Name:      "mimo2",
		Tokenizer: "bpe:qwen2",
		Config:    config,
		Tensors: matrices(`
			$w.weight | $out, $in | if $if
			`, [][4]string{
			{"model.layers.{bid}.self_attn.q_proj", "qd", "hidden_size", "1"},
			{"model.layers.{bid}.self_attn.k_proj", "num_key_value_heads*head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 0"},
			{"model.layers.{bid}.self_attn.v_proj", "num_key_value_heads*v_head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 0"},
			{"model.layers.{bid}.self_attn.k_proj", "swa_num_key_value_heads*head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 1"},
			{"model.layers.{bid}.self_attn.v_proj", "swa_num_key_value_heads*v_head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 1"},
			{"model.mtp.layers.{nid}.self_attn.q_proj", "qd", "hidden_size", "1"},
			{"model.mtp.layers.{nid}.self_attn.k_proj", "swa_num_key_value_heads*head_dim", "hidden_size", "1"},
			{"model.mtp.layers.{nid}.self_attn.v_proj", "swa_num_key_value_heads*v_head_dim", "hidden_size", "1"},
		}),
		Variants: []Variant{
			{Name: "with-drafts", Seed: 3, DType: "F16", Shards: 2, Out: "auto",
				Set: `{"drafts": 3, "n_routed_experts": 11, "attention_value_scale": null}`},
			{Name: "draft", Seed: 5, Out: "bf16", Flags: []string{"--mtp"}, Set: `{"drafts": 3}`},
			{Name: "without", Seed: 6, Shards: 2, Flags: []string{"--no-mtp"},
				Set: `{"drafts": 3, "layernorm_epsilon": null}`},
		},
	})
	// queries, keys and values fused per tensor-parallel rank of the training (4 ranks with 4 key heads, else 8), of
	// sizes at which the blocks of scales depend on the ranks
	add(Spec{
		Name:      "mimo2-fp8",
		Tokenizer: "bpe:qwen2",
		Config: strings.NewReplacer(`"MiMoV2FlashForCausalLM"`, `"MiMoV2ForCausalLM"`, `head_dim": 32`, `head_dim": 64`,
			`v_head_dim": 16`, `v_head_dim": 96`, `0.334`, `0.5`,
			`"initializer_range"`, `"attention_projection_layout": "fused_qkv", "drafts": 3,
			"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [128, 128], "ignored_layers": ["model.layers.0.self_attn.o_proj"]},
			"initializer_range"`).Replace(config),
		Tensors: matrices(`
			$w.weight           | $out, $in | as F8_E4M3 | if $if
			$w.weight_scale_inv | floor(($out+127)/128), floor(($in+127)/128) | as F32 | fill scale | if $if
			`, nil) + `
			full = qd + num_key_value_heads*(head_dim+v_head_dim)
			swa  = qd + swa_num_key_value_heads*(head_dim+v_head_dim)
			model.layers.{bid}.self_attn.qkv_proj.weight               | full, hidden_size | as F8_E4M3               | if hybrid_layer_pattern[bid] == 0
			model.layers.{bid}.self_attn.qkv_proj.weight_scale_inv     | 12, 1             | as F32 | fill scale      | if hybrid_layer_pattern[bid] == 0
			model.layers.{bid}.self_attn.qkv_proj.weight               | swa, hidden_size  | as F8_E4M3               | if hybrid_layer_pattern[bid] == 1
			model.layers.{bid}.self_attn.qkv_proj.weight_scale_inv     | 16, 1             | as F32 | fill scale      | if hybrid_layer_pattern[bid] == 1
			model.mtp.layers.{nid}.self_attn.qkv_proj.weight           | swa, hidden_size  | as F8_E4M3
			model.mtp.layers.{nid}.self_attn.qkv_proj.weight_scale_inv | 16, 1             | as F32 | fill scale
			`,
		Variants: []Variant{
			{Name: "f32", Seed: 3, Shards: 2, Out: "f32"},
			{Name: "as-q8", Seed: 4, Out: "bf16", Flags: []string{"--fp8-as-q8"}},
		},
	})
	// experts in MXFP4
	add(Spec{
		Name:      "mimo2-mxfp4",
		Tokenizer: "bpe:qwen2",
		Config: strings.NewReplacer(`"initializer_range"`, `"quantization_config": {"activation_scheme": "dynamic", "fmt": "e4m3", "mxfp4_block_size": 32, "quant_method": "fp8", "store_dtype": "mxfp4",
			"weight_block_size": [128, 128]}, "initializer_range"`).Replace(config),
		Tensors: matrices(`
			$w.weight | $out, $in | if $if
			`, [][4]string{
			{"model.layers.{bid}.self_attn.q_proj", "qd", "hidden_size", "1"},
			{"model.layers.{bid}.self_attn.k_proj", "num_key_value_heads*head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 0"},
			{"model.layers.{bid}.self_attn.v_proj", "num_key_value_heads*v_head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 0"},
			{"model.layers.{bid}.self_attn.k_proj", "swa_num_key_value_heads*head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 1"},
			{"model.layers.{bid}.self_attn.v_proj", "swa_num_key_value_heads*v_head_dim", "hidden_size",
				"hybrid_layer_pattern[bid] == 1"},
		}, "experts") + `
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight       | moe_intermediate_size, hidden_size/2  | if bid > 0 | as U8
			model.layers.{bid}.mlp.experts.{xid}.{gate,up}_proj.weight_scale | moe_intermediate_size, hidden_size/32 | if bid > 0 | as U8 | fill scales
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight            | hidden_size, moe_intermediate_size/2  | if bid > 0 | as U8
			model.layers.{bid}.mlp.experts.{xid}.down_proj.weight_scale      | hidden_size, moe_intermediate_size/32 | if bid > 0 | as U8 | fill scales
			`,
	})
}
