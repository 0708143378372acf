package memory

import (
	"math/bits"

	"ggforge/eval/internal/metadata"
	"ggforge/fault"
	"ggforge/gguf"
)

// keys reads the metadata of a model. Lists may have any length, and keys that nobody reads are fine.
type keys struct {
	*metadata.Reader
	err error // the first
}

func newKeys(m gguf.Metadata) *keys {
	k := &keys{}
	k.Reader = &metadata.Reader{Arch: m.Architecture(), Metadata: m, AnyLength: true,
		Fail: func(_ error, format string, args ...any) { k.fail("key "+format, args...) }}
	return k
}

// fail keeps the first error.
func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fault.Errorf(fault.Broken, format, args...)
	}
}

// size returns a number, def where the file does not have it: the first of a list.
func (k *keys) size(name string, def int64) int64 { return int64(k.Size(name, int(def))) }

// sizes returns a number for each layer: 0 for layers that a list does not reach.
func (k *keys) sizes(name string, layers int, def int64) []int64 {
	all := make([]int64, layers)
	for i, n := range k.Sizes(name, layers, int(def)) {
		all[i] = int64(n)
	}
	return all
}

// context returns a number of tokens, which may be larger than any other size.
func (k *keys) context() int64 {
	v, ok := k.Get("context_length")
	if !ok {
		return 0
	}
	return k.Number("context_length", v, maxContext)
}

// product multiplies sizes, which in a hostile file may be too large for any machine.
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
