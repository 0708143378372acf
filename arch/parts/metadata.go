package parts

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// PerLayer is a list of numbers as a metadata value.
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

// LeadingDense returns the number of layers before the first that has experts.
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

// MTP says which tensors are left out.
const MTP = "of layers that predict further tokens (MTP)"

// SumOf adds up keys, all of which must be there.
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

// NonZero copies a number that is there and not 0.
func NonZero(keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := c.Float(keys...)
		return table.Float32Of(f, ok && f != 0, err)
	}
}

// PartialRope is the number of dimensions that rotate where only a part of a head
// does: the rope setting partial_rotary_factor, part by default.
func PartialRope(part float64) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		f, ok, err := c.Rope().Float("partial_rotary_factor")
		if err != nil {
			return gguf.Value{}, false, err
		}
		if !ok {
			f = part
		}
		dim, err := c.HeadDim()
		if err == nil && (!(f >= 0 && f <= 1) || dim < 0 || dim > config.MaxHeadDim) {
			err = config.WrongType("partial_rotary_factor", "a part of a head", f)
		}
		return table.Uint32Of(int64(float64(dim)*f), true, err)
	}
}

// InnerOr4 returns the width of the MLP: n_inner, or four times the model's under
// key. The reference takes the latter whatever n_inner is, which no loader accepts
// when they differ.
func InnerOr4(key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		if n, ok, err := c.Int("n_inner"); err != nil || ok && !c.Options.Reference {
			return table.Uint32Of(n, ok, err)
		}
		return Times(4, key)(c)
	}
}

// Times returns factor times the value of a key that must be there.
func Times(factor int64, key string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		n, err := c.Require(key)
		if err == nil && (n < 0 || n > config.MaxWidth) {
			err = config.WrongType(key, "a number of elements", n)
		}
		return table.Uint32Of(factor*n, true, err)
	}
}

// OtherFreqBase writes the base of the rope frequencies when it is not the one
// that loaders take without the key. The reference never writes it for these
// architectures, and its file computes something else.
func OtherFreqBase(c *config.View) (v gguf.Value, ok bool, err error) {
	theta, ok, err := c.Rope().Float("rope_theta")
	return table.Float32Of(theta, ok && theta != 10000, err)
}

// Without returns rows less those of the given keys.
func Without(rows []table.Row, keys ...string) []table.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r table.Row) bool { return slices.Contains(keys, r.Key) })
}

// With returns rows with r in the place of the row of its key, or at the end: as
// a key that is written twice.
func With(rows []table.Row, more ...table.Row) []table.Row {
	rows = slices.Clone(rows)
	for _, r := range more {
		if i := slices.IndexFunc(rows, func(o table.Row) bool { return o.Key == r.Key }); i >= 0 {
			rows[i] = r
		} else {
			rows = append(rows, r)
		}
	}
	return rows
}

// notCausal writes that attention sees what follows; that it does not is the rule.
func notCausal(c *config.View) (v gguf.Value, ok bool, err error) {
	causal, isBool := c.Value("is_causal").(bool)
	return gguf.Bool(false), isBool && !causal, nil
}

// ropeScalingType writes the types that scale with one factor, and longrope.
// llama3 shows in an extra tensor instead, "default" means no scaling; others are
// refused, because the file would compute something else.
func ropeScalingType(c *config.View) (v gguf.Value, ok bool, err error) {
	s, factor, err := c.RopeScaling()
	if err != nil {
		return v, false, err
	}
	switch s {
	case "", "default", "llama3", "mrope":
		return v, false, nil
	case "linear", "yarn":
		if factor {
			return gguf.String(s), true, nil
		}
		return v, false, fault.Errorf(fault.Broken, "%s: rope type %q without a factor", config.ConfigFile, s)
	case "su", "longrope":
		return gguf.String("longrope"), true, nil
	}
	return v, false, fault.Errorf(fault.Unsupported, "%s: rope type %q is not supported for this architecture",
		config.ConfigFile, s)
}

