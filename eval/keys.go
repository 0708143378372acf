package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
)

// keys reads the metadata of a model and records which keys were read: a key of the architecture that was not read may
// change the graph and is refused.
type keys struct {
	file string
	arch string
	m    gguf.Metadata
	used map[string]bool
}

func newKeys(file string, m gguf.Metadata) *keys {
	return &keys{file: file, arch: m.Architecture(), m: m, used: map[string]bool{}}
}

// buildError is the panic value of fail; New returns its error.
type buildError struct{ err error }

// fail ends the construction of a model.
func (k *keys) fail(kind error, format string, args ...any) {
	panic(buildError{fault.Errorf(kind, "%s: "+format, append([]any{k.file}, args...)...)})
}

// get returns the value of a key of the architecture. A key that llama.cpp does not read in files of this architecture
// counts as missing.
func (k *keys) get(name string) (gguf.Value, bool) {
	v, ok := k.m.Get(k.arch + "." + name)
	switch keyUse(k.arch, name) {
	case unread:
		return gguf.Value{}, false
	case required:
		if !ok {
			k.fail(fault.Broken, "no key %q, which runtimes require of this architecture",
				k.arch+"."+name)
		}
	}
	k.used[name] = true
	return v, ok
}

// has reports whether get finds a key, without recording that it was read.
func (k *keys) has(name string) bool {
	_, ok := k.m.Get(k.arch + "." + name)
	return ok && keyUse(k.arch, name) != unread
}

// ignore passes over keys that change nothing, or that tensors make superfluous.
func (k *keys) ignore(names ...string) {
	for _, name := range names {
		k.used[name] = true
	}
}

// ignoreIf passes over a key that does not count, but has a value that changes nothing.
func (k *keys) ignoreIf(name string, is func(v gguf.Value) bool) {
	if v, ok := k.m.Get(k.arch + "." + name); ok && is(v) {
		k.ignore(name)
	}
}

// limit is the largest size that any key may give: a row of 16 Mi values is more than
// any model has.
const limit = 1 << 24

// size returns a count: def if there is no such key; a missing key is an error if def is negative.
func (k *keys) size(name string, def int) int {
	v, ok := k.get(name)
	if !ok {
		if def < 0 {
			k.fail(fault.Broken, "no key %q", k.arch+"."+name)
		}
		k.ignoreIf(name, func(v gguf.Value) bool { n, ok := v.Int(); return ok && n == int64(def) })
		return def
	}
	n, ok := v.Int()
	if !ok || n < 0 || n > limit {
		k.fail(fault.Broken, "%q is %v, want a whole number from 0 to %d", k.arch+"."+name, v, limit)
	}
	return int(n)
}

// count is size for required keys of at least 1.
func (k *keys) count(name string) int {
	n := k.size(name, -1)
	if n < 1 {
		k.fail(fault.Broken, "%q is %d, want at least 1", k.arch+"."+name, n)
	}
	return n
}

// sizes returns a number for each layer, where the file has one for all or one for each.
func (k *keys) sizes(name string, layers, def int) []int {
	v, ok := k.get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return slices.Repeat([]int{k.size(name, def)}, layers)
	}
	list := make([]int, 0, layers)
	for e := range v.Elems() {
		n, ok := e.Int()
		if !ok || n < 0 || n > limit || len(list) == layers {
			k.fail(fault.Broken, "%q is %v, want %d whole numbers", k.arch+"."+name, v, layers)
		}
		list = append(list, int(n))
	}
	if len(list) != layers {
		k.fail(fault.Broken, "%q has %d numbers, want one for each of %d layers", k.arch+"."+name, len(list), layers)
	}
	return list
}

// perLayer returns a number for each layer of a key of no architecture, where the file has one
// for all or one for each.
func (k *keys) perLayer(key string, layers int) []float64 {
	k.used[key] = true
	list := make([]float64, layers)
	v, ok := k.m.Get(key)
	if !ok {
		k.fail(fault.Broken, "no key %q", key)
	}
	n := 0
	for e := range v.Elems() {
		f, ok := e.Float()
		if !ok || n == layers {
			k.fail(fault.Broken, "%q is %v, want %d numbers", key, v, layers)
		}
		list[n] = f
		n++
	}
	if f, ok := v.Float(); ok {
		return slices.Repeat([]float64{f}, layers)
	}
	if n != layers {
		k.fail(fault.Broken, "%q has %d numbers, want one for each of %d layers", key, n, layers)
	}
	return list
}

