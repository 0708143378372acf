package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/vecmath"
)

// keys reads the metadata of a model and remembers what was asked for: a key of the
// architecture that nobody asks for may change the graph, so that it is refused.
type keys struct {
	file string
	arch string
	m    gguf.Metadata
	used map[string]bool
	err  error // the first
}

func newKeys(file string, m gguf.Metadata) *keys {
	return &keys{file: file, arch: m.Architecture(), m: m, used: map[string]bool{}}
}

// fail keeps the first error.
func (k *keys) fail(kind error, format string, args ...any) {
	if k.err == nil {
		k.err = fault.Errorf(kind, "%s: "+format, append([]any{k.file}, args...)...)
	}
}

// get returns the value of a key of the architecture.
func (k *keys) get(name string) (gguf.Value, bool) {
	k.used[name] = true
	return k.m.Get(k.arch + "." + name)
}

// has reports whether there is a key, without asking for it.
func (k *keys) has(name string) bool {
	_, ok := k.m.Get(k.arch + "." + name)
	return ok
}

// limit is the largest size that any key may give: a row of 16 Mi values is more than
// any model has.
const limit = 1 << 24

// size returns a number that counts something: def if there is no such key, an error if
// that is negative.
func (k *keys) size(name string, def int) int {
	v, ok := k.get(name)
	if !ok {
		if def < 0 {
			k.fail(fault.Broken, "no key %q", k.arch+"."+name)
		}
		return def
	}
	n, ok := v.Int()
	if !ok || n < 0 || n > limit {
		k.fail(fault.Broken, "%q is %v, want a whole number from 0 to %d", k.arch+"."+name, v, limit)
		return 0
	}
	return int(n)
}

// count is size for what there has to be at least one of.
func (k *keys) count(name string) int {
	n := k.size(name, -1)
	if n < 1 {
		k.fail(fault.Broken, "%q is %d, want at least 1", k.arch+"."+name, n)
		return 1
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
			break
		}
		list = append(list, int(n))
	}
	if len(list) != layers {
		k.fail(fault.Broken, "%q has %d numbers, want one for each of %d layers", k.arch+"."+name, len(list), layers)
		return make([]int, layers)
	}
	return list
}

// each returns a number for each layer of a key of no architecture, where the file has one
// for all or one for each.
func (k *keys) each(key string, layers int) []float64 {
	k.used[key] = true
	list := make([]float64, layers)
	v, ok := k.m.Get(key)
	if !ok {
		k.fail(fault.Broken, "no key %q", key)
		return list
	}
	n := 0
	for e := range v.Elems() {
		f, ok := e.Float()
		if !ok || n == layers {
			k.fail(fault.Broken, "%q is %v, want %d numbers", key, v, layers)
			return list
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

// pattern returns a truth value for each layer or, where the file has one number, that. The
// file may have values for further layers, up to most in all.
func (k *keys) pattern(name string, layers, most int) (each []bool, every int) {
	v, ok := k.get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return nil, k.size(name, 0)
	}
	for e := range v.Elems() {
		b, ok := e.Bool()
		if n, isInt := e.Int(); isInt {
			b, ok = n != 0, true
		}
		if !ok || len(each) == most {
			k.fail(fault.Broken, "%q is %v, want true or false for each of %d layers", k.arch+"."+name, v, layers)
			break
		}
		each = append(each, b)
	}
	if len(each) < layers {
		k.fail(fault.Broken, "%q has %d values, want one for each of %d layers", k.arch+"."+name, len(each), layers)
		return make([]bool, layers), 0
	}
	return each[:layers], 0
}

// float returns a number, def if there is no such key.
func (k *keys) float(name string, def float64) float64 {
	v, ok := k.get(name)
	if !ok {
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
	"gelu": vecmath.GELUErfOf, "gelu_python": vecmath.GELUErfOf, "gelu_new": vecmath.GELUOf, "gelu_pytorch_tanh": vecmath.GELUOf,
	"silu": vecmath.SiLUOf, "swiglu": vecmath.SiLUOf, "tanh": vecmath.TanhOf,
}

// activation returns the function that a key names, def if there is no such key.
func (k *keys) activation(name string, def vecmath.Function) vecmath.Function {
	s := k.text(name)
	if s == "" {
		return def
	}
	f, ok := activations[s]
	if !ok {
		k.fail(fault.Unsupported, "%q is %q, want one of %s", k.arch+"."+name, s, strings.Join(slices.Sorted(maps.Keys(activations)), ", "))
	}
	return f
}

// known are the beginnings of keys that say nothing about how a model computes.
var known = []string{"general.", "tokenizer.", "quantize.", "split."}

// idle are keys that do not change what a model computes for a text.
var idle = []string{"context_length", "vocab_size", "tensor_data_layout"}

// rest returns an error if there is a key, of the architecture or of nothing known, that
// nobody asked for.
func (k *keys) rest() error {
	if k.err != nil {
		return k.err
	}
	var left []string
	for _, kv := range k.m {
		name, ok := strings.CutPrefix(kv.Key, k.arch+".")
		if !ok && slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(kv.Key, p) }) {
			continue
		}
		if !k.used[kv.Key] && (!ok || !k.used[name] && !slices.Contains(idle, name)) {
			left = append(left, fmt.Sprintf("%s = %s", kv.Key, kv.Value.Short()))
		}
	}
	if len(left) > 0 {
		return fault.Errorf(fault.Unsupported, "%s: keys that the graph of %q does not know: %s", k.file, k.arch, strings.Join(left, ", "))
	}
	return nil
}