// ropeSections writes how many of the rotating dimensions follow time, height and
// width; a fourth number is for a further axis.
func ropeSections(c *config.View) (v gguf.Value, ok bool, err error) {
	list, ok, err := c.RopeRoot().Ints("mrope_section")
	if err != nil || !ok {
		return v, false, err
	}
	sections := make([]int32, 4)
	for i := range min(len(list), len(sections)) {
		sections[i] = int32(list[i])
	}
	return gguf.Int32s(sections), true, nil
}

// GatingFuncs are the values of expert_gating_func.
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

func ropeScalingFactor(c *config.View) (v gguf.Value, ok bool, err error) {
	s, _, err := c.RopeScaling()
	if err != nil || s != "linear" && s != "yarn" {
		return v, false, err
	}
	return table.Float32Of(c.Rope().Float("factor"))
}

// yarnFloat, yarnInt and yarnBool copy one of the rope settings that only the
// yarn type has.

func yarnFloat(keys ...string) table.Derive {
	return yarn(func(r config.Object) (gguf.Value, bool, error) { return table.Float32Of(r.Float(keys...)) })
}

func yarnInt(key string) table.Derive {
	return yarn(func(r config.Object) (gguf.Value, bool, error) { return table.Uint32Of(r.Int(key)) })
}

func yarnBool(key string) table.Derive {
	return yarn(func(r config.Object) (v gguf.Value, ok bool, err error) {
		b, ok, err := r.Bool(key)
		return gguf.Bool(b), ok, err
	})
}

func yarn(get func(config.Object) (gguf.Value, bool, error)) table.Derive {
	return func(c *config.View) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.RopeScaling(); err != nil || s != "yarn" {
			return v, false, err
		}
		return get(c.Rope())
	}
}

// RopeDimensionCount is the number of dimensions that rotate: the whole head.
func RopeDimensionCount(c *config.View) (gguf.Value, bool, error) {
	n, err := c.HeadDim()
	return table.Uint32Of(n, true, err)
}

// Constant is a value that depends on nothing.
func Constant(v gguf.Value) table.Derive {
	return func(*config.View) (gguf.Value, bool, error) { return v, true, nil }
}

// DynamicAsNone takes the dynamic rope type, which begins beyond the context
// length, as none.
var DynamicAsNone = table.Row{Key: "rope.scaling.type",
	Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.RopeScaling(); err != nil || s == "dynamic" {
			return v, false, err
		}
		return ropeScalingType(c)
	}}

// LlamaRows are what the reference writes for all classes that inherit Llama's.
var LlamaRows = slices.Concat(CommonRows, []table.Row{
	UintRow("vocab_size", "vocab_size"),
	{Key: "rope.dimension_count", Derive: RopeDimensionCount},
})

// GraniteRows are what the reference writes for all classes that inherit Granite's:
// Llama's without a size of heads, and factors.
var GraniteRows = slices.Concat(Without(CommonRows, "attention.key_length", "attention.value_length"), []table.Row{
	UintRow("vocab_size", "vocab_size"),
	{Key: "rope.dimension_count", Derive: HiddenPerHead},
	{Key: "attention.scale", Derive: NonZero("attention_multiplier")},
	{Key: "embedding_scale", Derive: NonZero("embedding_multiplier")},
	{Key: "residual_scale", Derive: NonZero("residual_multiplier")},
	{Key: "logit_scale", Derive: NonZero("logits_scaling")},
	{Key: "deepstack_mapping", Derive: deepstackMapping},
})

// UintRow is the row of an integer that must be there, under the first of the keys
// that config.json has.
func UintRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.Uint32Type, From: from, Required: true}
}

// FloatRow is UintRow for numbers.
func FloatRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.Float32Type, From: from, Required: true}
}

// BoolRow is UintRow for flags.
func BoolRow(key string, from ...string) table.Row {
	return table.Row{Key: key, Type: gguf.BoolType, From: from, Required: true}
}

// Optional returns r as a row that may be absent.
func Optional(r table.Row) table.Row {
	r.Required = false
	return r
}

