package arch

import (
	"math"
	"slices"

	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/internal/kernel/torchmath"
	"ggforge/rows"
	"ggforge/tokenizer"
)

var _ = register(bitnet)

// bitnet is BitNet b1.58 as 1bitLLM publishes it: in each forward pass the model rounds a matrix to -1, 0 and 1 times
// one scale; the file has the rounded weights. Source: the Bitnet class of the reference's converter.
var bitnet = &table.Arch{
	Name:      "bitnet",
	Classes:   []string{"BitnetForCausalLM", "BitNetForCausalLM"},
	Body:      table.Body{Classes: []string{"BitNetModel"}, Prefix: "model."},
	Tokenizer: tokenizer.SentencePiece{},
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		{Key: "rope.scaling.type", Const: gguf.String("linear")},
		{Key: "rope.scaling.factor", Const: gguf.Float32(1)},
	}),
	Expect: []table.Expect{parts.SiLU, parts.Expect("weight_bits", "1"), parts.Expect("input_bits", "8")},
	Unused: parts.BiasKeys,
	Tensors: slices.Concat(parts.EmbedRows[:2], parts.NormRows,
		parts.WithTransform(ternary, slices.Concat(parts.AttentionRows(table.NoBias, table.NoBias), parts.MLPRows)),
		[]table.TensorRow{
			{HF: "model.layers.{bid}.self_attn.inner_attn_ln", GGUF: "blk.{bid}.attn_sub_norm"},
			{HF: "model.layers.{bid}.mlp.ffn_layernorm", GGUF: "blk.{bid}.ffn_sub_norm"},
		}),
	Graph: parts.Decoder(graph.RMS, graph.Attention{Steps: []graph.HeadStep{parts.NeoX},
		After: []graph.OutStep{graph.OutNorm{Name: "attn_sub_norm"}}},
		graph.FFN{Act: graph.SiLU, Norm: graph.Norm{Name: "ffn_sub_norm"}}),
}

// ternary rounds weights to -1, 0 and 1 times a scale, the mean of their absolute values. All steps are float32, and
// the scale is inverted twice as in the model's code. PyTorch's mean depends on its number of threads, in the last
// bits; this is the mean of one thread.
var ternary = &table.Transform{Name: "ternary", Forward: func(_ table.Layer, s rows.Source) (rows.Source, error) {
	whole := rows.Map(s, func([]float32) {})
	return rows.Prepared(s.NE(), whole.Type(), func() (rows.Source, error) {
		n := gguf.Rows(s.NE()) * s.NE()[0]
		sum := torchmath.NewSum(n)
		if err := rows.Each(s, func(x []float32) {
			for i, v := range x {
				x[i] = float32(math.Abs(float64(v)))
			}
			sum.Add(x)
		}); err != nil {
			return nil, err
		}
		scale := max(sum.Value()/float32(n), 1e-5)
		inverse := 1 / scale
		return rows.Map(s, func(x []float32) {
			for i, v := range x {
				q := float32(math.RoundToEven(float64(v * inverse)))
				x[i] = min(max(q, -1), 1) / inverse
			}
		}), nil
	}), nil
}}
