package parts

import (
	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
	"ggforge/gguf"
)

// FirstDense is the condition of the first n layers; n is the value of a key, 0 without it.
func FirstDense(key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, _, err := l.Int(key)
		return l.Bid < n, err
	}
}

// Has is the condition that a key has a value other than null.
func Has(keys ...string) table.Cond {
	return func(l table.Layer) (bool, error) { return l.Has(keys...), nil }
}

// Not is the negation of a condition.
func Not(cond table.Cond) table.Cond {
	return func(l table.Layer) (bool, error) {
		ok, err := cond(l)
		return !ok, err
	}
}

// Tied is the condition that embedding and output are tied.
var Tied = IsTrue("tie_word_embeddings")

// ClassIs is the condition that the model is of a class.
func ClassIs(class string) table.Cond {
	return func(l table.Layer) (bool, error) { return l.Class == class, nil }
}

// IsTrue is the condition that a key is true.
func IsTrue(key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		b, _, err := l.Bool(key)
		return b, err
	}
}

// IsSome is the condition that a key has a number other than 0.
func IsSome(key string) table.Cond {
	return func(l table.Layer) (bool, error) {
		n, _, err := l.Int(key)
		return n != 0, err
	}
}

// DenseFirst is the condition of layers before the first MoE layer: all layers of a model without experts.
func DenseFirst(l table.Layer) (bool, error) {
	moe, err := MoEAfter(l)
	return !moe, err
}

// MoEAfter is the condition of the first MoE layer and those after it.
func MoEAfter(l table.Layer) (bool, error) {
	dense, err := LeadingDense(l.View)
	return l.Bid >= dense, err
}

// SharedAfter is MoEAfter for models that have shared experts.
func SharedAfter(l table.Layer) (bool, error) {
	n, _, err := l.Int("n_shared_experts")
	if err != nil || n == 0 {
		return false, err
	}
	return MoEAfter(l)
}

// NextN is the condition of MTP layers, which are numbered after the model's layers.
func NextN(l table.Layer) (bool, error) {
	n, err := l.BlockCount()
	return l.Bid >= n, err
}

// FirstLayer is the condition of layer 0.
func FirstLayer(l table.Layer) (bool, error) { return l.Bid == 0, nil }

// Both is the conjunction of two conditions.
func Both(a, b table.Cond) table.Cond {
	return func(l table.Layer) (bool, error) {
		ok, err := a(l)
		if err != nil || !ok {
			return false, err
		}
		return b(l)
	}
}

// LayerTypeIs is the condition of layers of one type, see config.View.LayerType.
func LayerTypeIs(kind string) table.Cond {
	return func(l table.Layer) (bool, error) {
		k, err := l.LayerType(l.Bid)
		return k == kind, err
	}
}

// LayersOf reports for each layer whether its entry in layer_types is kind; ok is false when
// the configuration has no such list.
func LayersOf(c *config.View, kind string) (is []bool, ok bool, err error) {
	kinds, ok, err := c.LayerTypes()
	is = make([]bool, len(kinds))
	for i, k := range kinds {
		is[i] = k == kind
	}
	return is, ok, err
}

// RequireLayersOf is LayersOf for a configuration that must have layer_types.
func RequireLayersOf(c *config.View, kind string) ([]bool, error) {
	is, ok, err := LayersOf(c, kind)
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key \"layer_types\"", config.ConfigFile)
	}
	return is, err
}

// Sliding is the value of layer_types for sliding-window layers.
const Sliding = "sliding_attention"

// SlidingLayers writes which layers have a sliding window.
func SlidingLayers(c *config.View) (v gguf.Value, ok bool, err error) {
	sliding, err := RequireLayersOf(c, Sliding)
	return gguf.Bools(sliding), err == nil && len(sliding) > 0, err
}
