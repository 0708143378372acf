package rows

import (
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Factors is a matrix that is known as the product of two, or a stack of such: element
// j of row i is the sum over k of element k of row i of B and element j of row k of A.
// It has no rows of its own. The views of this package that leave rows whole, or cut
// all of them alike, give Factors again: a permutation of rows is one of B's rows, and
// so on. Other views of Factors are an error of kind fault.Unsupported.
//
//	A   ne [n, rank]         or [n, rank, count]
//	B   ne [rank, m]         or [rank, m, count]
//	NE  [n, m]               or [n, m, count]
type Factors struct {
	A, B Source
	ne   []int64
}

// NewFactors returns the product of two matrices.
func NewFactors(a, b Source) (*Factors, error) {
	if len(a.NE()) != 2 || len(b.NE()) != 2 || a.NE()[1] != b.NE()[0] {
		return nil, fault.Errorf(fault.Broken, "dimensions %s and %s, want two matrices of one rank",
			gguf.Shape(a.NE()), gguf.Shape(b.NE()))
	}
	return &Factors{a, b, []int64{a.NE()[0], b.NE()[1]}}, nil
}

// Rank returns the number of products that are summed for an element.
func (f *Factors) Rank() int64 { return f.B.NE()[0] }

// NE returns the dimensions of the product.
func (f *Factors) NE() []int64 { return f.ne }

// Type returns F32: products are computed in it.
func (f *Factors) Type() gguf.Type { return gguf.TypeF32 }

// Cost returns that of the factors; nothing multiplies them.
func (f *Factors) Cost() int64 { return f.A.Cost() + f.B.Cost() }

// Raw returns an error: see Factors.
func (f *Factors) Raw(*[]byte, int64, int64) ([]byte, error) {
	return nil, fault.Errorf(fault.Unsupported, "a product of two matrices is not computed for this")
}

// stacked reports whether each matrix of a stack has factors of its own.
func (f *Factors) stacked() bool { return len(f.A.NE()) > 2 }

// gather is Gather.
func (f *Factors) gather(ne []int64, from func(int64) int64) (Source, error) {
	if f.stacked() {
		if len(ne) < 3 || !slices.Equal(ne[2:], f.ne[2:]) {
			return nil, fault.Errorf(fault.Unsupported,
				"rows of %s cannot become %s when each matrix is a product of its own", gguf.Shape(f.ne),
				gguf.Shape(ne))
		}
		for i := range gguf.Rows(ne) {
			if from(i)/f.ne[1] != i/ne[1] {
				return nil, fault.Errorf(fault.Unsupported,
					"rows would move from one matrix to another, and each is a product of its own")
			}
		}
	}
	b, err := Gather(f.B, append([]int64{f.Rank()}, ne[1:]...), from)
	if err != nil {
		return nil, err
	}
	return &Factors{f.A, b, ne}, nil
}

// columns is Slice of the innermost dimension.
func (f *Factors) columns(a, b int64) (Source, error) {
	part, err := Slice(f.A, 0, a, b)
	if err != nil {
		return nil, err
	}
	ne := slices.Clone(f.ne)
	ne[0] = b - a
	return &Factors{part, f.B, ne}, nil
}

// reshape is Reshape.
func (f *Factors) reshape(ne []int64) (Source, error) {
	if slices.Equal(ne, f.ne) {
		return f, nil
	}
	if len(ne) < 2 || ne[0] != f.ne[0] || f.stacked() {
		return nil, fault.Errorf(fault.Unsupported, "a product of dimensions %s cannot become one of %s",
			gguf.Shape(f.ne), gguf.Shape(ne))
	}
	b, err := Reshape(f.B, append([]int64{f.Rank()}, ne[1:]...))
	if err != nil {
		return nil, err
	}
	return &Factors{f.A, b, ne}, nil
}

// transpose is Transpose: the factors change places.
func (f *Factors) transpose() (Source, error) {
	if len(f.A.NE()) != len(f.B.NE()) {
		return nil, fault.Errorf(fault.Unsupported, "matrices of a stack that share a factor cannot be transposed")
	}
	a, err := Transpose(f.B)
	if err != nil {
		return nil, err
	}
	b, err := Transpose(f.A)
	if err != nil {
		return nil, err
	}
	ne := slices.Clone(f.ne)
	ne[0], ne[1] = ne[1], ne[0]
	return &Factors{a, b, ne}, nil
}

// stackFactors is Stack; ok is false where none of the parts is a product.
func stackFactors(parts []Source) (s Source, ok bool, err error) {
	var a, b []Source
	for _, p := range parts {
		if f, is := p.(*Factors); is {
			a, b = append(a, f.A), append(b, f.B)
		}
	}
	switch {
	case len(a) == 0:
		return nil, false, nil
	case len(a) < len(parts):
		return nil, true, fmt.Errorf("products and other matrices do not stack")
	}
	as, err := Stack(a)
	if err != nil {
		return nil, true, err
	}
	bs, err := Stack(b)
	if err != nil {
		return nil, true, err
	}
	return &Factors{as, bs, append(slices.Clone(parts[0].NE()), int64(len(parts)))}, true, nil
}

// concatFactors is Concat; ok is false where none of the parts is a product.
func concatFactors(parts []Source) (s Source, ok bool, err error) {
	var b []Source
	var first *Factors
	for i, p := range parts {
		f, is := p.(*Factors)
		switch {
		case i == 0 && is:
			first = f
		case first == nil && !is:
			continue
		case first == nil || !is || f.A != first.A || f.stacked():
			return nil, true, fault.Errorf(fault.Unsupported, "products of different matrices do not join")
		}
		b = append(b, f.B)
	}
	if first == nil {
		return nil, false, nil
	}
	all, err := Concat(b)
	if err != nil {
		return nil, true, err
	}
	return &Factors{first.A, all, append([]int64{first.ne[0]}, all.NE()[1:]...)}, true, nil
}

// Columns returns order(s), which puts the columns of any matrix into the same order and
// keeps its dimensions. The columns of a product are those of A.
func Columns(s Source, order func(Source) (Source, error)) (Source, error) {
	f, ok := s.(*Factors)
	if !ok {
		return order(s)
	}
	a, err := order(f.A)
	if err != nil {
		return nil, err
	}
	return &Factors{a, f.B, f.ne}, nil
}

// AddProduct returns w with scale times a product added, in float32: to each element
// the sum over the rank, in its order, times scale. p has the dimensions of w.
func AddProduct(w Source, p *Factors, scale float32) (Source, error) {
	if len(w.NE()) != 2 || !slices.Equal(w.NE(), p.NE()) {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, and of what is added %s", gguf.Shape(w.NE()),
			gguf.Shape(p.NE()))
	}
	return &sum{w, p, scale}, nil
}

