package arch

import (
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
	"ggforge/tokenizer"
)

// jais2 is Inception's Jais 2. Source: the Jais2 class of the
// reference's converter.
var jais2 = &Arch{
	Name:      "jais2",
	Classes:   []string{"Jais2ForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata:  slices.Concat(commonRows, []Row{{Key: "rope.dimension_count", Derive: ropeDimensionCount}}),
	Expect:    []Expect{{"hidden_act", []string{"relu2"}}},
	Unused:    biasKeys,
	Tensors: slices.Concat(embedRows[:1], embedRows[2:], withBias(NeedBias, embedRows[1:2]), withBias(NeedBias, normRows),
		attentionRows(MayBias, MayBias), withBias(MayBias, mlpRows[1:])),
}

// jais is Inception's Jais, a GPT-2 with gated feed-forward parts and ALiBi.
// Source: the Jais class of the reference's converter.
var jais = &Arch{
	Name:      "jais",
	Classes:   []string{"JAISLMHeadModel"},
	Tokenizer: tokenizer.ClassGPT2,
	Early:     []Row{{Key: "attention.max_alibi_bias", Const: gguf.Float32(8)}},
	Metadata: []Row{
		uintRow(keyBlockCount, blockCountKeys...),
		uintRow("context_length", "n_positions"),
		uintRow("embedding_length", "n_embd"),
		uintRow("feed_forward_length", "n_inner"),
		uintRow(keyHeadCount, "n_head"),
		floatRow("attention.layer_norm_epsilon", "layer_norm_epsilon"),
		fileTypeRow,
	},
	Expect: []Expect{{"activation_function", []string{"swiglu"}}, {"position_embedding_type", []string{"alibi"}}, {"scale_attn_weights", []string{"true"}}},
	// the scale of attention is 1/heads by the name of the architecture
	Unused: []string{"mup_scale_qk_dot_by_d", "scale_qk_dot_by_d", "reorder_and_upcast_attn", "scale_attn_by_inverse_layer_idx", "alibi_scaling"},
	Tensors: []TensorRow{
		{HF: "transformer.wte", GGUF: "token_embd", Transform: jaisScale("scale-embeddings", func(c *Config) (float64, error) {
			f, ok, err := c.Float("mup_embeddings_scale", "embeddings_scale")
			return f, jaisHas(ok, err, "embeddings_scale")
		})},
		{HF: "transformer.ln_f", GGUF: "output_norm", Bias: NeedBias},
		{HF: "lm_head", GGUF: "output", Optional: true, Transform: jaisScale("scale-output", func(c *Config) (float64, error) {
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
			Meta: &Meta{Key: "jais.attention.max_alibi_bias", Make: jaisBias}},
		{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm", Bias: NeedBias},
		{HF: "transformer.h.{bid}.attn.c_attn", GGUF: "blk.{bid}.attn_qkv", Transform: transpose, Bias: NeedBias},
		{HF: "transformer.h.{bid}.attn.c_proj", GGUF: "blk.{bid}.attn_output", Transform: transpose, Bias: NeedBias},
		{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm", Bias: NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc", GGUF: "blk.{bid}.ffn_up", Transform: transpose, Bias: NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_fc2", GGUF: "blk.{bid}.ffn_gate", Transform: transpose, Bias: NeedBias},
		{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down", Transform: transpose, Bias: NeedBias},
		{HF: "transformer.h.{bid}.attn.bias"}, // the causal mask
	},
}

func jaisHas(ok bool, err error, key string) error {
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", ConfigFile, key)
	}
	return err
}

// jaisScale multiplies a matrix by a number of the config.
func jaisScale(name string, factor func(*Config) (float64, error)) *Transform {
	return &Transform{Name: name, Forward: func(l Layer, s rows.Source) (rows.Source, error) {
		f, err := factor(l.Config)
		if err != nil {
			return nil, err
		}
		return rows.Map(s, rows.Scale(float32(f))), nil
	}}
}

// jaisBias is the greatest bias of ALiBi, found from the slope of the first head.
func jaisBias(c *Config, layers [][]float32) (gguf.Value, error) {
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
