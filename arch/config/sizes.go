package config

import (
	"math"

	"ggforge/fault"
)

// MaxBlocks bounds the number of layers; the largest known models have 126.
const MaxBlocks = 1 << 16

// LayerInts returns a list of one number for each layer.
func (c *View) LayerInts(key string) ([]int64, error) {
	list, ok, err := c.Ints(key)
	return list, c.requireErr(ok, err, []string{key})
}

// layerTypes is the key of the list with the type of each layer.
const layerTypes = "layer_types"

// LayerType returns the type of a layer from layer_types, which is required.
func (c *View) LayerType(bid int64) (string, error) {
	kind, ok, err := c.StringAt(layerTypes, bid)
	return kind, c.requireErr(ok, err, []string{layerTypes})
}

// LayerTypes returns the types of all layers; ok is false without layer_types.
func (c *View) LayerTypes() (kinds []string, ok bool, err error) {
	kinds, ok, err = c.Strings(layerTypes)
	if err != nil || !ok {
		return nil, false, err
	}
	n, err := c.BlockCount()
	if err == nil && n != int64(len(kinds)) {
		err = fault.Errorf(fault.Broken, "%s: %d layers, but %d in %s", ConfigFile, n, len(kinds), layerTypes)
	}
	return kinds, err == nil, err
}

// MaxWidth bounds the numbers that widths are computed from; the largest known
// models have 262144 columns.
const MaxWidth = 1 << 28

var (
	BlockCountKeys = []string{"n_layers", "num_hidden_layers", "n_layer", "num_layers"}
	HeadKeys       = []string{"num_attention_heads", "n_head", "n_heads"}
	HeadKVKeys     = []string{"num_key_value_heads", "n_kv_heads"}
	ExpertKeys     = []string{"num_local_experts", "num_experts", "n_routed_experts"}
)

// BlockCount returns the number of layers.
func (c *View) BlockCount() (int64, error) { return c.Require(BlockCountKeys...) }

// BoundedBlockCount is BlockCount with an error for a number below least or above MaxBlocks.
func (c *View) BoundedBlockCount(least int64) (int64, error) {
	n, err := c.BlockCount()
	if err == nil && (n < least || n > MaxBlocks) {
		err = WrongType("num_hidden_layers", "a number of layers", n)
	}
	return n, err
}

// RequireLayerTypes is LayerTypes for a configuration that must have layer_types.
func (c *View) RequireLayerTypes() ([]string, error) {
	kinds, ok, err := c.LayerTypes()
	if err == nil && !ok {
		err = fault.Errorf(fault.Broken, "%s: has no key %q", ConfigFile, layerTypes)
	}
	return kinds, err
}

// RopeScaling returns the rope type; factor reports whether there is a scaling
// factor.
func (c *View) RopeScaling() (ropeType string, factor bool, err error) {
	r := c.Rope()
	ropeType, _, err = r.String("rope_type")
	if err == nil {
		_, factor, err = r.Float("factor")
	}
	return ropeType, factor, err
}

// HeadDim returns the size of a head.
func (c *View) HeadDim() (int64, error) {
	n, ok, err := c.Int("head_dim")
	if err != nil || ok {
		return n, err
	}
	hidden, err := c.Require("hidden_size", "n_embd", "dim")
	if err != nil {
		return 0, err
	}
	heads, err := c.Heads()
	if err == nil && heads <= 0 {
		err = WrongType("num_attention_heads", "a positive integer", heads)
	}
	if err != nil {
		return 0, err
	}
	return hidden / heads, nil
}

// HiddenAndHeads returns the hidden size and the number of heads, which is not 0.
func (c *View) HiddenAndHeads() (hidden, heads int64, err error) {
	if hidden, err = c.Require("hidden_size", "n_embd"); err != nil {
		return 0, 0, err
	}
	heads, err = c.Require("num_attention_heads", "n_head")
	if err == nil && heads <= 0 {
		err = WrongType("num_attention_heads", "a positive integer", heads)
	}
	return hidden, heads, err
}

// Truncate is Python's int() of a number that must fit 32 bits.
func Truncate(f float64) (int64, error) {
	if !(math.Abs(f) < 1<<32) {
		return 0, fault.Errorf(fault.Broken, "%s: %v does not fit 32 bits", ConfigFile, f)
	}
	return int64(f), nil
}

// IntOr is Int with a value for keys that are absent, null or 0.
func (c *View) IntOr(n int64, keys ...string) (int64, error) {
	v, _, err := c.Int(keys...)
	if v == 0 {
		v = n
	}
	if err == nil && (v < 0 || v > MaxWidth) {
		err = WrongType(keys[0], "a size", v)
	}
	return v, err
}

// MaxParts bounds the number of tensors that are joined into one; the largest known models have 512 experts.
const MaxParts = 1 << 16

// Heads returns the number of query heads. The order of the keys is that of the
// reference's Llama class, not that of HeadKeys.
func (c *View) Heads() (int64, error) { return c.Require("n_heads", "num_attention_heads") }

// HeadsKV returns the number of key heads, by default the number of query heads.
func (c *View) HeadsKV() (int64, error) {
	heads, ok, err := c.Int("n_kv_heads", "num_key_value_heads")
	if err == nil && !ok {
		return c.Heads()
	}
	return heads, err
}

// MaxHeadDim bounds the size of a head, for lists with a number per dimension; the largest
// known models have 576.
const MaxHeadDim = 1 << 16