// pattern returns a truth value for each layer or, where the file has one number, that; def
// without either. The file may have values for further layers, up to most in all.
func (k *keys) pattern(name string, layers, most, def int) (each []bool, every int) {
	v, ok := k.get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return nil, k.size(name, def)
	}
	for e := range v.Elems() {
		b, ok := e.Bool()
		if n, isInt := e.Int(); isInt {
			b, ok = n != 0, true
		}
		if !ok || len(each) == most {
			k.fail(fault.Broken, "%q is %v, want true or false for each of %d layers", k.arch+"."+name, v, layers)
		}
		each = append(each, b)
	}
	if len(each) < layers {
		k.fail(fault.Broken, "%q has %d values, want one for each of %d layers", k.arch+"."+name, len(each), layers)
	}
	return each[:layers], 0
}

// float returns a number, def if there is no such key.
func (k *keys) float(name string, def float64) float64 {
	v, ok := k.get(name)
	if !ok {
		k.ignoreIf(name, func(v gguf.Value) bool { f, ok := v.Float(); return ok && float32(f) == float32(def) })
		return def
	}
	f, ok := v.Float()
	if !ok {
		k.fail(fault.Broken, "%q is %v, want a number", k.arch+"."+name, v)
	}
	return f
}

// flag returns a truth value, def if there is no such key.
func (k *keys) flag(name string, def bool) bool {
	v, ok := k.get(name)
	if !ok {
		k.ignoreIf(name, func(v gguf.Value) bool { b, ok := v.Bool(); return ok && b == def })
		return def
	}
	b, ok := v.Bool()
	if !ok {
		k.fail(fault.Broken, "%q is %v, want true or false", k.arch+"."+name, v)
	}
	return b
}

// text returns a string, "" if there is no such key.
func (k *keys) text(name string) string {
	v, ok := k.get(name)
	if !ok {
		return ""
	}
	s, ok := v.Str()
	if !ok {
		k.fail(fault.Broken, "%q is %v, want a string", k.arch+"."+name, v)
	}
	return s
}

// activations are the functions that keys name. "gelu" is the exact one.
var activations = map[string]vecmath.Function{
	"gelu": vecmath.GELUErfOf, "gelu_python": vecmath.GELUErfOf, "gelu_new": vecmath.GELUOf,
	"gelu_pytorch_tanh": vecmath.GELUOf,
	"silu":              vecmath.SiLUOf, "swiglu": vecmath.SiLUOf, "tanh": vecmath.TanhOf,
}

// activation returns the function that a key names, def if there is no such key.
func (k *keys) activation(name string, def vecmath.Function) vecmath.Function {
	s := k.text(name)
	if s == "" {
		return def
	}
	f, ok := activations[s]
	if !ok {
		k.fail(fault.Unsupported, "%q is %q, want one of %s", k.arch+"."+name, s,
			strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return f
}

// ignoredPrefixes are those of keys without influence on the graph.
var ignoredPrefixes = []string{"general.", "tokenizer.", "quantize.", "split."}

// ignoredKeys are keys that do not change what a model computes for a text.
var ignoredKeys = []string{"context_length", "vocab_size", "tensor_data_layout"}

// checkUnused returns an error if there is a key, of the architecture or of nothing known, that
// nobody asked for.
func (k *keys) checkUnused() error {
	var left []string
	for _, kv := range k.m {
		name, ok := strings.CutPrefix(kv.Key, k.arch+".")
		if gguf.OwnKey(kv.Key) || !ok && slices.ContainsFunc(ignoredPrefixes,
			func(p string) bool { return strings.HasPrefix(kv.Key, p) }) {
			continue
		}
		if !k.used[kv.Key] && (!ok || !k.used[name] && !slices.Contains(ignoredKeys, name)) {
			left = append(left, fmt.Sprintf("%s = %s", kv.Key, kv.Value.Short()))
		}
	}
	if len(left) > 0 {
		return fault.Errorf(fault.Unsupported,
			"%s: metadata keys not supported by the %q evaluator: %s; ggeval refuses because they may change results",
			k.file, k.arch, strings.Join(left, ", "))
	}
	return nil
}
