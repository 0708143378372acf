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

var _ = register(chameleon)

// chameleon is Meta's Chameleon, which reads and generates images as tokens. The VQ-VAE between images and tokens is
// dropped. Source: the Chameleon class of the reference's converter.
var chameleon = &table.Arch{
	Name:      "chameleon",
	Classes:   []string{"ChameleonForConditionalGeneration", "ChameleonForCausalLM"},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows,
		[]table.Row{{Key: "swin_norm", Derive: func(c *config.View) (gguf.Value, bool, error) {
			b, _, err := c.Bool("swin_norm")
			return gguf.Bool(b), true, err
		}}}),
	Expect: []table.Expect{parts.SiLU},
	Unused: slices.Concat(parts.MultimodalKeys, []string{"model_parallel_size", "vocabulary_map", "vq_config",
		"mask_image_logits"}),
	Drop: []table.Drop{{Prefix: "model.vqmodel", Why: table.OtherPart}},
	Tensors: slices.Concat(parts.EmbedRows, parts.NormRows, parts.PermutedRows(table.MayBias), []table.TensorRow{
		{HF: "model.layers.{bid}.self_attn.q_norm", GGUF: "blk.{bid}.attn_q_norm", Bias: table.MayBias,
			Transform: normOfFirstHead("norm-of-first-head-q", (*config.View).Heads)},
		{HF: "model.layers.{bid}.self_attn.k_norm", GGUF: "blk.{bid}.attn_k_norm", Bias: table.MayBias,
			Transform: normOfFirstHead("norm-of-first-head-k", (*config.View).HeadsKV)},
	}, parts.MLPRows),
	Graph: chameleonGraph(),
}

// chameleonGraph has layers of two kinds. With swin_norm, norms are of outputs, and the FFN reads the normalized
// output of attention instead of the stream, as llama.cpp has it.
func chameleonGraph() *graph.Model {
	attention := graph.Attention{Steps: []graph.HeadStep{graph.QKLayerNorm{Eps: "0.00001"}, parts.Interleaved}}
	m := parts.Decoder(graph.RMS, attention, parts.SwiGLU)
	m.Layer = []graph.Step{graph.ChooseStep{
		{In: graph.Where("(@swin_norm or 0) = 0"), Steps: m.Layer},
		{In: graph.Every{}, Steps: []graph.Step{
			graph.Residual{Part: attention, Post: graph.Norm{Name: "attn_norm"}},
			graph.FromUpdate{Residual: graph.Residual{Part: parts.SwiGLU, Post: graph.Norm{Name: "ffn_norm"}}},
		}},
	}}
	m.Head = graph.LM{Never: graph.TokenRange{From: 4, End: 8196}} // tokens of images
	return m
}

// normOfFirstHead gives every head the weights of the first one, in the order of
// elements that the permuted projections have: [heads, dim] stays [heads, dim].
func normOfFirstHead(name string, count func(*config.View) (int64, error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		heads, err := count(l.View)
		if err != nil {
			return nil, err
		}
		ne := s.NE()
		if len(ne) != 2 || ne[0]%2 != 0 || heads < 1 || heads > config.MaxHeadDim {
			return nil, fault.Errorf(fault.Broken, "dimensions %s, want heads of an even number of elements",
				gguf.Shape(ne))
		}
		if s, err = rows.Slice(s, 1, 0, 1); err != nil {
			return nil, err
		}
		if s, err = rows.Reshape(s, []int64{ne[0] / 2, 2}); err != nil {
			return nil, err
		}
		if s, err = rows.Transpose(s); err != nil {
			return nil, err
		}
		if s, err = rows.Reshape(s, []int64{ne[0], 1}); err != nil {
			return nil, err
		}
		return rows.Gather(s, []int64{ne[0], heads}, func(int64) int64 { return 0 })
	}}
}
