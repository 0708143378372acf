package gemm

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// column returns column k of w, whose rows have n values.
func column(w []float32, k, n int) []float32 {
	var c []float32
	for ; k < len(w); k += n {
		c = append(c, w[k])
	}
	return c
}

// checkTransposed compares Transposed with the definition for g [tokens, rows] and w [rows, k]. c is
// NaN before, or begin if sums are added to it.
func checkTransposed(g, w []float32, tokens, rows, k, block, workers int, add bool) error {
	weights := float32s(w, k)
	weights.Block, weights.BlockBytes = block, 4*block
	var p Panels
	p.Pack(g, rows, tokens, rows)
	ldc := k + 3
	c := make([]float32, tokens*ldc)
	begin := random(len(c), 9)
	for i := range c {
		if c[i] = begin[i]; !add || i%ldc >= k {
			c[i] = float32(math.NaN())
		}
	}
	if err := Transposed(context.Background(), make([]Scratch, workers), c, ldc, &p, weights, add); err != nil {
		return err
	}
	for i := range k {
		w := column(w, i, k)
		for t := range tokens {
			want := Dot(g[t*rows:][:rows], w)
			if add {
				want = begin[t*ldc+i]
				for from := 0; from < rows; from += Run {
					end := min(from+Run, rows)
					want += Dot(g[t*rows+from:t*rows+end], w[from:end])
				}
			}
			if got := c[t*ldc+i]; math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("%d x %d x %d, blocks of %d: C[%d, %d] = %v, want %v", tokens, rows, k, block, t,
					i, got, want)
			}
		}
	}
	for t := range tokens {
		for _, v := range c[t*ldc+k : (t+1)*ldc] {
			if v == v {
				return fmt.Errorf("%d x %d x %d: a column that is not the product's was written to", tokens, rows, k)
			}
		}
	}
	return nil
}

// TestTransposed compares every kernel with the definition, at sizes around those of
// vectors, panels, tiles and runs.
func TestTransposed(t *testing.T) {
	with(t, func(t *testing.T, _ string) {
		for _, d := range [][4]int{{1, 1, 1, 1}, {2, 3, 15, 1}, {3, 16, 17, 1}, {4, 31, 96, 32}, {7, 97, 64, 16},
			{5, 1023, 200, 1}, {6, 1024, 96, 48}, {3, 1025, 101, 1}, {10, 2100, 8, 8},
			{2, 20, transposedColumns + 64, 64},
			{4, 1040, 101, 101}} {
			tokens, rows, k := d[0], d[1], d[2]
			g, w := random(tokens*rows, 1), random(rows*k, 2)
			for _, workers := range []int{1, 3} {
				if err := checkTransposed(g, w, tokens, rows, k, d[3], workers, workers == 3); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestTransposedErrors checks that an error of the weights and the end of the context are
// returned.
func TestTransposedErrors(t *testing.T) {
	var p Panels
	p.Pack(make([]float32, 4*500), 500, 4, 500)
	w := float32s(make([]float32, 16*500), 16)
	c := make([]float32, 4*16)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Transposed(ctx, make([]Scratch, 2), c, 16, &p, w, false); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
	bad := fmt.Errorf("bad block")
	w.Decode = func([]float32, []byte) error { return bad }
	if err := Transposed(context.Background(), make([]Scratch, 2), c, 16, &p, w, false); err != bad {
		t.Errorf("%v, want %v", err, bad)
	}
}

// FuzzTransposed compares kernels with the definition for numbers of any size.
func FuzzTransposed(f *testing.F) {
	f.Add(uint8(3), uint16(5), uint8(40), uint64(1), uint8(3), true)
	f.Add(uint8(7), uint16(1100), uint8(4), uint64(2), uint8(90), false)
	f.Fuzz(func(t *testing.T, tokens uint8, rows uint16, k uint8, seed uint64, spread uint8, add bool) {
		m, n, l := int(tokens%8)+1, int(rows%2200)+1, int(k%120)+1
		g, w := random(m*n, seed), random(n*l, seed+1)
		r := rand.New(rand.NewPCG(seed, 2))
		for _, v := range [][]float32{g, w} {
			for i := range v {
				v[i] = float32(math.Ldexp(float64(v[i]), r.IntN(2*int(spread%60)+1)-int(spread%60)))
			}
		}
		old := active
		defer func() { active = old }()
		for _, k := range kernels() {
			active = k
			if err := checkTransposed(g, w, m, n, l, 1, 1+int(seed%3), add); err != nil {
				t.Fatal(k.name, err)
			}
		}
	})
}

// BenchmarkTransposed is the counterpart of BenchmarkProduct: GFLOP/s.
func BenchmarkTransposed(b *testing.B) {
	const tokens, rows, k = 512, 2048, 2048
	g, w := random(tokens*rows, 1), float32s(random(rows*k, 2), k)
	c := make([]float32, tokens*k)
	old := active
	defer func() { active = old }()
	for _, kern := range kernels() {
		if kern == &plain {
			continue
		}
		b.Run(kern.name, func(b *testing.B) {
			active = kern
			var p Panels
			scratch := make([]Scratch, 1)
			for b.Loop() {
				p.Pack(g, rows, tokens, rows)
				if err := Transposed(context.Background(), scratch, c, k, &p, w, false); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*tokens*rows*k*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
