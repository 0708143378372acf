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

var _ = register(jais2, jais)

// jais2 is Inception's Jais 2. Source: the Jais2 class of the
// reference's converter.
var jais2 = &table.Arch{
	Name:      "jais2",
	Classes:   []string{"Jais2ForCausalLM"},
	Body:      table.Body{Classes: []string{"Jais2Model"}, Prefix: "model."},
	Tokenizer: tokenizer.BPE{},
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(parts.CommonRows, []table.Row{parts.RopeDimensionRow}),
	Expect:    []table.Expect{parts.Expect("hidden_act", "relu2")},
	Unused:    parts.BiasKeys,
	Tensors: slices.Concat(parts.EmbedRows[:1], parts.EmbedRows[2:],
		parts.WithBias(table.NeedBias, parts.EmbedRows[1:2]), parts.WithBias(table.NeedBias, parts.NormRows),
		parts.AttentionRows(table.MayBias, table.MayBias), parts.WithBias(table.MayBias, parts.MLPRows[1:])),
	Graph: parts.Decoder(graph.LayerNorm, parts.GQA(parts.NeoX), parts.ReLU2MLP),
}

// jais is Inception's Jais, a GPT-2 with gated FFNs and ALiBi. Source: the Jais class of the reference's converter.
var jais = &table.Arch{
	Name:        "jais",
	Classes:     []string{"JAISLMHeadModel"},
	Tokenizer:   tokenizer.BPE{},
	Fused:       table.FusedQKV,
	HeaderFirst: []table.Row{{Key: "attention.max_alibi_bias", Const: gguf.Float32(8)}},
	Metadata: []table.Row{
		parts.UintRow(table.KeyBlockCount, config.BlockCountKeys...),
		parts.UintRow("context_length", "n_positions"),
		parts.UintRow("embedding_length", "n_embd"),
		parts.UintRow("feed_forward_length", "n_inner"),
		parts.UintRow(table.KeyHeadCount, "n_head"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		parts.FileTypeRow,
	},
	Expect: []table.Expect{parts.Expect("activation_function", "swiglu"),
		parts.Expect("position_embedding_type", "alibi"), parts.Expect("scale_attn_weights", "true")},
	// runtimes use an attention scale of 1/head size for this architecture
	Unused: []string{"mup_scale_qk_dot_by_d", "scale_qk_dot_by_d", "reorder_and_upcast_attn",
		"scale_attn_by_inverse_layer_idx", "alibi_scaling"},
	Tensors: []table.TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd",
			Transform: jaisScale("scale-embeddings", func(c *config.View) (float64, error) {
				f, ok, err := c.Float("mup_embeddings_scale", "embeddings_scale")
				return f, jaisHas(ok, err, "embeddings_scale")
			})},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: table.NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true,
			Transform: jaisScale("scale-output", func(c *config.View) (float64, error) {
				alpha, ok, err := c.Float("mup_output_alpha")
				if err != nil {
					return 0, err
				}
				if !ok {
					f, ok, err := c.Float("width_scale")
					return f, jaisHas(ok, err, "width_scale")
				}
				width, ok, err := c.Float("mup_width_scale")
				return alpha * width, jaisHas(ok, err, "mup_width_scale")
			})},
		{HF: "transformer.relative_pe.slopes", GGUF: "relative_pe.slopes", Exact: true, Optional: true,
			Kind: &table.Meta{Key: "jais.attention.max_alibi_bias", Make: jaisBias}},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: parts.Transpose,
			Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Transform: parts.Transpose,
			Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Transform: parts.Transpose,
			Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc2", GGUF: "blk.{bid}.ffn_gate", Transform: parts.Transpose,
			Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Transform: parts.Transpose,
			Bias: table.NeedBias},
		{HF: "transformer.h.{bid}.attn.bias"}, // the causal mask
	},
	Graph: parts.Decoder(graph.LayerNorm, graph.Attention{Scale: "1.0 / n_embd_head_k", Scores: parts.KeyALiBi},
		parts.SwiGLU),
}

func jaisHas(ok bool, err error, key string) error {
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", config.ConfigFile, key)
	}
	return err
}

// jaisScale multiplies a matrix by the value of a key.
func jaisScale(name string, factor func(*config.View) (float64, error)) *table.Transform {
	return &table.Transform{Name: name, Forward: func(l table.Layer, s rows.Source) (rows.Source, error) {
		f, err := factor(l.View)
		if err != nil {
			return nil, err
		}
		return rows.Map(s, rows.Scale(float32(f))), nil
	}}
}

// jaisBias writes the maximum ALiBi bias, computed from the slope of the first head.
func jaisBias(c *config.View, layers [][]float32) (gguf.Value, error) {
	heads, err := c.Require("n_head")
	if err != nil {
		return gguf.Value{}, err
	}
	first := float64(layers[0][0])
	if heads <= 0 || heads > 1<<20 || !(first > 0) {
		return gguf.Value{}, fault.Errorf(fault.Broken, "slope %v of the first of %d heads", first, heads)
	}
	closest := math.Exp2(math.Floor(math.Log2(float64(heads))))
	return gguf.Float32(float32(-math.RoundToEven(math.Log2(first) * closest))), nil
}
