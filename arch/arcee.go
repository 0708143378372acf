package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(arcee, afmoe, nanbeige)

// arcee and afmoe are Arcee's AFM and Trinity. Source: the classes of llama.py and
// afmoe.py of the reference's converter.
var (
	arcee = &table.Arch{
		Name:      "arcee",
		Classes:   []string{"ArceeForCausalLM"},
		Body:      table.Body{Classes: []string{"ArceeModel"}, Prefix: "model."},
		Tokenizer: tokenizer.Llama{},
		Fused:     table.FusedQKV,
		Metadata:  slices.Concat(parts.LlamaRows, []table.Row{parts.PoolingRow}),
		Expect:    []table.Expect{parts.Expect("hidden_act", "relu2")},
		Unused:    parts.BiasKeys,
		Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.MayBias),
			parts.WithBias(table.MayBias, parts.MLPRows[1:])),
		Extra: parts.Llama3Extra,
		Graph: parts.Decoder(graph.RMS, parts.GQA(parts.Interleaved), parts.ReLU2MLP),
	}
	afmoe = &table.Arch{
		Name:      "afmoe",
		Classes:   []string{"AfmoeForCausalLM"},
		Body:      table.Body{Classes: []string{"AfmoeModel"}, Prefix: "model."},
		Tokenizer: tokenizer.Llama{},
		Fused:     table.FusedQKV,
		Metadata: slices.Concat(parts.LlamaRows, []table.Row{
			parts.Optional(parts.UintRow("expert_shared_count", "num_shared_experts")),
			parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
			parts.Optional(parts.UintRow("leading_dense_block_count", "num_dense_layers")),
			parts.Optional(parts.BoolRow("expert_weights_norm", "route_norm")),
			parts.Optional(parts.FloatRow("expert_weights_scale", "route_scale")),
			parts.Optional(parts.UintRow("attention.sliding_window", "sliding_window")),
		}),
		Expect: []table.Expect{parts.SiLU, parts.Expect("mup_enabled", "true"),
			parts.Expect("global_attn_every_n_layers", "4"), parts.Expect("attention_bias", "false")},
		Unused: []string{"layer_types", "load_balance_coeff", "num_expert_groups", "num_limited_groups",
			"use_grouped_mm", "n_group", "topk_group"},
		Tensors: slices.Concat(parts.EmbedRows, parts.AttentionRows(table.NoBias, table.NoBias), parts.QKNormRows,
			[]table.TensorRow{
				{HF: "model.layers.{bid}.self_attn.gate_proj", GGUF: "blk.{bid}.attn_gate"},
				{HF: "model.layers.{bid}.input_layernorm", GGUF: "blk.{bid}.attn_norm"},
				{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
				{HF: "model.layers.{bid}.pre_mlp_layernorm", GGUF: "blk.{bid}.ffn_norm"},
				{HF: "model.layers.{bid}.post_mlp_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
			}, parts.Only(parts.FirstDense("num_dense_layers"), parts.MLPRows),
			parts.Only(parts.Not(parts.FirstDense("num_dense_layers")), slices.Concat([]table.TensorRow{
				{HF: "model.layers.{bid}.mlp.router.gate", GGUF: "blk.{bid}.ffn_gate_inp"},
				{HF: "model.layers.{bid}.mlp.expert_bias", GGUF: "blk.{bid}.exp_probs_b.bias", Exact: true},
				{HF: "model.layers.{bid}.mlp.experts.{xid}.gate_proj", GGUF: "blk.{bid}.ffn_gate_exps"},
				{HF: "model.layers.{bid}.mlp.experts.{xid}.up_proj", GGUF: "blk.{bid}.ffn_up_exps"},
				{HF: "model.layers.{bid}.mlp.experts.{xid}.down_proj", GGUF: "blk.{bid}.ffn_down_exps"},
			}, parts.SharedExpertRows))),
		Extra: parts.Llama3Extra,
		Graph: &graph.Model{
			Reads: []string{"attention.sliding_window!", "expert_gating_func", "expert_weights_norm", "expert_weights_scale"},
			Norm:  graph.RMS, Embed: parts.ScaledEmbedding, Final: parts.OutputNorm, Head: graph.LM{},
			Layer: parts.Sandwich(parts.LocalGlobal(graph.Sliding{N: 4},
				graph.Attention{Steps: afmoeSteps(parts.LocalNeoX), After: []graph.OutStep{graph.OutGate{}},
					Window: parts.Window},
				graph.Attention{Steps: afmoeSteps(parts.NeoX), After: []graph.OutStep{graph.OutGate{}}},
			), parts.Sparse(parts.Experts(graph.Router{Score: graph.Sigmoid, Bias: true}, graph.MayShared),
				parts.SwiGLU)),
		},
	}
)

// afmoeSteps are the steps of attention: every fourth layer has no RoPE (NoPE), whether it has a window or not.
func afmoeSteps(rope graph.RoPE) []graph.HeadStep {
	return []graph.HeadStep{parts.QKNorm,
		graph.On{In: graph.Where("i mod 4 != 3"), Steps: []graph.HeadStep{rope}}}
}

// nanbeige is Nanbeige 4, which may run its layers several times. Source: the Nanbeige class of the reference's
// converter.
var nanbeige = &table.Arch{
	Name:      "nanbeige",
	Classes:   []string{"NanbeigeForCausalLM"},
	Tokenizer: tokenizer.Llama{},
	Metadata: slices.Concat(parts.LlamaRows, []table.Row{
		{Key: "num_loops", Derive: func(c *config.View) (gguf.Value, bool, error) {
			n, _, err := c.Int("num_loops")
			return table.Uint32Of(max(n, 1), true, err)
		}},
		{Key: "skip_loop_final_norm", Type: gguf.BoolType, From: []string{"skip_loop_final_norm"},
			Const: gguf.Bool(false)},
	}),
	Expect:  []table.Expect{parts.SiLU},
	Unused:  parts.BiasKeys,
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.NoBias), parts.MLPRows),
	Extra:   parts.Llama3Extra,
	Graph: &graph.Model{
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.GQA(parts.Interleaved), parts.SwiGLU),
		Loop: graph.Repeat{Times: "@num_loops or 1", Between: []graph.Step{graph.ChooseStep{
			{In: graph.Where("(@skip_loop_final_norm or 0) = 0"), Steps: parts.OutputNorm},
		}}},
	},
}
