package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// PartialRope writes the number of rotary dimensions: partial_rotary_factor (by default part) of a head.
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

// NonDefaultFreqBase writes rope.freq_base if it is not the runtimes' default. The reference does not write it for
// these architectures, so that models with another base compute wrong results.
func NonDefaultFreqBase(c *config.View) (v gguf.Value, ok bool, err error) {
	theta, ok, err := c.Rope().Float("rope_theta")
	return table.Float32Of(theta, ok && theta != 10000, err)
}

// ropeScalingType writes the types that scale with one factor, and longrope. llama3 becomes an extra tensor, "default"
// is no scaling; other types are refused, because files cannot hold them.
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

// ropeSections writes the M-RoPE sections: the numbers of rotary dimensions of time, height and width, and of a
// further axis.
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

func ropeScalingFactor(c *config.View) (v gguf.Value, ok bool, err error) {
	s, _, err := c.RopeScaling()
	if err != nil || s != "linear" && s != "yarn" {
		return v, false, err
	}
	return table.Float32Of(c.Rope().Float("factor"))
}

// yarnFloat, yarnInt and yarnBool write a rope setting of the yarn type.

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

// RopeDimensionCount writes the size of a head as the number of rotary dimensions.
func RopeDimensionCount(c *config.View) (gguf.Value, bool, error) {
	n, err := c.HeadDim()
	return table.Uint32Of(n, true, err)
}

// DynamicAsNone writes no scaling for the dynamic rope type, which only changes positions beyond the context length.
var DynamicAsNone = table.Row{Key: "rope.scaling.type",
	Derive: func(c *config.View) (v gguf.Value, ok bool, err error) {
		if s, _, err := c.RopeScaling(); err != nil || s == "dynamic" {
			return v, false, err
		}
		return ropeScalingType(c)
	}}

// RopeDimensionRow is the row of RopeDimensionCount.
var RopeDimensionRow = table.Row{Key: "rope.dimension_count", Derive: RopeDimensionCount}

// NoRopeScaling writes rope.scaling.type = none, for architectures that need the key.
var NoRopeScaling = table.Row{Key: "rope.scaling.type", Const: gguf.String("none")}

// RopeTheta returns the RoPE base, which is required.
func RopeTheta(c *config.View) (gguf.Value, bool, error) {
	f, err := c.Rope().RequireFloat("rope_theta")
	return table.Float32Of(f, err == nil, err)
}

// RopeShareOfHidden writes the number of rotary dimensions: a share of the hidden size, divided by the number of heads.
// standard is the default share; 0 for an error.
func RopeShareOfHidden(standard float64) table.Derive {
	return ropeShare(standard, func(share float64, hidden, heads int64) (int64, error) {
		n, err := config.Truncate(share * float64(hidden))
		return n / heads, err
	})
}

// RopeShareOfHead is RopeShareOfHidden with the share of a head.
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
