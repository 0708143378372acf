package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// PartialRope is the number of rotary dimensions where they are a part of a head: the rope setting
// partial_rotary_factor, part by default.
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

// NonDefaultFreqBase writes the base of the rope frequencies when it is not the one
// that loaders take without the key. The reference never writes it for these
// architectures, and its file computes something else.
func NonDefaultFreqBase(c *config.View) (v gguf.Value, ok bool, err error) {
	theta, ok, err := c.Rope().Float("rope_theta")
	return table.Float32Of(theta, ok && theta != 10000, err)
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

// yarnFloat, yarnInt and yarnBool copy a rope setting that only the yarn type has.

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

// RopeDimensionCount is the number of rotary dimensions: the whole head.
func RopeDimensionCount(c *config.View) (gguf.Value, bool, error) {
	n, err := c.HeadDim()
	return table.Uint32Of(n, true, err)
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

// RopeDimensionRow is the number of rotary dimensions where whole heads rotate.
var RopeDimensionRow = table.Row{Key: "rope.dimension_count", Derive: RopeDimensionCount}

// NoRopeScaling is written by architectures that say so.
var NoRopeScaling = table.Row{Key: "rope.scaling.type", Const: gguf.String("none")}

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
