package memory

import (
	"math/bits"

	"ggforge/fault"
	"ggforge/gguf"
)

// limit is the largest number that a key or a dimension may be: no model has rows, layers or
// heads of more.
const limit = 1 << 24

// keys reads the metadata of a model.
type keys struct {
	arch string
	m    map[string]gguf.Value
	err  error // the first
}

func newKeys(m gguf.Metadata) *keys {
	k := &keys{arch: m.Architecture(), m: make(map[string]gguf.Value, len(m))}
	for _, kv := range m {
		k.m[kv.Key] = kv.Value
	}
	return k
}

// fail keeps the first error.
func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fault.Errorf(fault.Broken, format, args...)
	}
}

// get returns the value of a key of the architecture.
func (k *keys) get(name string) (gguf.Value, bool) {
	v, ok := k.m[k.arch+"."+name]
	return v, ok
}

func (k *keys) has(name string) bool {
	_, ok := k.get(name)
	return ok
}

// number checks that v is a size.
func (k *keys) number(name string, v gguf.Value) int64 {
	n, ok := v.Int()
	if !ok || n < 0 || n > limit {
		k.fail("key %q is %s, want a whole number from 0 to %d", k.arch+"."+name, v.Short(), limit)
		return 0
	}
	return n
}

// size returns a number, def where the file does not have it. Of a list of numbers, one
// for each layer, it returns the first.
func (k *keys) size(name string, def int64) int64 {
	v, ok := k.get(name)
	if !ok {
		return def
	}
	if v.Type() == gguf.ArrayType {
		for e := range v.Elems() {
			return k.number(name, e)
		}
		return def
	}
	return k.number(name, v)
}

// context returns a number of tokens, which may be larger than any other size.
func (k *keys) context() int64 {
	v, ok := k.get("context_length")
	if !ok {
		return 0
	}
	n, ok := v.Int()
	if !ok || n < 0 || n > maxContext {
		k.fail("key %q is %s, want a whole number from 0 to %d", k.arch+".context_length", v.Short(), int64(maxContext))
		return 0
	}
	return n
}

// sizes returns a number for each layer, where the file has one for all or one for each:
// zero for layers that a list does not reach.
func (k *keys) sizes(name string, layers int, def int64) []int64 {
	all := make([]int64, layers)
	v, ok := k.get(name)
	if ok && v.Type() == gguf.ArrayType {
		i := 0
		for e := range v.Elems() {
			if i == layers {
				break
			}
			all[i] = k.number(name, e)
			i++
		}
		return all
	}
	n := k.size(name, def)
	for i := range all {
		all[i] = n
	}
	return all
}

// flags returns a truth for each layer where the file has a list of them: numbers other
// than 0 are true. ok is false where it has no such list.
func (k *keys) flags(name string, layers int) (all []bool, ok bool) {
	v, ok := k.get(name)
	if !ok || v.Type() != gguf.ArrayType {
		return nil, false
	}
	all = make([]bool, layers)
	i := 0
	for e := range v.Elems() {
		if i == layers {
			break
		}
		if b, ok := e.Bool(); ok {
			all[i] = b
		} else {
			all[i] = k.number(name, e) != 0
		}
		i++
	}
	return all, true
}

// product multiplies sizes. Those of a hostile file may be too large for any machine.
func (k *keys) product(what string, factors ...int64) int64 {
	p := uint64(1)
	for _, f := range factors {
		hi, lo := bits.Mul64(p, uint64(f))
		if hi != 0 || lo > 1<<60 {
			k.fail("%s: too large for any machine", what)
			return 0
		}
		p = lo
	}
	return int64(p)
}

// sum adds sizes.
func (k *keys) sum(what string, a, b int64) int64 {
	if a+b < 0 || a+b > 1<<60 {
		k.fail("%s: too large for any machine", what)
		return 0
	}
	return a + b
}
