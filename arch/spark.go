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

var _ = register(spark2_5)

// spark2_5 is iFlytek's Spark X 2.5: some layers have sliding-window attention (SWA), and every head of attention has
// a gate. Source: the Spark2_5 class of the reference's converter.
var spark2_5 = &table.Arch{
	Name:             "spark2_5",
	Classes:          []string{"Spark2_5ForCausalLM"},
	Tokenizer:        tokenizer.BPE{},
	RopePerAttention: true,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.UintRow("attention.sliding_window", "sliding_window"),
		{Key: "attention.sliding_window_pattern", Derive: sparkPattern},
		{Key: "rope.dimension_count", Derive: sparkRopeDims("full_attention")},
		{Key: "rope.dimension_count_swa", Derive: sparkRopeDims(parts.Sliding)},
	}),
	Expect: []table.Expect{parts.Expect("hidden_act", "gelu"), parts.Expect("gate_attn_act_mode", "sigmoid"),
		parts.Expect("headwise_attn_output_gate", "true")},
	Unused: []string{"layer_types"},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_k_v_proj", GGUF: "blk.{bid}.attn_qkv"},
		{HF: "model.layers.{bid}.self_attn.g_proj", GGUF: "blk.{bid}.attn_gate"},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
	}, parts.MLPRows),
	Graph: &graph.Model{
		Dims: graph.Dims{
			"swa":        "if(n_swa != 0 and @attention.sliding_window_pattern != 0, 1, 0)",
			"n_rot_full": "@rope.dimension_count or n_embd_head_k",
			"n_rot":      "if(swa, @rope.dimension_count_swa or n_rot_full, n_rot_full)",
		},
		Norm: graph.RMS, Final: parts.OutputNorm, Head: graph.LM{},
		Layer: parts.PreNorm(parts.LocalGlobal(graph.Sliding{},
			graph.Attention{Steps: []graph.HeadStep{parts.DefaultLocalNeoX}, After: []graph.OutStep{graph.OutGate{}},
				Window: parts.Window},
			graph.Attention{Steps: []graph.HeadStep{parts.NeoX}, After: []graph.OutStep{graph.OutGate{}}},
		), parts.GeGLU),
	},
}

// sparkPattern is parts.SlidingLayers, and refuses other layer types than the two.
func sparkPattern(c *config.View) (v gguf.Value, ok bool, err error) {
	kinds, _, err := c.LayerTypes()
	for i, k := range kinds {
		if k != parts.Sliding && k != "full_attention" {
			return v, false, fault.Errorf(fault.Unsupported,
				"%s: layer %d is of kind %q, want sliding_attention or full_attention", config.ConfigFile, i, k)
		}
	}
	if err != nil {
		return v, false, err
	}
	return parts.SlidingLayers(c)
}

// sparkRopeDims writes the number of rotary dimensions of one attention type.
func sparkRopeDims(kind string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		dim, err := c.HeadDim()
		if err != nil {
			return gguf.Value{}, false, err
		}
		part, err := c.RopeRoot().Sub(kind).RequireFloat("partial_rotary_factor")
		if err != nil {
			return gguf.Value{}, false, err
		}
		n, err := config.Truncate(float64(dim) * part)
		return table.Uint32Of(n, true, err)
	}
}
