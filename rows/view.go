package rows

import (
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
)

// Sources of this file are views: elements of another Source in another order or shape. Shapes are NE, innermost
// dimension first; rows are counted over all outer dimensions.

// Gather returns a tensor of dimensions ne whose row i is row from(i) of s. The
// row length stays.
func Gather(s Source, ne []int64, from func(i int64) int64) (Source, error) {
	if len(ne) == 0 || ne[0] != s.NE()[0] {
		return nil, fmt.Errorf("dimensions %s of rows from %s", gguf.Shape(ne), gguf.Shape(s.NE()))
	}
	if f, ok := s.(*Factors); ok {
		return f.gather(ne, from)
	}
	return &gathered{s, ne, from}, nil
}

type gathered struct {
	Source
	ne   []int64
	from func(int64) int64
}

func (g *gathered) NE() []int64 { return g.ne }

func (g *gathered) Cost() int64 { return g.Source.Cost() + costGather }

func (g *gathered) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n := g.Type().RowBytes(g.ne[0])
	out := buffer.Resize(buf, int((b-a)*n))
	var row []byte
	for i := a; i < b; {
		// consecutive rows are read at once
		first := g.from(i)
		run := int64(1)
		for i+run < b && g.from(i+run) == first+run {
			run++
		}
		raw, err := g.Source.Raw(&row, first, first+run)
		if err != nil {
			return nil, err
		}
		copy(out[(i-a)*n:], raw)
		i += run
	}
	return out, nil
}

// elements returns s, of a plain type, as one column of its elements: every element is a row. Views that regroup
// rows use it for biases.
func elements(s Source) (Source, error) {
	return Reshape(s, []int64{1, gguf.Rows(s.NE()) * s.NE()[0]})
}

// Regroup returns s with its rows in another order: row i is row from(i) of s. The
// rows of a tensor of one dimension, a bias, are its elements; its type must be
// plain then.
func Regroup(s Source, from func(i int64) int64) (Source, error) {
	ne := s.NE()
	if len(ne) > 1 {
		return Gather(s, ne, from)
	}
	column, err := elements(s)
	if err != nil {
		return nil, err
	}
	if column, err = Gather(column, column.NE(), from); err != nil {
		return nil, err
	}
	return Reshape(column, ne)
}

// Slice returns the part [a, b) of dimension dim of s, 0 for the innermost.
func Slice(s Source, dim int, a, b int64) (Source, error) {
	ne := slices.Clone(s.NE())
	if dim >= len(ne) || a < 0 || b > ne[dim] || a >= b {
		return nil, fmt.Errorf("dimensions %s have no part [%d, %d) of dimension %d", gguf.Shape(ne), a, b, dim)
	}
	if dim == 0 && len(ne) == 1 {
		column, err := elements(s)
		if err != nil {
			return nil, err
		}
		if column, err = Gather(column, []int64{1, b - a}, func(i int64) int64 { return a + i }); err != nil {
			return nil, err
		}
		return Reshape(column, []int64{b - a})
	}
	if f, ok := s.(*Factors); ok && dim == 0 {
		return f.columns(a, b)
	}
	if dim == 0 {
		if ne[0]%s.Type().BlockLen() != 0 || a%s.Type().BlockLen() != 0 || b%s.Type().BlockLen() != 0 {
			return nil, fmt.Errorf("columns [%d, %d) of rows in %v are not whole blocks", a, b, s.Type())
		}
		ne[0] = b - a
		return &columns{s, ne, s.Type().RowBytes(s.NE()[0]), s.Type().RowBytes(a), s.Type().RowBytes(b)}, nil
	}
	inner := int64(1) // rows per step of dim
	for _, n := range ne[1:dim] {
		inner *= n
	}
	outer := inner * ne[dim]
	ne[dim] = b - a
	return Gather(s, ne, func(i int64) int64 { return i/(inner*(b-a))*outer + a*inner + i%(inner*(b-a)) })
}

// columns is a range of columns of every row.
type columns struct {
	Source
	ne            []int64
	row, from, to int64 // in bytes
}

func (c *columns) NE() []int64 { return c.ne }

// Cost counts the columns that are read and left out, too.
func (c *columns) Cost() int64 { return c.Source.Cost()*c.row/(c.to-c.from) + costGather }

func (c *columns) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	var all []byte
	raw, err := c.Source.Raw(&all, a, b)
	if err != nil {
		return nil, err
	}
	n := c.to - c.from
	out := buffer.Resize(buf, int((b-a)*n))
	for i := range b - a {
		copy(out[i*n:(i+1)*n], raw[i*c.row+c.from:])
	}
	return out, nil
}

// UngroupQKV returns the rows of a fused QKV projection in another order. s lies in
// groups, each of perGroup query heads, a key head and a value head of equal
// sizes; the result has all queries, then all keys, then all values. s is a
// matrix, or a bias whose elements are the rows.
func UngroupQKV(s Source, groups, perGroup int64) (Source, error) {
	ne := s.NE()
	n := ne[len(ne)-1]
	if len(ne) > 2 || groups <= 0 || perGroup <= 0 || perGroup > n || n/groups < perGroup+2 || n%groups != 0 ||
		n/groups%(perGroup+2) != 0 {
		return nil, fmt.Errorf("dimensions %s, want rows for %d groups of %d+2 heads", gguf.Shape(ne), groups, perGroup)
	}
	group := n / groups
	head := group / (perGroup + 2)
	q, k := groups*perGroup*head, groups*head // rows of all queries, of all keys
	return Regroup(s, func(i int64) int64 {
		switch {
		case i < q:
			return i/(perGroup*head)*group + i%(perGroup*head)
		case i < q+k:
			i -= q
			return i/head*group + perGroup*head + i%head
		default:
			i -= q + k
			return i/head*group + (perGroup+1)*head + i%head
		}
	})
}

// Reshape returns s with other dimensions of the same number of elements, in the
// same order. Rows of a blocked type must stay whole blocks.
func Reshape(s Source, ne []int64) (Source, error) {
	old := s.NE()
	if slices.Contains(ne, 0) || len(ne) == 0 || gguf.Rows(ne)*ne[0] != gguf.Rows(old)*old[0] {
		return nil, fmt.Errorf("dimensions %s cannot become %s", gguf.Shape(old), gguf.Shape(ne))
	}
	if f, ok := s.(*Factors); ok {
		return f.reshape(ne)
	}
	if ne[0]%s.Type().BlockLen() != 0 {
		return nil, fmt.Errorf("rows of %d are not whole blocks of %v", ne[0], s.Type())
	}
	if slices.Equal(ne, old) {
		return s, nil
	}
	return &reshaped{s, ne}, nil
}

type reshaped struct {
	Source
	ne []int64
}

func (r *reshaped) NE() []int64 { return r.ne }

func (r *reshaped) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n, old := r.ne[0], r.Source.NE()[0]
	first, end := a*n, b*n // elements
	raw, err := r.Source.Raw(buf, first/old, (end+old-1)/old)
	if err != nil {
		return nil, err
	}
	skip := r.Type().RowBytes(first % old)
	return raw[skip : skip+r.Type().RowBytes(end-first)], nil
}
