package arch

import (
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// This file holds what the tables of many architectures are put together from.

// permutedRows are attentionRows where the runtime rotates neighbours: the rows of
// a head are in another order there.
func permutedRows(bias Bias) []TensorRow {
	list := attentionRows(bias, bias)
	list[0].Transform, list[1].Transform = permuteQ, permuteK
	return list
}

// withBias returns rows with that kind of bias.
func withBias(b Bias, rows []TensorRow) []TensorRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Bias = b
	}
	return rows
}

// llamaRows are what the reference writes for all classes that inherit Llama's.
var llamaRows = slices.Concat(commonRows, []Row{
	uintRow("vocab_size", "vocab_size"),
	{Key: "rope.dimension_count", Derive: ropeDimensionCount},
})

// uintRow, floatRow and boolRow are rows of a value that must be there, in the
// first of the config keys that the config has.

func uintRow(key string, from ...string) Row {
	return Row{Key: key, Type: gguf.Uint32Type, From: from, Required: true}
}

func floatRow(key string, from ...string) Row {
	return Row{Key: key, Type: gguf.Float32Type, From: from, Required: true}
}

func boolRow(key string, from ...string) Row {
	return Row{Key: key, Type: gguf.BoolType, From: from, Required: true}
}

// optional returns r as a row that may be absent.
func optional(r Row) Row {
	r.Required = false
	return r
}

// fileTypeRow stands where general.file_type is written.
var fileTypeRow = Row{Key: gguf.KeyFileType}

// noRopeScaling is written by architectures that say so.
var noRopeScaling = Row{Key: "rope.scaling.type", Const: gguf.String("none")}

// metaLayout names the order of the rows of a head; no runtime reads it.
var metaLayout = Row{Key: "tensor_data_layout", Const: gguf.String("Meta AI original pth")}

// ropeTheta is the base of the rotation, which must be there.
func ropeTheta(c *Config) (gguf.Value, bool, error) {
	f, err := c.Rope().require("rope_theta")
	return float32Of(f, err == nil, err)
}

// require returns a rope setting that must be there.
func (r Rope) require(key string) (float64, error) {
	f, ok, err := r.Float(key)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no rope setting %q", ConfigFile, key)
	}
	return f, err
}

// ropeShareOfHidden and ropeShareOfHead are the number of dimensions of a head
// that rotate, where only a share does. The first takes the share of the hidden
// size and then divides by the number of heads. standard is the share of a config
// that has none; 0 is an error then.

func ropeShareOfHidden(standard float64) Derive {
	return ropeShare(standard, func(share float64, hidden, heads int64) (int64, error) {
		n, err := truncate(share * float64(hidden))
		return n / heads, err
	})
}

func ropeShareOfHead(standard float64) Derive {
	return ropeShare(standard, func(share float64, hidden, heads int64) (int64, error) {
		return truncate(share * float64(hidden/heads))
	})
}

func ropeShare(standard float64, dims func(share float64, hidden, heads int64) (int64, error)) Derive {
	return func(c *Config) (gguf.Value, bool, error) {
		share, ok, err := c.Rope().Float("partial_rotary_factor")
		if err == nil && !ok {
			if share = standard; share == 0 {
				_, err = c.Rope().require("partial_rotary_factor")
			}
		}
		if err != nil {
			return gguf.Value{}, false, err
		}
		hidden, heads, err := c.hiddenAndHeads()
		if err != nil {
			return gguf.Value{}, false, err
		}
		n, err := dims(share, hidden, heads)
		return uint32Of(n, true, err)
	}
}

// hiddenAndHeads returns the hidden size and the number of heads, which is not 0.
func (c *Config) hiddenAndHeads() (hidden, heads int64, err error) {
	if hidden, err = c.Require("hidden_size", "n_embd"); err != nil {
		return 0, 0, err
	}
	heads, err = c.Require("num_attention_heads", "n_head")
	if err == nil && heads <= 0 {
		err = wrongType("num_attention_heads", "a positive integer", heads)
	}
	return hidden, heads, err
}

// truncate is Python's int() of a number that must fit 32 bits.
func truncate(f float64) (int64, error) {
	if !(math.Abs(f) < 1<<32) {
		return 0, fault.Errorf(fault.Broken, "%s: %v does not fit 32 bits", ConfigFile, f)
	}
	return int64(f), nil
}

// hiddenPerHead is the number of rotating dimensions of architectures whose head
// is the hidden size divided by the number of heads, whatever the config says.
func hiddenPerHead(c *Config) (gguf.Value, bool, error) {
	hidden, heads, err := c.hiddenAndHeads()
	if err != nil {
		return gguf.Value{}, false, err
	}
	return uint32Of(hidden/heads, true, nil)
}

// longRopeFactors are the factors of the longrope type, one per pair of rotating
// dimensions: those for texts beyond the original context length and those for
// texts within.
func longRopeFactors(dims func(*Config) (int64, error)) []ExtraTensor {
	factors := func(key, other string) func(*Config) (rows.Source, error) {
		return func(c *Config) (rows.Source, error) {
			list, _, err := c.Rope().Floats(key)
			if err != nil {
				return nil, err
			}
			others, _, err := c.Rope().Floats(other)
			if err != nil || len(list) == 0 && len(others) == 0 {
				return nil, err
			}
			n, err := dims(c)
			if err != nil {
				return nil, err
			}
			if len(list) == 0 || 2*int64(len(list)) != n {
				return nil, fault.Errorf(fault.Broken, "%s: rope setting %q has %d factors, want one for each 2 of %d dimensions", ConfigFile, key, len(list), n)
			}
			out := make([]float32, len(list))
			for i, f := range list {
				out[i] = float32(f)
			}
			return rows.Float32s(out), nil
		}
	}
	return []ExtraTensor{
		{GGUF: "rope_factors_long.weight", Make: factors("long_factor", "short_factor")},
		{GGUF: "rope_factors_short.weight", Make: factors("short_factor", "long_factor")},
	}
}

// biasKeys tell which weights have a bias; the tensors show it.
var biasKeys = []string{"attention_bias", "mlp_bias", "lm_head_bias", "use_bias", "qkv_bias", "use_qkv_bias", "bias"}

// unsupportedPattern is the error for a pattern of layers that the runtime does
// not know.
func unsupportedPattern(key, want string) error {
	return fault.Errorf(fault.Unsupported, "%s: key %q: the architecture has %s", ConfigFile, key, want)
}

// transformed returns rows with a transform.
func transformed(t *Transform, rows []TensorRow) []TensorRow {
	rows = slices.Clone(rows)
	for i := range rows {
		rows[i].Transform = t
	}
	return rows
}
