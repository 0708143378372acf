package arch

import (
	"encoding/json"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// mellum is JetBrains' Mellum 2. Source: the Mellum class of the
// reference's converter.
var mellum = &Arch{
	Name:      "mellum",
	Classes:   []string{"MellumForCausalLM"},
	Tokenizer: tokenizer.ClassGPT2,
	Metadata: slices.Concat(commonRows, []Row{
		optional(uintRow("expert_feed_forward_length", "moe_intermediate_size")),
		{Key: "attention.sliding_window", Derive: ifSliding(func(c *Config) (gguf.Value, bool, error) { return uint32Of(c.Int("sliding_window")) })},
		{Key: "attention.sliding_window_pattern", Derive: ifSliding(slidingLayers)},
		optional(boolRow("expert_weights_norm", "norm_topk_prob")),
	}),
	RopePerAttention: true,
	Expect:           []Expect{silu},
	Unused:           append([]string{"layer_types", "max_window_layers", "sliding_window", "use_sliding_window", "mlp_only_layers", "mlp_layer_types", "decoder_sparse_step"}, biasKeys...),
	Tensors:          slices.Concat(embedRows, normRows, attentionRows(NoBias, NoBias), qkNormRows, expertRows),
}

// mellumRope gives configs without rope settings those of the published model.
func mellumRope(c *Config) error {
	if c.values["rope_parameters"] == nil || c.defaulted["rope_parameters"] {
		c.rope = map[string]any{
			"full_attention":    map[string]any{"rope_type": "default", "rope_theta": json.Number("500000")},
			"sliding_attention": map[string]any{"rope_type": "default", "rope_theta": json.Number("10000")},
		}
	}
	return nil
}

// allFull is a default of layer_types: every layer sees everything.
func allFull(v values) (any, error) {
	return layerTypes(v, func(int64) string { return "full_attention" })
}

// ifSliding is d for models with a sliding window.
func ifSliding(d Derive) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		use, said, err := c.Bool("use_sliding_window")
		if err != nil || said && !use || !c.Has("sliding_window") {
			return v, false, err
		}
		return d(c)
	}
}

// slidingLayers tells which layers see a window only.
func slidingLayers(c *Config) (v gguf.Value, ok bool, err error) {
	types, ok, err := c.Strings("layer_types")
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"layer_types\"", ConfigFile)
	}
	if err != nil {
		return v, false, err
	}
	var sliding []bool
	for _, t := range types {
		sliding = append(sliding, t == "sliding_attention")
	}
	return bools(sliding), len(sliding) > 0, nil
}
