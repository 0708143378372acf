// Package metadata reads the metadata keys of a model's architecture as typed values.
//
// The evaluator (package eval) computes with the values and refuses what it does not understand. The memory estimate
// (package eval/memory) only adds up sizes and accepts more. The fields of Reader are the difference.
package metadata

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
)

// MaxSize is the largest size that a key or a dimension may have: no model has rows, layers or heads of more.
const MaxSize = 1 << 24

// Reader reads the keys of an architecture. Methods take names without the architecture: "block_count".
type Reader struct {
	Arch     string
	Metadata gguf.Metadata
	// Fail is called with each error; if it returns, the value is 0, false or "".
	Fail func(kind error, format string, args ...any)
	// Counts reports whether a key counts in files of the architecture; nil: all do. One that does not counts as missing.
	Counts func(name string) bool
	// AnyLength: a list with a value for each layer may be too short, the other layers have 0, or too long, the other
	// values are ignored; and where one size is wanted, the first of a list counts. Else these are errors.
	AnyLength bool

	read map[string]bool // names that Get or Ignore had
}

// Key returns the key of a name: "llama.block_count".
func (r *Reader) Key(name string) string { return gguf.ArchKey(r.Arch, name) }

func (r *Reader) counts(name string) bool { return r.Counts == nil || r.Counts(name) }

// Get returns the value of a key.
func (r *Reader) Get(name string) (gguf.Value, bool) {
	if !r.counts(name) {
		return gguf.Value{}, false
	}
	v, ok := r.Metadata.Get(r.Key(name))
	r.Ignore(name)
	return v, ok
}

// Has reports whether Get finds a key; the key does not count as read.
func (r *Reader) Has(name string) bool {
	_, ok := r.Metadata.Get(r.Key(name))
	return ok && r.counts(name)
}

// Ignore counts keys as read that change nothing, or that tensors make superfluous.
func (r *Reader) Ignore(names ...string) {
	if r.read == nil {
		r.read = map[string]bool{}
	}
	for _, name := range names {
		r.read[name] = true
	}
}

// ignoreIf ignores a key that does not count, but has a value that changes nothing.
func (r *Reader) ignoreIf(name string, is func(v gguf.Value) bool) {
	if v, ok := r.Metadata.Get(r.Key(name)); ok && is(v) {
		r.Ignore(name)
	}
}

// WasRead reports whether a key was read or ignored. Floats has whole keys as names.
func (r *Reader) WasRead(name string) bool { return r.read[name] }

// Number returns v, the value of a key or an element of it, which must be a whole number from 0 to most.
func (r *Reader) Number(name string, v gguf.Value, most int64) int64 {
	n, ok := v.Int()
	if !ok || n < 0 || n > most {
		r.Fail(fault.Broken, "%q is %s, want a whole number from 0 to %d", r.Key(name), v.Short(), most)
		return 0
	}
	return n
}

// Size returns a number up to MaxSize, def if there is no such key.
func (r *Reader) Size(name string, def int) int {
	v, ok := r.Get(name)
	if !ok {
		r.ignoreIf(name, func(v gguf.Value) bool { n, ok := v.Int(); return ok && n == int64(def) })
		return def
	}
	if r.AnyLength && v.Type() == gguf.ArrayType {
		for e := range v.Elems() {
			return int(r.Number(name, e, MaxSize))
		}
		return def
	}
	return int(r.Number(name, v, MaxSize))
}

// require fails if there is no such key.
func (r *Reader) require(name string) {
	if _, ok := r.Get(name); !ok {
		r.Fail(fault.Broken, "no key %q", r.Key(name))
	}
}

// RequiredSize is Size for a required key.
func (r *Reader) RequiredSize(name string) int {
	r.require(name)
	return r.Size(name, 0)
}

// Count is RequiredSize for numbers of at least 1.
func (r *Reader) Count(name string) int {
	n := r.RequiredSize(name)
	if n < 1 {
		r.Fail(fault.Broken, "%q is %d, want at least 1", r.Key(name), n)
	}
	return n
}