// BlockCountRow is the number of layers.
var BlockCountRow = UintRow(table.KeyBlockCount, config.BlockCountKeys...)

// RopeDimensionRow is the number of rotating dimensions where whole heads rotate.
var RopeDimensionRow = table.Row{Key: "rope.dimension_count", Derive: RopeDimensionCount}

// FileTypeRow is the place where general.file_type is written.
var FileTypeRow = table.Row{Key: gguf.KeyFileType}

// NoRopeScaling is written by architectures that say so.
var NoRopeScaling = table.Row{Key: "rope.scaling.type", Const: gguf.String("none")}

// MetaLayout names the order of the rows of a head; no runtime reads it.
var MetaLayout = table.Row{Key: "tensor_data_layout", Const: gguf.String("Meta AI original pth")}

// RopeTheta is the base of the rotation, which must be there.
func RopeTheta(c *config.View) (gguf.Value, bool, error) {
	f, err := c.Rope().RequireFloat("rope_theta")
	return table.Float32Of(f, err == nil, err)
}

// RopeShareOfHidden is the number of dimensions of a head that rotate, where only a
// share does: the share of the hidden size, divided by the number of heads. standard
// is the share of a config that has none; 0 makes that an error.
func RopeShareOfHidden(standard float64) table.Derive {
	return ropeShare(standard, func(share float64, hidden, heads int64) (int64, error) {
		n, err := config.Truncate(share * float64(hidden))
		return n / heads, err
	})
}

// RopeShareOfHead is RopeShareOfHidden where the share is taken of the head.
func RopeShareOfHead(standard float64) table.Derive {
	return ropeShare(standard, func(share float64, hidden, heads int64) (int64, error) {
		return config.Truncate(share * float64(hidden/heads))
	})
}

func ropeShare(standard float64, dims func(share float64, hidden, heads int64) (int64, error)) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		share, ok, err := c.Rope().Float("partial_rotary_factor")
		if err == nil && !ok {
			if share = standard; share == 0 {
				_, err = c.Rope().RequireFloat("partial_rotary_factor")
			}
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		hidden, heads, err := c.HiddenAndHeads()
		if err != nil {
			return gguf.Value{}, false, err
		}
		n, err := dims(share, hidden, heads)
		return table.Uint32Of(n, true, err)
	}
}

// HiddenPerHead is the number of rotating dimensions of architectures whose head
// is the hidden size divided by the number of heads, whatever the config says.
func HiddenPerHead(c *config.View) (gguf.Value, bool, error) {
	hidden, heads, err := c.HiddenAndHeads()
	if err != nil {
		return gguf.Value{}, false, err
	}
	return table.Uint32Of(hidden/heads, true, nil)
}

// UnsupportedPattern is the error for a pattern of layers that the runtime does
// not know.
func UnsupportedPattern(key, want string) error {
	return fault.Errorf(fault.Unsupported, "%s: key %q: the architecture has %s", config.ConfigFile, key, want)
}

// OrElse returns the first of keys that is there, or n when that is absent, null
// or 0.
func OrElse(n int64, keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		v, err := c.IntOr(n, keys...)
		return table.Uint32Of(v, true, err)
	}
}

// OrElseFloat is OrElse for numbers.
func OrElseFloat(f float64, keys ...string) table.Derive {
	return func(c *config.View) (gguf.Value, bool, error) {
		v, _, err := c.Float(keys...)
		if v == 0 {
			v = f
		}
		return table.Float32Of(v, true, err)
	}
}

// PaddedVocab rounds the size of the vocabulary up to what the weights have.
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

// QwenMoERows are CommonRows and the widths of experts.
var QwenMoERows = slices.Concat(CommonRows, []table.Row{
	{Key: "expert_feed_forward_length", Type: gguf.Uint32Type, From: []string{"moe_intermediate_size"}},
	{Key: "expert_shared_feed_forward_length", Type: gguf.Uint32Type,
		From: []string{"shared_expert_intermediate_size"}},
})

// SuppressRow lists tokens that are never to be generated.
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
