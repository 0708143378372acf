package rows

import (
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// DivideRows returns the matrix s with each row divided by a number: row i by element i of
// by, or by least where that is more. As in PyTorch, which computes it in float32, least
// and the quotients are rounded to the type of s, which is that of by.
func DivideRows(s, by Source, least float32) (Source, error) {
	ne := s.NE()
	if len(ne) != 2 || !slices.Equal(by.NE(), ne[1:]) {
		return nil, fault.Errorf(fault.Broken, "rows of %s cannot be divided by numbers of %s", gguf.Shape(ne),
			gguf.Shape(by.NE()))
	}
	if s.Type() != by.Type() {
		return nil, fault.Errorf(fault.Unsupported, "rows in %v, and what they are divided by in %v: want one type",
			s.Type(), by.Type())
	}
	atLeast := Map(by, func(x []float32) {
		for i := range x {
			x[i] = max(x[i], least)
		}
	})
	column, err := elements(Convert(atLeast, s.Type()))
	if err != nil {
		return nil, err
	}
	return Convert(&quotients{s, column, mappedType(s)}, s.Type()), nil
}

type quotients struct {
	Source
	by  Source // a column
	typ gguf.Type
}

func (q *quotients) Type() gguf.Type { return q.typ }

func (q *quotients) Cost() int64 {
	return q.Source.Cost() + costDecode + quants.Lookup(q.typ).Cost(false)
}

func (q *quotients) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	n, rowLen := int(b-a), int(q.NE()[0])
	scratch.f32 = slices.Grow(scratch.f32[:0], n*rowLen+n)[:n*rowLen+n]
	x, by := scratch.f32[:n*rowLen], scratch.f32[n*rowLen:]
	if err := Decode(q.Source, x, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	if err := Decode(q.by, by, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	for i, d := range by {
		row := x[i*rowLen:][:rowLen]
		for j := range row {
			row[j] /= d
		}
	}
	out := buffer.Resize(buf, int(q.typ.RowBytes(int64(len(x)))))
	return out, quants.Lookup(q.typ).Quantize(out, x, rowLen, nil)
}
