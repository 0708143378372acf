package rows

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// matrix returns a matrix of m rows of n numbers.
func matrix(t *testing.T, n, m int64, f func(i int64) float32) Source {
	t.Helper()
	v := make([]float32, n*m)
	for i := range v {
		v[i] = f(int64(i))
	}
	s, err := Reshape(Float32s(v), []int64{n, m})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func small(seed float64) func(int64) float32 {
	return func(i int64) float32 { return float32(math.Sin(seed + 1.7*float64(i))) }
}

// values reads all of a source.
func values(t *testing.T, s Source) []float32 {
	t.Helper()
	v := make([]float32, gguf.Rows(s.NE())*s.NE()[0])
	if err := Decode(s, v, new([]byte), 0, gguf.Rows(s.NE())); err != nil {
		t.Fatal(err)
	}
	return v
}

// multiplied returns the product that Factors represents.
func multiplied(t *testing.T, f *Factors) []float32 {
	t.Helper()
	a, b := values(t, f.A), values(t, f.B)
	n, m, rank := f.NE()[0], f.NE()[1], f.Rank()
	var out []float32
	for e := range gguf.Rows(f.NE()) / m {
		of := int64(0) // of A, which a stack may share
		if f.stacked() {
			of = e * rank * n
		}
		for i := range m {
			for j := range n {
				sum := float32(0)
				for k := range rank {
					sum += float32(b[(e*m+i)*rank+k] * a[of+k*n+j])
				}
				out = append(out, sum)
			}
		}
	}
	return out
}

// TestFactors compares views of factors with views of their product.
func TestFactors(t *testing.T) {
	const n, m, rank = 6, 8, 3
	pair := func(seed float64) *Factors {
		f, err := NewFactors(matrix(t, n, rank, small(seed)), matrix(t, rank, m, small(seed+1)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	stack := func() Source {
		s, err := Stack([]Source{pair(1), pair(2)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, c := range map[string]struct {
		from Source
		view func(Source) (Source, error)
		no   bool // the view is unsupported
	}{
		"permuted":          {pair(1), func(s Source) (Source, error) { return PermuteRope(s, 2) }, false},
		"rows cut":          {pair(1), func(s Source) (Source, error) { return Slice(s, 1, 2, 5) }, false},
		"columns cut":       {pair(1), func(s Source) (Source, error) { return Slice(s, 0, 1, 4) }, false},
		"transposed":        {pair(1), Transpose, false},
		"in heads":          {pair(1), func(s Source) (Source, error) { return Reshape(s, []int64{n, 4, 2}) }, false},
		"in heads and back": {pair(1), inTurn(reshape(n, 4, 2), reshape(n, m)), false},
		"transposed twice":  {pair(1), inTurn(Transpose, Transpose), false},
		"ungrouped":         {pair(1), func(s Source) (Source, error) { return UngroupQKV(s, 2, 2) }, false},
		"columns reversed": {pair(1), func(s Source) (Source, error) {
			return Columns(s, func(s Source) (Source, error) {
				return inTurn(inTurn(Transpose, func(s Source) (Source, error) {
					return Gather(s, s.NE(), func(i int64) int64 { return n - 1 - i })
				}), Transpose)(s)
			})
		}, false},
		"stack":                {stack(), func(s Source) (Source, error) { return s, nil }, false},
		"stack: rows cut":      {stack(), func(s Source) (Source, error) { return Slice(s, 1, 4, 8) }, false},
		"stack: columns cut":   {stack(), func(s Source) (Source, error) { return Slice(s, 0, 0, 2) }, false},
		"stack: transposed":    {stack(), Transpose, false},
		"rows of another size": {pair(1), reshape(2*n, m/2), true},
		"stack as one":         {stack(), reshape(n, 2*m), true},
		"stack: exchanged": {stack(), func(s Source) (Source,
			error) {
			return Gather(s, s.NE(), func(i int64) int64 { return 2*m - 1 - i })
		}, true},
		"heads transposed": {pair(1), inTurn(reshape(n, 4, 2), Transpose), true},
	} {
		got, err := c.view(c.from)
		if c.no {
			if !errors.Is(err, fault.Unsupported) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plain, err := Reshape(Float32s(multiplied(t, c.from.(*Factors))), c.from.NE())
		if err != nil {
			t.Fatal(err)
		}
		want, err := c.view(plain)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := got.(*Factors)
		if !ok || !slices.Equal(f.NE(), want.NE()) || !slices.Equal(multiplied(t, f), values(t, want)) {
			t.Errorf("%s: differs from the view of the product", name)
		}
	}
	if _, err := NewFactors(matrix(t, n, rank, small(1)), matrix(t, rank+1, m, small(1))); !errors.Is(err,
		fault.Broken) {
		t.Errorf("two ranks: %v", err)
	}
	if _, err := pair(1).Raw(new([]byte), 0, 1); !errors.Is(err, fault.Unsupported) {
		t.Errorf("rows of a product: %v", err)
	}
	if _, err := Stack([]Source{pair(1), matrix(t, n, m, small(1))}); err == nil {
		t.Error("a product and a matrix stack")
	}
}

func reshape(ne ...int64) func(Source) (Source, error) {
	return func(s Source) (Source, error) { return Reshape(s, ne) }
}

func inTurn(first, second func(Source) (Source, error)) func(Source) (Source, error) {
	return func(s Source) (Source, error) {
		s, err := first(s)
		if err != nil {
			return nil, err
		}
		return second(s)
	}
}

// TestAddProduct computes sums in float32, by rows and in parts of every size.
func TestAddProduct(t *testing.T) {
	const n, m, rank, scale = 7, 9, 4, float32(1.37)
	w := matrix(t, n, m, small(5))
	f, err := NewFactors(matrix(t, n, rank, small(1)), matrix(t, rank, m, small(2)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := AddProduct(w, f, scale)
	if err != nil {
		t.Fatal(err)
	}
	want := values(t, w)
	for i, x := range multiplied(t, f) {
		want[i] += float32(scale * x)
	}
	for step := int64(1); step <= m; step++ {
		var got []float32
		for i := int64(0); i < m; i += step {
			part := make([]float32, (min(i+step, m)-i)*n)
			if err := Decode(s, part, new([]byte), i, min(i+step, m)); err != nil {
				t.Fatal(err)
			}
			got = append(got, part...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d rows at a time: %v, want %v", step, got, want)
		}
	}
	if _, err := AddProduct(matrix(t, m, n, small(5)), f, 1); !errors.Is(err, fault.Broken) {
		t.Errorf("other dimensions: %v", err)
	}
}
