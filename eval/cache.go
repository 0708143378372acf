package eval

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/model/limits"
	"ggforge/quants"
)

// Cache is the types of the KV cache, in which the runtime keeps the keys and values of tokens for those that follow
// (its options -ctk and -ctv). The zero value is that of F32, which changes nothing.
//
// Each head's key of a token, after RoPE and norms, and each head's value, is encoded and decoded by itself. Before a
// quantized type it is rotated, if the runtime does so, and afterwards back: by the normalized Walsh-Hadamard transform
// of runs of values, as many as the largest power of two that divides the length of a key, 64 for values. It is rotated
// if that length is a multiple of 64, and the same in all layers of a cache; layers with a window have a cache of their
// own. The vector that MLA keeps is never rotated. Queries are not rounded, which the runtime's kernels for CPUs do, too:
// that is their arithmetic, not the cache.
//
// Source: llama.cpp PR 21038; llama.cpp 0.7.0 by measurement.
type Cache struct {
	Keys, Values gguf.Type // of limits.CacheTypes
	// Unrotated: nothing is rotated, as with LLAMA_ATTN_ROT_DISABLE=1.
	Unrotated bool
}

// F16Cache is the cache that the runtime has by default.
var F16Cache = Cache{Keys: gguf.TypeF16, Values: gguf.TypeF16}

// ParseCache returns the cache of a text: the type of keys, or that, a colon and the type of values, such as q8_0:q4_0.
// The name of no type of caches is an error of kind fault.Usage.
func ParseCache(text string) (c Cache, err error) {
	keys, values, ok := strings.Cut(text, ":")
	if !ok {
		values = keys
	}
	if c.Keys, err = limits.ParseCacheType(keys); err == nil {
		c.Values, err = limits.ParseCacheType(values)
	}
	return c, err
}

// String returns the text of ParseCache: "q8_0" if both types are the same, "q8_0:q4_0".
func (c Cache) String() string {
	s := strings.ToLower(c.Keys.String())
	if c.Values != c.Keys {
		s += ":" + strings.ToLower(c.Values.String())
	}
	return s
}

// rotated is the number of values that are rotated together at least: heads have to have a multiple of as many.
const rotated = 64

// codedValues are what a cache does to keys, or to values.
type codedValues struct {
	codec    *quants.Codec // nil for F32
	rotation *hadamard     // nil for none
}

// kvCache is what a Cache does to the keys and values of a model.
type kvCache struct {
	keys, values [2]codedValues // [1] is that of layers with a window
}

// kvCoder encodes and decodes keys and values in one goroutine; nil changes nothing.
type kvCoder struct {
	keys, values codedValues
	buf          []byte
}

// coder returns the coder of a layer's keys and values; nil for none.
func (c *kvCache) coder(h *heads) *kvCoder {
	if c == nil {
		return nil
	}
	i := h.cacheOf()
	return &kvCoder{keys: c.keys[i], values: c.values[i]}
}

// cacheOf returns the index of the heads' cache.
func (h *heads) cacheOf() int {
	if h.window > 0 {
		return 1
	}
	return 0
}

// code sets keys and values of a token, whole heads, to what the cache returns.
func (c *kvCoder) code(keys, values []float32) {
	if c != nil {
		c.keys.code(keys, &c.buf)
		c.values.code(values, &c.buf)
	}
}

func (v codedValues) code(x []float32, buf *[]byte) {
	if v.codec == nil || len(x) == 0 {
		return
	}
	if v.rotation != nil {
		v.rotation.walsh(x)
	}
	b := buffer.Resize(buf, int(v.codec.Type().RowBytes(int64(len(x)))))
	err := v.codec.Quantize(b, x, len(x), nil)
	if err == nil {
		err = v.codec.Dequantize(x, b)
	}
	if err != nil {
		panic(err) // WithCache has checked the type
	}
	if v.rotation != nil {
		v.rotation.walsh(x) // its own inverse
	}
}

// WithCache returns the model with a KV cache of other types. Both read the same tensors. Types that the runtime refuses
// for the model are an error of kind fault.Refused; a model that keeps anything but keys and values of tokens, or states
// of recurrent layers, which stay F32, is one of kind fault.Unsupported.
func (m *Model) WithCache(c Cache) (*Model, error) {
	other := *m
	other.cache = nil
	if c.Keys == gguf.TypeF32 && c.Values == gguf.TypeF32 {
		return &other, nil
	}
	for _, t := range []gguf.Type{c.Keys, c.Values} {
		if !slices.Contains(limits.CacheTypes, t) {
			return nil, fault.Errorf(fault.Usage, "%v is not a type of caches", t)
		}
	}
	x := &cacheBuilder{m: m, types: c, noFlash: slices.ContainsFunc(m.graph.Runtime, func(q graph.Quirk) bool {
		_, ok := q.(graph.NoFlash)
		return ok
	})}
	if err := x.build(); err != nil {
		return nil, fmt.Errorf("%s: a cache of %s: %w", m.source.Path, c, err)
	}
	other.cache = &x.cache
	return &other, nil
}

