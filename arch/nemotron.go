package arch

import (
	"slices"

	"ggforge/gguf"
	"ggforge/tokenizer"
)

// nemotron is Nvidia's Nemotron 3 and 4 and Minitron. Source: the Nemotron class
// of the reference's converter.
var nemotron = &Arch{
	Name:      "nemotron",
	Classes:   []string{"NemotronForCausalLM"},
	Tokenizer: tokenizer.ClassNemotron,
	Metadata: slices.Concat(commonRows, []Row{
		uintRow("vocab_size", "vocab_size"),
		floatRow("attention.layer_norm_epsilon", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps"),
		{Key: "rope.dimension_count", Derive: ropeShareOfHidden(0)},
		{Key: "rope.scaling.type", Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
			_, linear, err := c.nemotronFactor()
			if linear {
				return gguf.String("linear"), err == nil, err
			}
			return gguf.String("none"), err == nil, err
		}},
		{Key: "rope.scaling.factor", Derive: func(c *Config) (v gguf.Value, ok bool, err error) {
			return float32Of(c.nemotronFactor())
		}},
	}),
	Expect: []Expect{{"hidden_act", []string{"relu2"}}},
	Unused: append([]string{"rope_percent"}, biasKeys...),
	Tensors: slices.Concat(embedRows[:1], embedRows[2:], transformed(plusOne, embedRows[1:2]), transformed(plusOne, normRows),
		[]TensorRow{
			{HF: "model.norm.bias", GGUF: "output_norm.bias", Exact: true},
			{HF: "model.layers.{bid}.input_layernorm.bias", GGUF: "blk.{bid}.attn_norm.bias", Exact: true},
			{HF: "model.layers.{bid}.post_attention_layernorm.bias", GGUF: "blk.{bid}.ffn_norm.bias", Exact: true},
		},
		attentionRows(MayBias, MayBias), withBias(MayBias, mlpRows[1:])),
}

// nemotronFactor is the factor of linear scaling; linear is false without one.
func (c *Config) nemotronFactor() (factor float64, linear bool, err error) {
	if factor, linear, err = c.Float("factor"); err != nil || linear && factor != 0 {
		return factor, linear, err
	}
	factor, linear, err = c.Rope().Float("factor")
	return factor, linear, err
}
