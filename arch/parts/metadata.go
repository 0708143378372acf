package parts

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// PerLayer returns a list of numbers as a metadata value.
func PerLayer(list []int64, err error) (v gguf.Value, ok bool, _ error) {
	if err != nil || len(list) == 0 {
		return v, false, err
	}
	out := make([]int32, len(list))
	for i, n := range list {
		if n < 0 || n > 1<<31-1 {
			return v, false, fault.Errorf(fault.Broken, "%s: %d for layer %d does not fit 31 bits",
				config.ConfigFile, n, i)
		}
		out[i] = int32(n)
	}
	return gguf.Int32s(out), true, nil
}

// LeadingDense returns the number of layers before the first MoE layer.
func LeadingDense(c *config.View) (int64, error) {
	n, ok, err := c.Int("first_k_dense_replace")
	switch {
	case err != nil || ok:
		return n, err
	case c.Has("n_routed_experts"):
		return 0, nil
	}
	return c.BlockCount()
}

// MTP is the reason in messages for dropped tensors of MTP layers.
const MTP = "of MTP layers"

// SumOf writes the sum of required keys.
func SumOf(keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		sum := int64(0)
		for _, key := range keys {
			n, err := c.Require(key)
			if err != nil {
				return gguf.Value{}, false, err
			}
			sum += n
		}
		return table.Uint32Of(sum, true, nil)
	}
}

// NonZero writes a number other than 0.
func NonZero(keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := c.Float(keys...)
		return table.Float32Of(f, ok && f != 0, err)
	}
}

// InnerOr4 returns the width of the MLP: n_inner, or four times the model's under key. The reference always writes the
// latter; if they differ, runtimes refuse its file.
func InnerOr4(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		if n, ok, err := c.Int("n_inner"); err != nil || ok && !c.Options.Reference {
			return table.Uint32Of(n, ok, err)
		}
		return Times(4, key)(c)
	}
}

// Times writes factor times the value of a required key.
func Times(factor int64, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Require(key)
		if err == nil && (n < 0 || n > config.MaxWidth) {
			err = config.WrongType(key, "a number of elements", n)
		}
		return table.Uint32Of(factor*n, true, err)
	}
}

// notCausal writes false for models with bidirectional attention; causal attention is the default and not written.
func notCausal(c *config.View) (v gguf.Value, ok bool, err error) {
	causal, isBool := c.Value("is_causal").(bool)
	return gguf.Bool(false), isBool && !causal, nil
}

// GatingFuncs are the values of expert_gating_func by the config's names.
var GatingFuncs = map[string]uint32{"softmax": 1, "sigmoid": 2, "sqrtsoftplus": 4}

func gatingFunc(c *config.View) (v gguf.Value, ok bool, err error) {
	s, ok, err := c.String("score_function", "scoring_func", "score_func", "moe_router_activation",
		"moe_router_activation_func", "expert_selection_fn", "router_score_func")
	if err != nil || !ok {
		return v, false, err
	}
	n, ok := GatingFuncs[s]
	if !ok {
		return v, false, fault.Errorf(fault.Unsupported,
			"%s: experts are chosen by %q, want softmax, sigmoid or sqrtsoftplus", config.ConfigFile, s)
	}
	return gguf.Uint32(n), true, nil
}

// Constant returns a Derive of a constant value.
func Constant(v gguf.Value) table.Derive {
	return func(*config.View) (gguf.Value, bool, error) { return v, true, nil }
}

// LlamaRows are the rows of all classes that inherit Llama's in the reference.
var LlamaRows = slices.Concat(CommonRows, []table.Row{
	UintRow("vocab_size", "vocab_size"),
	{Key: "rope.dimension_count", Derive: RopeDimensionCount},
})

