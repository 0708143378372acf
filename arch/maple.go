package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(maple)

// maple is Deepgrove's Maple: experts, sliding-window layers, and others without RoPE (NoPE). Source: the Maple class
// of the reference's converter.
var maple = &table.Arch{
	Name:      "maple",
	Classes:   []string{"MapleForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		{Key: "rope.dimension_count", Derive: parts.PartialRope(1)},
		parts.UintRow("attention.sliding_window", "sliding_window"),
		{Key: "attention.sliding_window_pattern", Derive: parts.SlidingLayers},
		parts.UintRow("expert_feed_forward_length", "moe_intermediate_size"),
		{Key: "swiglu_clamp_exp", Derive: mapleClamp},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("num_shared_experts", "0"), parts.Expect("norm_topk_prob", "true"),
		parts.Expect("nope_on_global_attention", "true")},
	Unused: []string{"layer_types"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.AttentionRows(table.NoBias, table.NoBias),
		parts.QKNormRows, parts.ExpertRows),
	Graph: parts.Decoder(graph.RMS, parts.LocalGlobal(graph.Sliding{},
		graph.Attention{Steps: []graph.HeadStep{parts.QKNorm, parts.LocalNeoX}, Window: parts.Window},
		graph.Attention{Steps: []graph.HeadStep{parts.QKNorm}}),
		graph.MoE{Router: parts.RouterTopK, Experts: graph.FFN{Act: graph.LimitedSwiGLU{Limit: "@swiglu_clamp_exp or 7"}}}),
}

// mapleClamp returns the limit at which each layer clamps gates and inputs of experts, a
// constant in the model's code. Without nope_on_global_attention, which decides the layers
// with RoPE, it returns an error.
func mapleClamp(c *config.View) (v gguf.Value, ok bool, err error) {
	if on, _, err := c.Bool("nope_on_global_attention"); err != nil || !on {
		if err == nil {
			err = fault.Errorf(fault.Unsupported, "%s: key \"nope_on_global_attention\" must be true",
				config.ConfigFile)
		}
		return v, false, err
	}
	n, err := c.BlockCount()
	if err == nil && (n < 1 || n > config.MaxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers", config.ConfigFile, n)
	}
	if err != nil {
		return v, false, err
	}
	return gguf.Float32s(slices.Repeat([]float32{7}, int(n))), true, nil
}
