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

var _ = register(nemotron)

// nemotron is Nvidia's Nemotron 3 and 4 and Minitron. Source: the Nemotron class
// of the reference's converter.
var nemotron = &table.Arch{
	Name:      "nemotron",
	Classes:   []string{"NemotronForCausalLM"},
	Body:      table.Body{Classes: []string{"NemotronModel"}, Prefix: "model."},
	Tokenizer: tokenizer.SentencePiece{Then: tokenizer.Steps{parts.TokenID("padding", 0), parts.TokenID("unknown", 1)}},
	Fused:     table.FusedQKV,
	Metadata: slices.Concat(parts.CommonRows, []table.Row{
		parts.UintRow("vocab_size", "vocab_size"),
		parts.FloatRow("attention.layer_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon",
			"norm_epsilon", "norm_eps"),
		{Key: "rope.dimension_count", Derive: parts.RopeShareOfHidden(0)},
		{Key: "rope.scaling.type", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			_, linear, err := nemotronFactor(c)
			if linear {
				return gguf.String("linear"), err == nil, err
			}
			return gguf.String("none"), err == nil, err
		}},
		{Key: "rope.scaling.factor", Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
			return table.Float32Of(nemotronFactor(c))
		}},
	}),
	Expect: []table.Expect{parts.Expect("hidden_act", "relu2")},
	Unused: append([]string{"rope_percent"}, parts.BiasKeys...),
	Tensors: slices.Concat(parts.EmbedRows[:1], parts.EmbedRows[2:],
		parts.WithTransform(parts.PlusOne, parts.EmbedRows[1:2]), parts.WithTransform(parts.PlusOne, parts.NormRows),
		[]table.TensorRow{
			{HF: "model.norm.bias", GGUF: "output_norm.bias", Exact: true},
			{HF: "model.layers.{bid}.input_layernorm.bias", GGUF: "blk.{bid}.attn_norm.bias", Exact: true},
			{HF: "model.layers.{bid}.post_attention_layernorm.bias", GGUF: "blk.{bid}.ffn_norm.bias", Exact: true},
		},
		parts.AttentionRows(table.MayBias, table.MayBias), parts.WithBias(table.MayBias, parts.MLPRows[1:])),
	Graph: &graph.Model{
		Norm: graph.LayerNorm, Layer: parts.PreNorm(parts.GQA(parts.NeoX), parts.ReLU2MLP), Final: parts.OutputNorm,
		Head: graph.LM{}, Unread: []string{"attention.layer_norm_rms_epsilon"},
	},
}

// nemotronFactor returns the factor of linear RoPE scaling; linear is false without one.
func nemotronFactor(c *config.View) (factor float64, linear bool, err error) {
	if factor, linear, err = c.Float("factor"); err != nil || linear && factor != 0 {
		return factor, linear, err
	}
	factor, linear, err = c.Rope().Float("factor")
	return factor, linear, err
}
