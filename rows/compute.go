package rows

import (
	"slices"
	"sync"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Map returns s with f applied to its elements, a few rows at a time: f changes
// them in place. The result is F16 if s is, each element rounded to it, and F32
// otherwise, as in llama.cpp's converter, which widens all other types before it
// computes in PyTorch.
func Map(s Source, f func([]float32)) Source {
	return &mapped{s, mappedType(s), func(x []float32, _ int64) { f(x) }}
}

// mappedType is the type of the result of Map.
func mappedType(s Source) gguf.Type {
	if s.Type() == gguf.TypeF16 {
		return gguf.TypeF16
	}
	return gguf.TypeF32
}

type mapped struct {
	Source
	typ gguf.Type
	f   func(x []float32, first int64) // x begins with element first of all
}

func (m *mapped) Type() gguf.Type { return m.typ }

func (m *mapped) Cost() int64 { return m.Source.Cost() + costDecode + quants.Lookup(m.typ).Cost(false) }

func (m *mapped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	rowLen := gguf.RowLen(m.NE())
	n := int((b - a) * rowLen)
	scratch.f32 = slices.Grow(scratch.f32[:0], n)[:n]
	if err := Decode(m.Source, scratch.f32, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	m.f(scratch.f32, a*rowLen)
	out := buffer.Resize(buf, int(m.typ.RowBytes(int64(n))))
	return out, quants.Lookup(m.typ).Quantize(out, scratch.f32, int(rowLen), nil)
}

// Add returns a function for Map that adds c.
func Add(c float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] += c
		}
	}
}

// Scale returns a function for Map that multiplies by c.
func Scale(c float32) func([]float32) {
	return func(x []float32) {
		for i := range x {
			x[i] *= c
		}
	}
}

// Compute returns a float32 tensor of dimensions ne whose rows are computed: fill sets dst to whole rows, from the
// given one on. It is called by many goroutines at once.
func Compute(ne []int64, fill func(dst []float32, row int64)) Source { return &computed{ne, fill} }

type computed struct {
	ne   []int64
	fill func([]float32, int64)
}

func (c *computed) NE() []int64 { return c.ne }

func (c *computed) Type() gguf.Type { return gguf.TypeF32 }

func (c *computed) Cost() int64 { return costCompute }

func (c *computed) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	n := int((b - a) * gguf.RowLen(c.ne))
	scratch.f32 = slices.Grow(scratch.f32[:0], n)[:n]
	c.fill(scratch.f32, a)
	out := buffer.Resize(buf, 4*n)
	return out, quants.Lookup(gguf.TypeF32).Quantize(out, scratch.f32, int(gguf.RowLen(c.ne)), nil)
}

// Prepared returns a source of the given dimensions and type that prepare makes at the first read; other readers wait.
// Its cost is estimated as twice that of encoding an element: once to prepare, once to read.
func Prepared(ne []int64, t gguf.Type, prepare func() (Source, error)) Source {
	return &prepared{ne, t, sync.OnceValues(prepare)}
}

type prepared struct {
	ne  []int64
	typ gguf.Type
	get func() (Source, error)
}

func (p *prepared) NE() []int64 { return p.ne }

func (p *prepared) Type() gguf.Type { return p.typ }

func (p *prepared) Cost() int64 { return 2 * (costDecode + quants.Lookup(p.typ).Cost(false)) }

func (p *prepared) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	s, err := p.get()
	if err != nil {
		return nil, err
	}
	return s.Raw(buf, a, b)
}