// Sizes returns a size for each layer; the file has a list or one size for all layers.
func (r *Reader) Sizes(name string, layers, def int) []int {
	v, ok := r.Get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return slices.Repeat([]int{r.Size(name, def)}, layers)
	}
	all, i := make([]int, layers), 0
	for e := range v.Elems() {
		if r.AnyLength {
			if i == layers {
				break
			}
			all[i] = int(r.Number(name, e, MaxSize))
		} else if n, ok := e.Int(); !ok || n < 0 || n > MaxSize || i == layers {
			r.Fail(fault.Broken, "%q is %s, want %d whole numbers", r.Key(name), v.Short(), layers)
			return all
		} else {
			all[i] = int(n)
		}
		i++
	}
	if i != layers && !r.AnyLength {
		r.Fail(fault.Broken, "%q has %d numbers, want one for each of %d layers", r.Key(name), i, layers)
	}
	return all
}

// RequiredSizes is Sizes for a required key.
func (r *Reader) RequiredSizes(name string, layers int) []int {
	r.require(name)
	return r.Sizes(name, layers, 0)
}

// Flags returns a truth value for each layer if the file has a list of them, in which integers other than 0 are true.
// The list may have values for further layers, up to most in all.
func (r *Reader) Flags(name string, layers, most int) (all []bool, ok bool) {
	v, ok := r.Get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return nil, false
	}
	all = make([]bool, layers)
	i := 0
	for e := range v.Elems() {
		b, isBool := e.Bool()
		n, isInt := e.Int()
		switch {
		case r.AnyLength && i == layers:
			return all, true
		case r.AnyLength && !isBool:
			n = r.Number(name, e, MaxSize)
		case !isBool && !isInt, i == most:
			r.Fail(fault.Broken, "%q is %s, want true or false for each of %d layers", r.Key(name), v.Short(), layers)
			return all, true
		}
		if i < layers {
			all[i] = b || n != 0
		}
		i++
	}
	if i < layers && !r.AnyLength {
		r.Fail(fault.Broken, "%q has %d values, want one for each of %d layers", r.Key(name), i, layers)
	}
	return all, true
}

// Float returns a number, def if there is no such key.
func (r *Reader) Float(name string, def float64) float64 {
	v, ok := r.Get(name)
	if !ok {
		r.ignoreIf(name, func(v gguf.Value) bool { f, ok := v.Float(); return ok && float32(f) == float32(def) })
		return def
	}
	f, ok := v.Float()
	if !ok {
		r.Fail(fault.Broken, "%q is %s, want a number", r.Key(name), v.Short())
	}
	return f
}

// Floats returns a number for each layer of a required key, which is a whole key of no architecture; the file has a
// list or one number for all layers.
func (r *Reader) Floats(key string, layers int) []float64 {
	r.Ignore(key)
	all := make([]float64, layers)
	v, ok := r.Metadata.Get(key)
	if !ok {
		r.Fail(fault.Broken, "no key %q", key)
		return all
	}
	if f, ok := v.Float(); ok {
		return slices.Repeat([]float64{f}, layers)
	}
	n := 0
	for e := range v.Elems() {
		f, ok := e.Float()
		if !ok || n == layers {
			r.Fail(fault.Broken, "%q is %s, want %d numbers", key, v.Short(), layers)
			return all
		}
		all[n] = f
		n++
	}
	if n != layers {
		r.Fail(fault.Broken, "%q has %d numbers, want one for each of %d layers", key, n, layers)
	}
	return all
}

// Flag returns a truth value, def if there is no such key.
func (r *Reader) Flag(name string, def bool) bool {
	v, ok := r.Get(name)
	if !ok {
		r.ignoreIf(name, func(v gguf.Value) bool { b, ok := v.Bool(); return ok && b == def })
		return def
	}
	b, ok := v.Bool()
	if !ok {
		r.Fail(fault.Broken, "%q is %s, want true or false", r.Key(name), v.Short())
	}
	return b
}

// Text returns a string, "" if there is no such key.
func (r *Reader) Text(name string) string {
	v, ok := r.Get(name)
	if !ok {
		return ""
	}
	s, ok := v.Str()
	if !ok {
		r.Fail(fault.Broken, "%q is %s, want a string", r.Key(name), v.Short())
	}
	return s
}
