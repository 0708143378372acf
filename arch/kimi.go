package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(kimiLinear, kimiK3)

// kimiLinear is Moonshot's Kimi Linear: most layers have delta attention. Source: the
// KimiLinear class of the reference's converter.
var kimiLinear = &table.Arch{
	Name:      "kimi-linear",
	Classes:   []string{"KimiLinearForCausalLM"},
	Body:      table.Body{Classes: []string{"KimiLinearModel"}, Prefix: "model."},
	Tokenizer: kimiLinearTokens,
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: table.KeyHeadCountKV, Derive: parts.KeyHeads},
		parts.KDARow("ssm.conv_kernel", "short_conv_kernel_size", true),
		parts.KDARow("kda.head_dim", "head_dim", true),
		parts.Optional(parts.UintRow("attention.q_lora_rank", "q_lora_rank")),
		parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
		parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
		{Key: "attention.key_length", Derive: parts.SumOf("kv_lora_rank", "qk_rope_head_dim")},
		{Key: "attention.key_length_mla", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		parts.UintRow("attention.value_length_mla", "v_head_dim"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_count", "num_shared_experts"),
		parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
	}),
	Expect: append([]table.Expect{parts.SiLU, parts.Expect("moe_renormalize", "true")}, kimiExpect...),
	Unused: kimiUnused,
	Tensors: slices.Concat(kimiTensors, parts.Only(parts.Not(parts.FullAttention),
		slices.Concat(parts.KDARows, parts.KDAGateRows, []table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.A_log", Exact: true, GGUF: "blk.{bid}.ssm_a", Transform: parts.NegExp},
		})), parts.Restrict(parts.FullAttention, parts.MLARows)),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.NeedsMLA, []string{"expert_gating_func!", "expert_weights_scale"}),
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.RecurrentOr(graph.KDA{}, graph.MLA{}),
			parts.Sparse(parts.Experts(parts.RouterBiasTopK, graph.MayShared), parts.SwiGLU)),
		Unread: []string{"rope.freq_base"},
	},
}

// kimiK3 is Kimi K3: layers add states of earlier layers, weighted by learned scores, and experts have a narrower
// input. Source: the KimiK3 class of the reference's converter.
var kimiK3 = &table.Arch{
	Name:      "kimi-k3",
	Classes:   []string{"KimiK3ForConditionalGeneration"},
	Config:    config.Rules{Outer: []string{"KimiK3ForConditionalGeneration"}},
	Tokenizer: kimiK3Tokens,
	Special:   []table.Special{table.MXFP4{First: true}},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: table.KeyHeadCountKV, Derive: parts.KeyHeads},
		parts.KDARow("ssm.conv_kernel", "short_conv_kernel_size", true),
		parts.KDARow("kda.head_dim", "head_dim", true),
		parts.KDARow("kda.gate_lower_bound", "gate_lower_bound", false),
		parts.Optional(parts.UintRow("attention.q_lora_rank", "q_lora_rank")),
		parts.UintRow("attention.kv_lora_rank", "kv_lora_rank"),
		parts.UintRow("rope.dimension_count", "qk_rope_head_dim"),
		{Key: "attention.key_length", Derive: parts.SumOf("kv_lora_rank", "qk_rope_head_dim")},
		parts.UintRow("attention.value_length", "kv_lora_rank"),
		{Key: "attention.key_length_mla", Derive: parts.SumOf("qk_nope_head_dim", "qk_rope_head_dim")},
		parts.UintRow("attention.value_length_mla", "v_head_dim"),
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		parts.UintRow("expert_shared_count", "num_shared_experts"),
		parts.UintRow("leading_dense_block_count", "first_k_dense_replace"),
		parts.FloatRow("expert_weights_scale", "routed_scaling_factor"),
		parts.BoolRow("expert_weights_norm", "moe_renormalize"),
		{Key: "expert_gating_func", Const: gguf.Uint32(parts.GatingFuncs["sigmoid"])},
		parts.Optional(parts.UintRow("expert_latent_length", "routed_expert_hidden_size")),
		parts.FloatRow("activation.situ_beta", "activation_situ_beta"),
		parts.FloatRow("activation.situ_linear_beta", "activation_situ_linear_beta"),
		parts.UintRow("attn_res.block_size", "attn_res_block_size"),
	}),
	Expect: append([]table.Expect{parts.Expect("hidden_act", "situ"),
		parts.Expect("moe_router_activation_func", "sigmoid"), parts.Expect("mla_use_output_gate", "true")},
		kimiExpect...),
	Unused: slices.Concat(parts.MultimodalKeys, []string{"latent_moe_use_norm", "mm_projector_config"}, kimiUnused),
	Tensors: slices.Concat(kimiTensors, []table.TensorRow{
		fusedScore("model.output_attn_res", "output_res_score"),
		fusedScore("model.layers.{bid}.self_attention_res", "blk.{bid}.attn_res_score"),
		fusedScore("model.layers.{bid}.mlp_res", "blk.{bid}.ffn_res_score"),
	}, parts.Only(parts.Not(parts.FullAttention), slices.Concat(parts.KDARows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.A_log", Exact: true, GGUF: "blk.{bid}.ssm_a", Transform: parts.KDADecay},
		{HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.ssm_g"},
	})), parts.Restrict(parts.FullAttention, append(slices.Clone(parts.MLARows), table.TensorRow{
		HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.attn_gate",
	})), parts.Only(parts.Both(parts.MoEAfter, parts.Has("routed_expert_hidden_size")), []table.TensorRow{
		{HF: "model.layers.{bid}.block_sparse_moe.routed_expert_down_proj", GGUF: "blk.{bid}.ffn_routed_down"},
		{HF: "model.layers.{bid}.block_sparse_moe.routed_expert_up_proj", GGUF: "blk.{bid}.ffn_routed_up"},
		{HF: "model.layers.{bid}.block_sparse_moe.routed_expert_norm", GGUF: "blk.{bid}.ffn_routed_norm",
			Optional: true},
	})),
	Graph: &graph.Model{
		Reads: slices.Concat(parts.NeedsMLA, []string{"expert_gating_func!", "expert_weights_norm",
			"expert_weights_scale", "activation.situ_beta!", "activation.situ_linear_beta!"}),
		Streams: graph.AttentionResiduals{}, Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: []graph.Step{
			graph.Attended{Name: "attn", Keeps: true, Residual: graph.Residual{Pre: graph.Norm{Name: "attn_norm"},
				Part: graph.Choose{
					{In: graph.Where("n_head_kv = 0 and @kda.gate_lower_bound != 0"),
						Then: graph.KDA{Bounded: true, Negative: true, FullGate: true}},
					{In: graph.Where("n_head_kv = 0"), Then: graph.KDA{Negative: true, FullGate: true}},
					{In: graph.Every{}, Then: graph.MLA{After: []graph.OutStep{graph.OutGate{}}}},
				}}},
			graph.Attended{Name: "ffn", Residual: graph.Residual{Pre: graph.Norm{Name: "ffn_norm"},
				Part: parts.Sparse(graph.MoE{Router: parts.RouterBias, Experts: kimiFFN, Shared: graph.MayShared,
					With: []graph.MoEOption{graph.LatentExperts{Routed: true}}}, kimiFFN)}},
		},
	},
}

