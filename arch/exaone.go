package arch

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

// exaone and exaone4 are LG's EXAONE 3, 3.5 and 4. Source: the classes of
// exaone.py of the reference's converter.
var (
	exaone = &Arch{
		Name:      "exaone",
		Classes:   []string{"ExaoneForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(commonRows, []Row{
			{Key: "rope.dimension_count", Derive: ropeShareOfHead(1)},
			// the config calls it layer_norm_epsilon; no runtime loads the model without it
			{Key: "attention.layer_norm_rms_epsilon", Deviates: true, Derive: func(c *Config) (gguf.Value, bool, error) {
				return float32Of(c.Float("rms_norm_eps", "norm_eps", "layer_norm_epsilon"))
			}},
		}),
		Expect: []Expect{{"activation_function", silu.Values}},
		Unused: append([]string{"embed_dropout"}, biasKeys...),
		Tensors: []TensorRow{
			{HF: "transformer.wte", GGUF: "token_embd"},
			{HF: "transformer.ln_f", GGUF: "output_norm"},
			{HF: "lm_head", GGUF: "output", Optional: true},
			{HF: "transformer.h.{bid}.ln_1", GGUF: "blk.{bid}.attn_norm"},
			{HF: "transformer.h.{bid}.ln_2", GGUF: "blk.{bid}.ffn_norm"},
			{HF: "transformer.h.{bid}.attn.attention.q_proj", GGUF: "blk.{bid}.attn_q"},
			{HF: "transformer.h.{bid}.attn.attention.k_proj", GGUF: "blk.{bid}.attn_k"},
			{HF: "transformer.h.{bid}.attn.attention.v_proj", GGUF: "blk.{bid}.attn_v"},
			{HF: "transformer.h.{bid}.attn.attention.out_proj", GGUF: "blk.{bid}.attn_output"},
			{HF: "transformer.h.{bid}.mlp.c_fc_0", GGUF: "blk.{bid}.ffn_gate"},
			{HF: "transformer.h.{bid}.mlp.c_fc_1", GGUF: "blk.{bid}.ffn_up"},
			{HF: "transformer.h.{bid}.mlp.c_proj", GGUF: "blk.{bid}.ffn_down"},
		},
		Extra: llama.Extra,
	}
	exaone4 = &Arch{
		Name:      "exaone4",
		Classes:   []string{"Exaone4ForCausalLM"},
		Tokenizer: tokenizer.ClassGPT2,
		Metadata: slices.Concat(commonRows, []Row{
			uintRow("vocab_size", "vocab_size"),
			optional(uintRow("attention.sliding_window", "sliding_window")),
			{Key: "attention.sliding_window_pattern", Derive: exaone4Pattern},
		}),
		Expect: []Expect{silu},
		Unused: append([]string{"cache_implementation", "sliding_window_pattern"}, biasKeys...),
		Tensors: slices.Concat(embedRows, attentionRows(NoBias, NoBias), qkNormRows, mlpRows, []TensorRow{
			{HF: "model.layers.{bid}.post_attention_layernorm", GGUF: "blk.{bid}.post_attention_norm"},
			{HF: "model.layers.{bid}.post_feedforward_layernorm", GGUF: "blk.{bid}.post_ffw_norm"},
		}),
		Extra: llama.Extra,
	}
)

// exaone4Pattern tells which layers see a window only. The config has it as a list
// of layers, as letters to be repeated, or as the distance of layers that see
// everything.
func exaone4Pattern(c *Config) (v gguf.Value, ok bool, err error) {
	if !c.Has("sliding_window") {
		return v, false, nil
	}
	types, ok, err := c.Strings("layer_types")
	if err != nil {
		return v, false, err
	}
	var sliding []bool
	if ok {
		for _, t := range types {
			sliding = append(sliding, t == "sliding_attention")
		}
		return bools(sliding), len(sliding) > 0, nil
	}
	of, ok, err := c.slidingPattern()
	if err != nil || !ok {
		return v, false, err
	}
	n, err := (&Arch{}).Blocks(c)
	for i := range n {
		sliding = append(sliding, of(i))
	}
	return bools(sliding), n > 0, err
}

// slidingPattern reads the key sliding_window_pattern; of tells whether a layer
// sees a window only.
func (c *Config) slidingPattern() (of func(bid int64) bool, ok bool, err error) {
	const key = "sliding_window_pattern"
	switch v := c.Value(key).(type) {
	case nil:
		return nil, false, nil
	case string:
		if v == "" {
			return nil, false, nil
		}
		return func(bid int64) bool { return v[bid%int64(len(v))] == 'L' }, true, nil
	}
	n, err := c.Require(key)
	if err == nil && n <= 0 {
		err = fault.Errorf(fault.Broken, "%s: key %q: want a positive number, found %d", ConfigFile, key, n)
	}
	return func(bid int64) bool { return (bid+1)%n != 0 }, true, err
}

// bools is a list of flags.
func bools(list []bool) gguf.Value {
	values := make([]gguf.Value, len(list))
	for i, b := range list {
		values[i] = gguf.Bool(b)
	}
	return gguf.Array(gguf.BoolType, values...)
}

// exaone4LayerTypes is the default of layer_types.
func exaone4LayerTypes(v values) (any, error) {
	c := &Config{values: v, read: map[string]bool{}}
	of, ok, err := c.slidingPattern()
	if err != nil {
		return nil, err
	}
	if !ok || !c.Has("sliding_window") {
		return nil, nil
	}
	return layerTypes(v, func(bid int64) string {
		if of(bid) {
			return "sliding_attention"
		}
		return "full_attention"
	})
}

// layerTypes returns the kinds of all layers as a value of a config.
func layerTypes(v values, of func(bid int64) string) (any, error) {
	n, err := v.int("num_hidden_layers")
	if err == nil && (n < 0 || n > maxBlocks) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, want at most %d", ConfigFile, n, maxBlocks)
	}
	if err != nil {
		return nil, err
	}
	list := make([]any, n)
	for i := range list {
		list[i] = of(int64(i))
	}
	return list, nil
}
