package rows_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/rows"
)

// TestLinear passes rows through a linear layer and SiLU, a few of them at a time: each piece must equal its part of
// the whole.
func TestLinear(t *testing.T) {
	const n, in, out = 5, 3, 2
	x, w := matrix(t, in, n), matrix(t, in, out)
	y, err := rows.Linear(x, w, rows.Float32s([]float32{0.5, -1}))
	if err != nil {
		t.Fatal(err)
	}
	s := rows.SiLU(y)
	if s.Type() != gguf.TypeF32 || s.NE()[0] != out || s.NE()[1] != n {
		t.Fatalf("%v %v, want F32 of %d rows of %d", s.Type(), s.NE(), n, out)
	}
	all := decode(t, s, 0, n)
	for i := range int64(n) {
		row := decode(t, s, i, i+1)
		for o := range out {
			sum := []float64{0.5, -1}[o]
			for k := range in {
				sum += float64(int(i)*in+k) * float64(o*in+k)
			}
			want := sum / (1 + math.Exp(-sum))
			if got := all[int(i)*out+o]; math.Abs(float64(got)-want) > 1e-5*math.Abs(want) {
				t.Errorf("row %d, output %d: %v, want %v", i, o, got, want)
			}
			if row[o] != all[int(i)*out+o] {
				t.Errorf("row %d alone: %v, want %v", i, row[o], all[int(i)*out+o])
			}
		}
	}
}

func TestLinearRefuses(t *testing.T) {
	half := func(s rows.Source) rows.Source { return rows.Convert(s, gguf.TypeF16) }
	x, w, bias := matrix(t, 3, 5), matrix(t, 3, 2), rows.Float32s(make([]float32, 2))
	for name, c := range map[string]struct {
		x, w, bias rows.Source
		kind       error
	}{
		"inputs":     {matrix(t, 4, 5), w, bias, fault.Broken},
		"bias":       {x, w, rows.Float32s(make([]float32, 3)), fault.Broken},
		"vector":     {x, rows.Float32s(make([]float32, 3)), nil, fault.Broken},
		"types":      {half(x), w, bias, fault.Unsupported},
		"bias types": {half(x), half(w), bias, fault.Unsupported},
		"large":      {zeroes{1 << 12, 1}, zeroes{1 << 12, 1<<12 + 1}, nil, fault.Unsupported},
	} {
		if _, err := rows.Linear(c.x, c.w, c.bias); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want an error of kind %v", name, err, c.kind)
		}
	}
}

// zeroes is a matrix of these dimensions that must not be read.
type zeroes []int64

func (z zeroes) NE() []int64                               { return z }
func (z zeroes) Type() gguf.Type                           { return gguf.TypeF32 }
func (z zeroes) Cost() int64                               { return 0 }
func (z zeroes) Raw(*[]byte, int64, int64) ([]byte, error) { panic("not read") }

// matrix returns n rows of the numbers from 0.
func matrix(t *testing.T, rowLen, n int64) rows.Source {
	t.Helper()
	v := make([]float32, rowLen*n)
	for i := range v {
		v[i] = float32(i)
	}
	s, err := rows.Reshape(rows.Float32s(v), []int64{rowLen, n})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decode(t *testing.T, s rows.Source, a, b int64) []float32 {
	t.Helper()
	var buf []byte
	v := make([]float32, (b-a)*s.NE()[0])
	if err := rows.Decode(s, v, &buf, a, b); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestDivideRows divides rows by numbers, one of which is too small.
func TestDivideRows(t *testing.T) {
	s, by := matrix(t, 2, 3), rows.Float32s([]float32{2, 4, 0})
	q, err := rows.DivideRows(s, by, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := decode(t, q, 0, 3), []float32{0, 0.5, 0.5, 0.75, 8, 10}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := decode(t, q, 2, 3), []float32{8, 10}; !slices.Equal(got, want) {
		t.Errorf("row 2: %v, want %v", got, want)
	}
	if _, err := rows.DivideRows(s, rows.Float32s([]float32{1, 2}), 0); !errors.Is(err, fault.Broken) {
		t.Errorf("too few numbers: %v", err)
	}
	if _, err := rows.DivideRows(rows.Convert(s, gguf.TypeF16), by, 0); !errors.Is(err, fault.Unsupported) {
		t.Errorf("two types: %v", err)
	}
}
