package arch

import (
	"fmt"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
)

// Row is one metadata pair: a GGUF key and where its value comes from. A row
// whose source is absent writes nothing, unless it is Required.
type Row struct {
	Key      string // below the architecture's name; general.* and tokenizer.* stand for themselves
	Type     gguf.ValueType
	From     []string // config keys, the first that is there counts
	Required bool
	Const    gguf.Value // instead of From, or its default
	Derive   Derive     // instead of From; of general.file_type it only tells whether the row is there
	// Deviates tells that the reference does not write the pair, see Config.Reference.
	Deviates bool
}

// Derive computes the value of a row; ok is false when there is none.
type Derive func(*Config) (v gguf.Value, ok bool, err error)

func (r Row) value(c *Config) (v gguf.Value, ok bool, err error) {
	if r.Derive != nil {
		return r.Derive(c)
	}
	switch {
	case len(r.From) == 0:
	case r.Type == gguf.Uint32Type:
		v, ok, err = uint32Of(c.Int(r.From...))
	case r.Type == gguf.Float32Type:
		v, ok, err = float32Of(c.Float(r.From...))
	case r.Type == gguf.BoolType:
		v, ok, err = boolOf(c.Bool(r.From...))
	case r.Type == gguf.StringType:
		v, ok, err = stringOf(c.String(r.From...))
	default:
		panic(fmt.Sprintf("arch: row %q of type %v", r.Key, r.Type))
	}
	if err == nil && !ok && r.Const != (gguf.Value{}) {
		return r.Const, true, nil
	}
	if err == nil && !ok && r.Required {
		err = fault.Errorf(fault.Broken, "%s: has none of the keys %q, which %s is made of", ConfigFile, r.From, r.Key)
	}
	if err != nil && len(r.From) > 0 {
		err = fmt.Errorf("%w (for %s)", err, r.Key)
	}
	return v, ok, err
}

// uint32Of and float32Of turn what a Config method returns into a metadata value.

func uint32Of(n int64, ok bool, err error) (gguf.Value, bool, error) {
	if err == nil && ok && (n < 0 || n > math.MaxUint32) {
		err = fault.Errorf(fault.Broken, "%s: %d does not fit 32 bits without sign", ConfigFile, n)
	}
	if err != nil || !ok {
		return gguf.Value{}, false, err
	}
	return gguf.Uint32(uint32(n)), true, nil
}

func float32Of(f float64, ok bool, err error) (gguf.Value, bool, error) {
	if err == nil && ok && math.IsInf(float64(float32(f)), 0) {
		err = fault.Errorf(fault.Broken, "%s: %v does not fit float32", ConfigFile, f)
	}
	if err != nil || !ok {
		return gguf.Value{}, false, err
	}
	return gguf.Float32(float32(f)), true, nil
}

func boolOf(b, ok bool, err error) (gguf.Value, bool, error) {
	return gguf.Bool(b), ok && err == nil, err
}

func stringOf(s string, ok bool, err error) (gguf.Value, bool, error) {
	return gguf.String(s), ok && s != "" && err == nil, err // empty strings are not written
}

// without returns rows less those of the given keys.
func without(rows []Row, keys ...string) []Row {
	return slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return slices.Contains(keys, r.Key) })
}

// with returns rows with r in the place of the row of its key, or at the end: as
// a key that is written twice.
func with(rows []Row, more ...Row) []Row {
	rows = slices.Clone(rows)
	for _, r := range more {
		if i := slices.IndexFunc(rows, func(o Row) bool { return o.Key == r.Key }); i >= 0 {
			rows[i] = r
		} else {
			rows = append(rows, r)
		}
	}
	return rows
}

// commonRows is the block that most architectures begin with. Source: the order
// and the key lists of the reference's TextModel.
var commonRows = []Row{
	{Key: keyBlockCount, Type: gguf.Uint32Type, From: blockCountKeys, Required: true},
	{Key: "context_length", Type: gguf.Uint32Type, From: []string{"max_position_embeddings", "n_ctx", "n_positions", "max_length", "max_sequence_length", "model_max_length"}},
	{Key: "embedding_length", Type: gguf.Uint32Type, From: []string{"hidden_size", "n_embd", "dim"}},
	{Key: "feed_forward_length", Type: gguf.Uint32Type, From: []string{"prefix_dense_intermediate_size", "dense_intermediate_size", "intermediate_size", "n_inner", "hidden_dim"}},
	{Key: keyHeadCount, Type: gguf.Uint32Type, From: headKeys},
	{Key: keyHeadCountKV, Type: gguf.Uint32Type, From: headKVKeys},
	{Key: "attention.causal", Derive: notCausal},
	{Key: "rope.scaling.type", Derive: ropeScalingType},
	{Key: "rope.scaling.factor", Derive: ropeScalingFactor},
	{Key: "rope.scaling.original_context_length", Derive: yarnInt("original_max_position_embeddings")},
	{Key: "rope.scaling.yarn_truncate", Derive: yarnBool("truncate")},
	{Key: "rope.scaling.yarn_ext_factor", Derive: yarnFloat("extrapolation_factor")},
	{Key: "rope.scaling.yarn_attn_factor", Derive: yarnFloat("attention_factor", "attn_factor")},
	{Key: "rope.scaling.yarn_beta_fast", Derive: yarnFloat("beta_fast")},
	{Key: "rope.scaling.yarn_beta_slow", Derive: yarnFloat("beta_slow")},
	{Key: "rope.dimension_sections", Derive: ropeSections},
	{Key: "rope.freq_base", Derive: func(c *Config) (gguf.Value, bool, error) { return float32Of(c.Rope().Float("rope_theta")) }},
	{Key: "rope.freq_base_swa", Derive: func(c *Config) (gguf.Value, bool, error) {
		return float32Of(c.RopeRoot().Sub("sliding_attention").Float("rope_theta"))
	}},
	{Key: "attention.layer_norm_rms_epsilon", Type: gguf.Float32Type, From: []string{"rms_norm_eps", "norm_eps"}},
	{Key: "attention.layer_norm_epsilon", Type: gguf.Float32Type, From: []string{"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"}},
	{Key: "expert_count", Type: gguf.Uint32Type, From: expertKeys},
	{Key: "expert_used_count", Type: gguf.Uint32Type, From: []string{"num_experts_per_tok", "num_experts_per_token", "top_k_experts"}},
	{Key: "expert_group_count", Type: gguf.Uint32Type, From: []string{"n_group"}},
	{Key: "expert_group_used_count", Type: gguf.Uint32Type, From: []string{"topk_group"}},
	{Key: "expert_gating_func", Derive: gatingFunc},
	{Key: "attention.key_length", Type: gguf.Uint32Type, From: []string{"head_dim"}},
	{Key: "attention.value_length", Type: gguf.Uint32Type, From: []string{"head_dim"}},
	{Key: gguf.KeyFileType},
}