// cacheBuilder finds out what a Cache does to a model.
type cacheBuilder struct {
	m       *Model
	types   Cache
	noFlash bool // the runtime has no flash attention for the model
	cache   kvCache
	first   *keptHeads    // of the model
	kept    [2]*keptHeads // of each cache
	varies  [2]keptHeads  // 1 for what is not the same in all layers of a cache
}

// keptHeads are the lengths of the keys and values of a layer, in a cache. MLA keeps one vector as both: values is 0.
type keptHeads struct{ keys, values int }

func (b *cacheBuilder) build() error {
	m := b.m
	switch {
	case m.decoder != nil:
		return fault.Errorf(fault.Unsupported, "the decoder of %q also attends to the states of its encoder, which are "+
			"not in the cache", m.p.arch)
	case m.adapters != nil:
		return fault.Errorf(fault.Unsupported, "the adapters of %q are chosen by an attention head, whose keys and values "+
			"are in the cache, too", m.p.arch)
	case m.decision != nil || slices.ContainsFunc(m.graph.Runtime, func(q graph.Quirk) bool {
		x, ok := q.(graph.NoCache)
		return ok && x.If == ""
	}):
		return fault.Errorf(fault.Refused, "%q has no cache: a text is computed at once", m.p.arch)
	}
	for i := range m.layers {
		for part := range m.layers[i].parts() {
			if err := b.part(part); err != nil {
				return fmt.Errorf("layer %d: %w", i, err)
			}
		}
	}
	if b.first == nil {
		return fault.Errorf(fault.Refused, "no layer of %q has keys and values", m.p.arch)
	}
	rotates := *b.first
	if rotates.values == 0 { // the vector that MLA keeps is never rotated
		rotates.keys = 0
	}
	for i := range b.kept {
		b.cache.keys[i] = b.coded(b.types.Keys, b.varies[i].keys == 0, rotates.keys, rotates.keys&-rotates.keys)
		b.cache.values[i] = b.coded(b.types.Values, b.varies[i].values == 0, rotates.values, rotated)
	}
	return nil
}

// coded returns what a type does to heads, which are equally long in all layers or not; size is the length of the
// model's first ones, as the runtime has it, or 0 if they are not rotated, and block the number of values that are rotated
// together.
func (b *cacheBuilder) coded(t gguf.Type, equal bool, size, block int) (v codedValues) {
	if t == gguf.TypeF32 {
		return v
	}
	v.codec = quants.LookupReference(t)
	if quantized(t) && equal && size > 0 && size%rotated == 0 && !b.types.Unrotated {
		v.rotation = &hadamard{block: block}
	}
	return v
}

func quantized(t gguf.Type) bool { return t.BlockLen() > 1 }

// part checks a part of a layer.
func (b *cacheBuilder) part(part mixer) error {
	switch l := part.(type) {
	case *attention:
		if l.source != nil { // the runtime keeps nothing for it
			return nil
		}
		return b.keep(l.heads, keptHeads{l.keyLen, l.valueLen})
	case *mla:
		if l.kvUp != nil {
			return b.keep(l.heads, keptHeads{l.keyLen, l.valueLen})
		}
		if b.types.Keys != b.types.Values {
			return fault.Errorf(fault.Refused, "MLA keeps one vector as key and value: want one type for both")
		}
		// no value is kept, but the runtime checks the length that the file has
		if v, ok := b.m.source.Metadata.Get(b.m.p.arch + ".attention.value_length"); ok {
			n, block := int64(0), int64(b.types.Values.BlockLen())
			if n, ok = v.Int(); ok && quantized(b.types.Values) && n%block != 0 {
				return fault.Errorf(fault.Refused, "attention.value_length is %d, want a multiple of the %d of a block of %v", n,
					block, b.types.Values)
			}
		}
		return b.keep(l.heads, keptHeads{keys: l.rank + l.ropeDim})
	case *deltaNet, *kimiDeltaNet, *lightning, *mamba, *mamba2, *projectedMamba2, *shortConv, *wkv6, *wkv7, *channelMix,
		*laurel: // states, or nothing
		return nil
	}
	if reachOf(part) == ownToken {
		return nil
	}
	return fault.Errorf(fault.Unsupported, "the %s keeps more than keys and values", partName(part))
}

// keep adds the keys and values of a layer.
func (b *cacheBuilder) keep(h heads, k keptHeads) error {
	for _, x := range []struct {
		of   string
		t    gguf.Type
		size int
	}{{"keys", b.types.Keys, k.keys}, {"values", b.types.Values, k.values}} {
		if n := int(x.t.BlockLen()); quantized(x.t) && x.size%n != 0 {
			return fault.Errorf(fault.Refused, "%s of %d values, want a multiple of the %d of a block of %v", x.of, x.size,
				n, x.t)
		}
	}
	if b.noFlash && quantized(b.types.Values) {
		return fault.Errorf(fault.Refused, "llama.cpp runs %q without flash attention, and quantizes values for flash "+
			"attention only", b.m.p.arch)
	}
	if b.first == nil {
		b.first = &k
	}
	i := h.cacheOf()
	if b.kept[i] == nil {
		b.kept[i] = &k
		return nil
	}
	if b.kept[i].keys != k.keys {
		b.varies[i].keys = 1
	}
	if b.kept[i].values != k.values {
		b.varies[i].values = 1
	}
	return nil
}
