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

var _ = register(talkie)

// talkie is a model of texts from before 1931, with scalar gains in place of norm weights. Its RoPE rotates in the
// opposite direction; negating half of Q and K compensates for that. Source: the Talkie class of the reference's
// converter.
var talkie = &table.Arch{
	Name:      "talkie",
	Classes:   []string{"TalkieForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		// overrides the config's
		{Key: "attention.layer_norm_rms_epsilon", Const: gguf.Float32(0x1p-23)},
	}),
	Expect: []table.Expect{parts.SiLU},
	Tensors: []table.TensorRow{
		{HF: "model.embed", GGUF: "token_embd"},
		{HF: "lm_head", GGUF: "output.weight", Exact: true, Optional: true},
		{HF: "lm_head.weight", GGUF: "output.weight", Exact: true},
		{HF: "lm_head_gain.w_g", Exact: true, GGUF: "logit_scale",
			Kind: &table.Meta{Key: "talkie.logit_scale", Make: scalarOf}},
		{HF: "model.blocks.{bid}.attn.attn_query", GGUF: "blk.{bid}.attn_q", Transform: negateSecondHalf},
		{HF: "model.blocks.{bid}.attn.attn_key", GGUF: "blk.{bid}.attn_k", Transform: negateSecondHalf},
		{HF: "model.blocks.{bid}.attn.attn_value", GGUF: "blk.{bid}.attn_v"},
		{HF: "model.blocks.{bid}.attn.attn_resid", GGUF: "blk.{bid}.attn_output"},
		{HF: "model.blocks.{bid}.attn.head_gain.head_g", Exact: true, GGUF: "blk.{bid}.attn_q_norm.weight",
			Transform: parts.Column},
		{HF: "model.blocks.{bid}.attn_gain.a_g", Exact: true, GGUF: "blk.{bid}.attn_output.scale"},
		{HF: "model.blocks.{bid}.mlp_gain.a_g", Exact: true, GGUF: "blk.{bid}.ffn_down.scale"},
		{HF: "model.blocks.{bid}.embed_skip.a_g", Exact: true, GGUF: "blk.{bid}.layer_output_scale.weight"},
		{HF: "model.blocks.{bid}.mlp.mlp_gate", GGUF: "blk.{bid}.ffn_gate"},
		{HF: "model.blocks.{bid}.mlp.mlp_linear", GGUF: "blk.{bid}.ffn_up"},
		{HF: "model.blocks.{bid}.mlp.mlp_resid", GGUF: "blk.{bid}.ffn_down"},
	},
	Graph: &graph.Model{
		Embed: graph.Embedding{Norm: graph.Bare},
		Norm:  graph.RMS,
		Layer: []graph.Step{
			graph.Residual{Pre: graph.Bare, Part: parts.GQA(parts.NeoX, graph.UnitNorm{}, graph.QueryGain{})},
			graph.Residual{Pre: graph.Bare, Part: parts.SwiGLU},
			graph.AddEmbedding{Tensor: "layer_output_scale"},
		},
		Final: []graph.Step{graph.Normalize{Norm: graph.Bare}},
		Head:  graph.LM{Scale: "@logit_scale"},
	},
}

// scalarOf returns the value of a tensor of one element.
func scalarOf(_ *config.View, layers [][]float32) (v gguf.Value, err error) {
	all := slices.Concat(layers...)
	if len(all) != 1 {
		return v, fault.Errorf(fault.Broken, "%d elements, want one", len(all))
	}
	return gguf.Float32(all[0]), nil
}

// negateSecondHalf negates the second half of each head.
var negateSecondHalf = &table.Transform{Name: "other-way-round",
	Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		dim, err := l.Require("head_dim")
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || dim < 2 || dim%2 != 0 || ne[1]%dim != 0 {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want rows of heads of %d", gguf.Shape(ne), dim)
		}
		heads, err := rows.Reshape(s, []int64{ne[0], dim, ne[1] / dim})
		if err != nil {
			return nil, err
		}
		first, err := rows.Slice(heads, 1, 0, dim/2)
		if err != nil {
			return nil, err
		}
		second, err := rows.Slice(heads, 1, dim/2, dim)
		if err != nil {
			return nil, err
		}
		joined, err := rows.ConcatRows([]rows.Source{first, rows.Map(second, rows.Scale(-1))})
		if err != nil {
			return nil, err
		}
		return rows.Reshape(joined, ne)
	}}
