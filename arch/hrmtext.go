package arch

import (
	"math"
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

var _ = register(hrmText)

// hrmText is Sapient's HRM-Text: two stacks of layers, L and H, which run several times. The file has the layers of L,
// then of H; its block_count is the number of layers over all passes. Norms have no weights. Source: the HrmText class
// of the reference's converter.
var hrmText = &table.Arch{
	Name:       "hrm_text",
	Classes:    []string{"HrmTextForCausalLM"},
	Tokenizer:  tokenizer.BPE{},
	BlockCount: func(c *config.View) (int64, error) { n, err := hrmLayers(c); return 2 * n, err },
	Metadata: slices.Concat(parts.Override(parts.CommonRows, table.Row{Key: table.KeyBlockCount, Derive: hrmPasses}),
		[]table.Row{
			{Key: "rope.dimension_count", Derive: parts.RopeDimensionCount},
			parts.FloatRow("embedding_scale", "embedding_scale"),
			{Key: "hrm.layers_per_stack", Derive: func(c *config.View) (gguf.Value, bool, error) {
				n, err := hrmLayers(c)
				return table.Uint32Of(n, true, err)
			}},
			parts.UintRow("hrm.h_cycles", "H_cycles"),
			parts.UintRow("hrm.l_cycles", "L_cycles"),
			{Key: "hrm.prefix_lm", Derive: func(c *config.View) (gguf.Value, bool, error) {
				b, _, err := c.Bool("prefix_lm")
				return gguf.Bool(b), true, err
			}},
		}),
	Expect: []table.Expect{parts.SiLU},
	Unused: append([]string{"L_bp_cycles", "num_hidden_layers"}, parts.BiasKeys...),
	Rename: []table.Rename{
		{Prefix: "model.L_module.layers.", With: "model.layers."},
		{Prefix: "model.H_module.layers.", With: "model.layers.{bid}.", Number: parts.NumberAfter(hrmLayers)},
	},
	Tensors: []table.TensorRow{
		{HF: "model.embed_tokens", GGUF: "token_embd"},
		{HF: "lm_head", GGUF: "output", Optional: true},
		{HF: "model.z_L_init", GGUF: "hrm.z_l_init", Exact: true},
		{HF: "model.layers.{bid}.self_attn.q_proj", GGUF: "blk.{bid}.attn_q"},
		{HF: "model.layers.{bid}.self_attn.k_proj", GGUF: "blk.{bid}.attn_k"},
		{HF: "model.layers.{bid}.self_attn.v_proj", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.layers.{bid}.self_attn.gate_proj", GGUF: "blk.{bid}.attn_gate"},
		{HF: "model.layers.{bid}.attn.gqkv_proj", Optional: true, Split: []table.Part{
			{GGUF: "blk.{bid}.attn_gate", Transform: quarter(0)},
			{GGUF: "blk.{bid}.attn_q", Transform: quarter(1)},
			{GGUF: "blk.{bid}.attn_k", Transform: quarter(2)},
			{GGUF: "blk.{bid}.attn_v", Transform: quarter(3)},
		}},
		{HF: "model.layers.{bid}.self_attn.o_proj", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.layers.{bid}.attn.o_proj", GGUF: "blk.{bid}.attn_output", Optional: true},
		{HF: "model.layers.{bid}.mlp.gate_proj", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.layers.{bid}.mlp.up_proj", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.layers.{bid}.mlp.gate_up_proj", Optional: true, Split: []table.Part{
			{GGUF: "blk.{bid}.ffn_gate", Transform: parts.Half(0)},
			{GGUF: "blk.{bid}.ffn_up", Transform: parts.Half(1)},
		}},
		{HF: "model.layers.{bid}.mlp.down_proj", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Embed: graph.Embedding{Scale: "@embedding_scale or 1"},
		Norm:  graph.RMS, Head: graph.LM{}, Loop: graph.HRM{},
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Bare, Part: graph.Attention{Steps: []graph.HeadStep{parts.NeoX},
				After: []graph.OutStep{graph.OutGate{}}}},
			graph.Residual{Pre: graph.Bare, Part: parts.SwiGLU},
		},
		Unread: []string{"hrm.prefix_lm"},
	},
}

// hrmLayers returns the number of layers of a stack.
func hrmLayers(c *config.View) (int64, error) {
	n, err := c.IntOr(0, "num_layers_per_stack")
	if err == nil && n == 0 {
		n, err = c.Require("num_hidden_layers")
	}
	if err == nil && (n < 1 || n > config.MaxBlocks) {
		err = config.WrongType("num_hidden_layers", "a number of layers", n)
	}
	return n, err
}

// hrmPasses returns the number of layers over all passes: in each cycle of H, the layers of L in each cycle of L, then
// the layers of H.
func hrmPasses(c *config.View) (v gguf.Value, ok bool, err error) {
	n, err := hrmLayers(c)
	if err != nil {
		return v, false, err
	}
	for i, key := range []string{"H_cycles", "L_cycles"} {
		cycles, err := c.Require(key)
		if err == nil && (cycles < 1 || cycles > math.MaxInt16) {
			err = config.WrongType(key, "a small number", cycles)
		}
		if err != nil {
			return v, false, err
		}
		n *= cycles + int64(i)
	}
	return table.Uint32Of(n, true, nil)
}

// quarter takes one of four equal parts of the rows.
func quarter(i int64) *table.Transform {
	return &table.Transform{Name: "quarter", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
		ne := s.NE()
		if len(ne) != 2 || ne[1]%4 != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of four parts", gguf.Shape(ne))
		}
		return rows.Slice(s, 1, i*ne[1]/4, (i+1)*ne[1]/4)
	}}
}