var kimiFFN = graph.FFN{Act: graph.SiTU{Beta: "@activation.situ_beta", Linear: "@activation.situ_linear_beta"}}

// kimiTensors are the rows of both models, attention excluded.
var kimiTensors = slices.Concat(parts.EmbedRows, parts.NormRows, parts.Only(parts.DenseFirst, parts.MLPRows),
	parts.Only(parts.MoEAfter, slices.Concat(parts.MixtralExperts, []table.TensorRow{
		{HF: "model.layers.{bid}.block_sparse_moe.gate.e_score_correction_bias", Exact: true,
			GGUF: "blk.{bid}.exp_probs_b.bias"},
		{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.gate_proj", GGUF: "blk.{bid}.ffn_gate_shexp"},
		{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.up_proj", GGUF: "blk.{bid}.ffn_up_shexp"},
		{HF: "model.layers.{bid}.block_sparse_moe.shared_experts.down_proj", GGUF: "blk.{bid}.ffn_down_shexp"},
	})))

var kimiExpect = []table.Expect{parts.Expect("mla_use_nope", "true"), parts.Expect("moe_layer_freq", "1"),
	parts.Expect("num_expert_group", "1")}

var kimiUnused = []string{"linear_attn_config", "use_grouped_topk", "topk_method", "num_nextn_predict_layers",
	"num_key_value_heads", "rope_theta"}

// fusedScore returns the row of a norm and a projection to one number; the file has their product.
func fusedScore(hf, gguf string) table.TensorRow {
	return table.TensorRow{HF: hf + "_{part}", Parts: []string{"norm", "proj"}, GGUF: gguf, Join: elementProduct}
}

// elementProduct multiplies two tensors element by element and returns a vector.
func elementProduct(_ table.Layer, parts []rows.Source) (rows.Source, error) {
	count := func(s rows.Source) int64 {
		n := int64(1)
		for _, d := range s.NE() {
			n *= d
		}
		return n
	}
	const most = 1 << 20 // elements
	n := count(parts[0])
	if n != count(parts[1]) || n < 1 || n > most {
		return nil, fault.Errorf(fault.Broken, "dimensions %s and %s, want as many elements in both",
			gguf.Shape(parts[0].NE()), gguf.Shape(parts[1].NE()))
	}
	return rows.Prepared([]int64{n}, gguf.TypeF32, func() (rows.Source, error) {
		var values [2][]float32
		for i, s := range parts {
			flat, err := rows.Reshape(s, []int64{n})
			if err != nil {
				return nil, err
			}
			values[i] = make([]float32, n)
			if err := rows.Decode(flat, values[i], new([]byte), 0, 1); err != nil {
				return nil, err
			}
		}
		for i, v := range values[1] {
			values[0][i] *= v
		}
		return rows.Float32s(values[0]), nil
	}), nil
}

var (
	kimiLinearTokens = tokenizer.Either{First: parts.Kimi(tokenizer.ConfigEOS{}), Else: tokenizer.BPE{}}
	// kimiK3Tokens: the end token of config.json ends a turn. Without a template the reference takes one from its source
	// tree.
	kimiK3Tokens = tokenizer.Either{First: kimiLinearTokens.First, Else: kimiLinearTokens.Else, Then: tokenizer.Steps{
		tokenizer.ModelID{Kind: "eos", Key: "eos_token_id"},
		tokenizer.NoTemplate("the model comes with a program instead of one")}}
)
