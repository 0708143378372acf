package rows

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Concat returns the parts one after the other along the outermost dimension.
// All must agree in the other dimensions; parts of different types become F32, as
// in a sum of tensors.
func Concat(parts []Source) (Source, error) {
	if s, ok, err := concatFactors(parts); ok || err != nil {
		return s, err
	}
	ne := slices.Clone(parts[0].NE())
	last := len(ne) - 1
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		if len(p.NE()) != len(ne) || !slices.Equal(p.NE()[:last], ne[:last]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(p.NE()))
		}
		ne[last] += p.NE()[last]
	}
	if last > 0 {
		return newJoined(parts, ne), nil
	}
	var columns []Source
	for _, p := range parts {
		c, err := elements(p)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	return Reshape(newJoined(columns, []int64{1, ne[0]}), ne)
}

// ConcatRows joins the matrices of the parts one below the other: along the second
// dimension, slice by slice if there are more.
func ConcatRows(parts []Source) (Source, error) {
	ne := slices.Clone(parts[0].NE())
	if len(ne) < 2 {
		return nil, fmt.Errorf("dimensions %s, want at least two", gguf.Shape(ne))
	}
	if len(ne) == 2 {
		return Concat(parts)
	}
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	slicesOf := gguf.Rows(ne) / ne[1]
	var all []Source
	height := int64(0)
	for _, p := range parts {
		if n := p.NE(); len(n) != len(ne) || n[0] != ne[0] || !slices.Equal(n[2:], ne[2:]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(n))
		}
		height += p.NE()[1]
	}
	for i := range slicesOf {
		for _, p := range parts {
			h := p.NE()[1]
			part, err := Gather(p, []int64{ne[0], h}, func(r int64) int64 { return i*h + r })
			if err != nil {
				return nil, err
			}
			all = append(all, part)
		}
	}
	ne[1] = height
	return newJoined(all, ne), nil
}

// ConcatColumns joins the rows of the parts, which agree in all dimensions but the
// innermost. The types must be plain; parts of different types become F32.
func ConcatColumns(parts []Source) (Source, error) {
	ne := slices.Clone(parts[0].NE())
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	if parts[0].Type().BlockLen() > 1 {
		return nil, fmt.Errorf("columns of %v do not join", parts[0].Type())
	}
	for _, p := range parts[1:] {
		if len(p.NE()) != len(ne) || !slices.Equal(p.NE()[1:], ne[1:]) {
			return nil, fmt.Errorf("dimensions %s and %s do not join", gguf.Shape(ne), gguf.Shape(p.NE()))
		}
		ne[0] += p.NE()[0]
	}
	return &widened{&joined{parts: parts, ne: ne}}, nil
}

// Stack returns the parts, which agree in all dimensions, along a new outermost
// dimension.
func Stack(parts []Source) (Source, error) {
	if s, ok, err := stackFactors(parts); ok {
		return s, err
	}
	ne := parts[0].NE()
	parts, err := common(parts)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		if !slices.Equal(p.NE(), ne) {
			return nil, fmt.Errorf("dimensions %s and, number %d, %s do not stack", gguf.Shape(ne), i,
				gguf.Shape(p.NE()))
		}
	}
	return newJoined(parts, append(slices.Clone(ne), int64(len(parts)))), nil
}

// common gives all parts one type.
func common(parts []Source) ([]Source, error) {
	t := parts[0].Type()
	if !slices.ContainsFunc(parts, func(p Source) bool { return p.Type() != t }) {
		return parts, nil
	}
	var out []Source
	for _, p := range parts {
		if !quants.Lookup(p.Type()).CanDequantize() {
			return nil, fmt.Errorf("%v and %v do not join", t, p.Type())
		}
		out = append(out, Convert(p, gguf.TypeF32))
	}
	return out, nil
}

type joined struct {
	parts []Source
	first []int64 // row at which each part begins
	ne    []int64
}

func newJoined(parts []Source, ne []int64) Source {
	j := &joined{parts: parts, ne: ne}
	n := int64(0)
	for _, p := range parts {
		j.first = append(j.first, n)
		n += gguf.Rows(p.NE())
	}
	return j
}

func (j *joined) NE() []int64 { return j.ne }

func (j *joined) Type() gguf.Type { return j.parts[0].Type() }

// Cost is the mean of the parts.
func (j *joined) Cost() int64 {
	sum, n := int64(0), int64(0)
	for _, p := range j.parts {
		elements := gguf.Rows(p.NE()) * gguf.RowLen(p.NE())
		sum += elements * p.Cost()
		n += elements
	}
	return sum / max(n, 1)
}

func (j *joined) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	i, found := slices.BinarySearch(j.first, a)
	if !found {
		i--
	}
	if b <= j.first[i]+gguf.Rows(j.parts[i].NE()) {
		return j.parts[i].Raw(buf, a-j.first[i], b-j.first[i])
	}
	n := j.Type().RowBytes(j.ne[0])
	out := buffer.Resize(buf, int((b-a)*n))
	var some []byte
	for row := a; row < b; i++ {
		end := min(b, j.first[i]+gguf.Rows(j.parts[i].NE()))
		raw, err := j.parts[i].Raw(&some, row-j.first[i], end-j.first[i])
		if err != nil {
			return nil, err
		}
		copy(out[(row-a)*n:], raw)
		row = end
	}
	return out, nil
}

// widened is parts next to each other.
type widened struct{ *joined }

func (w *widened) Cost() int64 { return w.joined.Cost() + costGather }

func (w *widened) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	t := w.Type()
	row := t.RowBytes(w.ne[0])
	out := buffer.Resize(buf, int((b-a)*row))
	at := int64(0)
	for _, p := range w.parts {
		raw, err := p.Raw(&scratch.raw, a, b)
		if err != nil {
			return nil, err
		}
		n := t.RowBytes(p.NE()[0])
		for i := range b - a {
			copy(out[i*row+at:], raw[i*n:(i+1)*n])
		}
		at += n
	}
	return out, nil
}