// GraniteRows are the rows of all classes that inherit Granite's in the reference: LlamaRows without head size, and
// multipliers.
var GraniteRows = slices.Concat(WithoutKeys(CommonRows, "attention.key_length", "attention.value_length"), []table.Row{
	UintRow("vocab_size", "vocab_size"),
	{Key: "rope.dimension_count", Derive: HiddenPerHead},
	{Key: "attention.scale", Derive: NonZero("attention_multiplier")},
	{Key: "embedding_scale", Derive: NonZero("embedding_multiplier")},
	{Key: "residual_scale", Derive: NonZero("residual_multiplier")},
	{Key: "logit_scale", Derive: NonZero("logits_scaling")},
	{Key: "deepstack_mapping", Derive: deepstackMapping},
})

// BlockCountRow is the number of layers.
var BlockCountRow = UintRow(table.KeyBlockCount, config.BlockCountKeys...)

// FileTypeRow is the place where general.file_type is written.
var FileTypeRow = table.Row{Key: gguf.KeyFileType}

// MetaLayout is the name of the row order in heads; runtimes do not read it.
var MetaLayout = table.Row{Key: "tensor_data_layout", Const: gguf.String("Meta AI original pth")}

// HiddenPerHead writes hidden_size / heads as the number of rotary dimensions, for architectures that ignore head_dim.
func HiddenPerHead(c *config.View) (gguf.Value, bool, error) {
	hidden, heads, err := c.HiddenAndHeads()
	if err != nil {
		return gguf.Value{}, false, err
	}
	return table.Uint32Of(hidden/heads, true, nil)
}

// UnsupportedPattern returns the error for a pattern of layers that runtimes do not support.
func UnsupportedPattern(key, want string) error {
	return fault.Errorf(fault.Unsupported, "%s: key %q: the architecture has %s", config.ConfigFile, key, want)
}

// IntOrDefault returns the first present one of keys; n if its value is null or 0, or if there is none.
func IntOrDefault(n int64, keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		v, err := c.IntOr(n, keys...)
		return table.Uint32Of(v, true, err)
	}
}

// FloatOrDefault is IntOrDefault for numbers.
func FloatOrDefault(f float64, keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		v, _, err := c.Float(keys...)
		if v == 0 {
			v = f
		}
		return table.Float32Of(v, true, err)
	}
}

// PaddedVocab returns the size of the vocabulary, rounded up to the number of rows of the weights.
func PaddedVocab(multiple int64) func(*config.View) (int64, error) {
	return func(c *config.View) (int64, error) {
		n, err := c.Require("vocab_size")
		if err != nil {
			return 0, err
		}
		m, ok, err := c.Int("pad_vocab_size_multiple")
		if err != nil {
			return 0, err
		}
		if !ok {
			m = multiple
		}
		if m < 1 || m > config.MaxWidth || n < 0 || n > config.MaxWidth {
			return 0, config.WrongType("pad_vocab_size_multiple", "a positive number", m)
		}
		return (n + m - 1) / m * m, nil
	}
}

// RoundedVocab returns the size of the vocabulary, rounded up to a multiple, whatever pad_vocab_size_multiple is.
func RoundedVocab(multiple int64) func(*config.View) (int64, error) {
	return func(c *config.View) (int64, error) {
		n, err := c.Require("vocab_size")
		if err == nil && (n < 0 || n > config.MaxWidth) {
			err = config.WrongType("vocab_size", "a size", n)
		}
		return (n + multiple - 1) / multiple * multiple, err
	}
}

// QwenMoERows are CommonRows and the FFN widths of experts.
var QwenMoERows = slices.Concat(CommonRows, []table.Row{
	{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size"}},
	{Key: "expert_shared_feed_forward_length", Type: gguf.Uint32Type,
		From: []string{"shared_expert_intermediate_size"}},
})

// SuppressRow writes the ids of suppressed tokens.
var SuppressRow = table.Row{Key: "tokenizer.ggml.suppress_tokens", Facts: config.SuppressFiles,
	Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		list := make([]int32, len(c.Facts.Suppress))
		for i, id := range c.Facts.Suppress {
			if id < 0 || id > 1<<31-1 {
				return v, false, fault.Errorf(fault.Broken,
					"generation_config.json: key \"suppress_tokens\": %d is not the id of a token", id)
			}
			list[i] = int32(id)
		}
		return gguf.Int32s(list), len(list) > 0, nil
	}}
