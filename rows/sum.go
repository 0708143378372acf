package rows

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Sum returns the sums of the elements of a and b, which agree in their dimensions. The
// result is F16 if both are, each sum rounded to it, and F32 otherwise; as in PyTorch,
// sums begin at 0, so two negative zeros give a positive one.
func Sum(a, b Source) (Source, error) {
	if !slices.Equal(a.NE(), b.NE()) {
		return nil, fmt.Errorf("dimensions %s and %s have no sum", gguf.Shape(a.NE()), gguf.Shape(b.NE()))
	}
	t := gguf.TypeF32
	if a.Type() == gguf.TypeF16 && b.Type() == gguf.TypeF16 {
		t = gguf.TypeF16
	}
	return &pairs{a, b, t}, nil
}

type pairs struct {
	a, b Source
	typ  gguf.Type
}

func (s *pairs) NE() []int64     { return s.a.NE() }
func (s *pairs) Type() gguf.Type { return s.typ }

func (s *pairs) Cost() int64 {
	return s.a.Cost() + s.b.Cost() + 2*costDecode + quants.Lookup(s.typ).Cost(false)
}

func (s *pairs) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	first, second := floats.Get().(*scratch), floats.Get().(*scratch)
	defer floats.Put(first)
	defer floats.Put(second)
	rowLen := gguf.RowLen(s.NE())
	n := int((b - a) * rowLen)
	first.f32 = slices.Grow(first.f32[:0], n)[:n]
	second.f32 = slices.Grow(second.f32[:0], n)[:n]
	if err := Decode(s.a, first.f32, &first.raw, a, b); err != nil {
		return nil, err
	}
	if err := Decode(s.b, second.f32, &second.raw, a, b); err != nil {
		return nil, err
	}
	for i, f := range second.f32 {
		first.f32[i] = 0 + first.f32[i] + f
	}
	out := buffer.Resize(buf, int(s.typ.RowBytes(int64(n))))
	return out, quants.Lookup(s.typ).Quantize(out, first.f32, int(rowLen), nil)
}