type sum struct {
	Source
	product *Factors
	scale   float32
}

func (s *sum) Type() gguf.Type { return gguf.TypeF32 }

// costMultiply is about the time of a multiplication and an addition, in picoseconds;
// BenchmarkSources measures it.
const costMultiply = 400

func (s *sum) Cost() int64 { return s.Source.Cost() + costDecode + costMultiply*s.product.Rank() }

func (s *sum) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	n, rank := s.NE()[0], s.product.Rank()
	size := int((b - a) * n)
	// the rows, their sums, the rows of B, one row of A
	need := 2*size + int((b-a)*rank) + int(n)
	scratch.f32 = slices.Grow(scratch.f32[:0], need)[:need]
	all, sums, left, right := scratch.f32[:size], scratch.f32[size:2*size], scratch.f32[2*size:need-int(n)],
		scratch.f32[need-int(n):]
	if err := Decode(s.Source, all, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	if err := Decode(s.product.B, left, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	clear(sums)
	for k := range rank {
		if err := Decode(s.product.A, right, &scratch.raw, k, k+1); err != nil {
			return nil, err
		}
		for i := range b - a {
			x := left[i*rank+k]
			to := sums[i*n:][:n]
			for j, y := range right {
				to[j] = float32(x*y) + to[j]
			}
		}
	}
	for i := range all {
		all[i] = float32(s.scale*sums[i]) + all[i]
	}
	out := buffer.Resize(buf, 4*size)
	return out, quants.Lookup(gguf.TypeF32).Quantize(out, all, int(n), nil)
}
