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

var _ = register(mellum)

// mellum is JetBrains' Mellum 2. Source: the Mellum class of the reference's converter.
var mellum = &table.Arch{
	Name:    "mellum",
	Classes: []string{"MellumForCausalLM"},
	Body:    table.Body{Classes: []string{"MellumModel"}, Prefix: "model."},
	Config: config.Rules{Types: []string{"mellum"},
		Derived: config.DerivedKeys{"layer_types": config.AllFull}},
	Tokenizer: tokenizer.BPE{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.Optional(parts.UintRow("expert_feed_forward_length", "moe_intermediate_size")),
		{Key: "attention.sliding_window", Derive: ifSliding(func(c *config.View) (gguf.Value, bool,
			error) {
			return table.Uint32Of(c.Int("sliding_window"))
		})},
		{Key: "attention.sliding_window_pattern", Derive: ifSliding(parts.SlidingLayers)},
		parts.Optional(parts.BoolRow("expert_weights_norm", "norm_topk_prob")),
	}),
	RopePerAttention: true,
	Expect:           []table.Expect{parts.SiLU},
	Unused: append([]string{"layer_types", "max_window_layers", "sliding_window", "use_sliding_window",
		"mlp_only_layers", "mlp_layer_types", "decoder_sparse_step"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows),
	Graph: &graph.Model{
		Reads: []string{"expert_gating_func", "expert_weights_norm"},
		Dims:  graph.Dims{"n_ff_exp": parts.SharedWidth},
		Norm:  graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{N: 4},
			graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.UnscaledLocalNeoX}, Window: parts.Window},
			parts.GQA(parts.QKNorm, parts.NeoX),
		), parts.Experts(parts.RouterTopK, graph.NoShared)),
	},
}

// ifSliding returns d for models with a sliding window, no value for others.
func ifSliding(d table.Derive) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		use, ok, err := c.Bool("use_sliding_window")
		if err != nil || ok && !use || !c.Has("sliding_window") {
			return gguf.Value{}, false, err
		}
		return d(c)
	}
}