var (
	blockCountKeys = []string{"n_layers", "num_hidden_layers", "n_layer", "num_layers"}
	headKeys       = []string{"num_attention_heads", "n_head", "n_heads"}
	headKVKeys     = []string{"num_key_value_heads", "n_kv_heads"}
	expertKeys     = []string{"num_local_experts", "num_experts", "n_routed_experts"}
)

// BlockCount returns the number of layers.
func (c *Config) BlockCount() (int64, error) { return c.Require(blockCountKeys...) }

// scaling returns the rope type; factor tells whether a scaling factor is there.
func (c *Config) scaling() (ropeType string, factor bool, err error) {
	r := c.Rope()
	ropeType, _, err = r.String("rope_type")
	if err == nil {
		_, factor, err = r.Float("factor")
	}
	return ropeType, factor, err
}

// notCausal writes that attention sees what follows; that it does not is the rule.
func notCausal(c *Config) (v gguf.Value, ok bool, err error) {
	causal, isBool := c.Value("is_causal").(bool)
	return gguf.Bool(false), isBool && !causal, nil
}

// ropeScalingType writes the types that scale with one factor, and longrope.
// llama3 shows in an extra tensor instead, "default" is no scaling; others are
// refused, because the file would compute something else.
func ropeScalingType(c *Config) (v gguf.Value, ok bool, err error) {
	s, factor, err := c.scaling()
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
		return v, false, fault.Errorf(fault.Broken, "%s: rope type %q without a factor", ConfigFile, s)
	case "su", "longrope":
		return gguf.String("longrope"), true, nil
	}
	return v, false, fault.Errorf(fault.Unsupported, "%s: rope type %q is not supported for this architecture", ConfigFile, s)
}

// ropeSections writes how many of the rotating dimensions follow time, height and
// width; a fourth number is for a further axis.
func ropeSections(c *Config) (v gguf.Value, ok bool, err error) {
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

// gatingFuncs are the values of expert_gating_func.
var gatingFuncs = map[string]uint32{"softmax": 1, "sigmoid": 2, "sqrtsoftplus": 4}

func gatingFunc(c *Config) (v gguf.Value, ok bool, err error) {
	s, ok, err := c.String("score_function", "scoring_func", "score_func", "moe_router_activation", "moe_router_activation_func", "expert_selection_fn", "router_score_func")
	if err != nil || !ok {
		return v, false, err
	}
	n, ok := gatingFuncs[s]
	if !ok {
		return v, false, fault.Errorf(fault.Unsupported, "%s: experts are chosen by %q, want softmax, sigmoid or sqrtsoftplus", ConfigFile, s)
	}
	return gguf.Uint32(n), true, nil
}

func ropeScalingFactor(c *Config) (v gguf.Value, ok bool, err error) {
	s, _, err := c.scaling()
	if err != nil || s != "linear" && s != "yarn" {
		return v, false, err
	}
	return float32Of(c.Rope().Float("factor"))
}

// yarnFloat, yarnInt and yarnBool copy one of the rope settings that only the
// yarn type has.

func yarnFloat(keys ...string) Derive {
	return yarn(func(r Rope) (gguf.Value, bool, error) { return float32Of(r.Float(keys...)) })
}

func yarnInt(key string) Derive {
	return yarn(func(r Rope) (gguf.Value, bool, error) { return uint32Of(r.Int(key)) })
}

func yarnBool(key string) Derive {
	return yarn(func(r Rope) (v gguf.Value, ok bool, err error) {
		b, ok, err := r.Bool(key)
		return gguf.Bool(b), ok, err
	})
}

func yarn(get func(Rope) (gguf.Value, bool, error)) Derive {
	return func(c *Config) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.scaling(); err != nil || s != "yarn" {
			return v, false, err
		}
		return get(c.Rope())
	}
}

// ropeDimensionCount is the number of dimensions that rotate: the whole head.
func ropeDimensionCount(c *Config) (gguf.Value, bool, error) {
	n, err := c.headDim()
	return uint32Of(n, true, err)
}

// headDim returns the size of a head.
func (c *Config) headDim() (int64, error) {
	n, ok, err := c.Int("head_dim")
	if err != nil || ok {
		return n, err
	}
	hidden, err := c.Require("hidden_size", "n_embd", "dim")
	if err != nil {
		return 0, err
	}
	heads, err := c.heads()
	if err == nil && heads <= 0 {
		err = wrongType("num_attention_heads", "a positive integer", heads)
	}
	if err != nil {
		return 0, err
	}
	return hidden / heads, nil
}
