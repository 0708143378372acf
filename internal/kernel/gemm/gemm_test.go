package gemm

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/internal/kernel/vecmath"
)

// with runs f with each kernel of this machine.
func with(t *testing.T, f func(t *testing.T, name string)) {
	old := active
	defer func() { active = old }()
	for _, k := range kernels() {
		active = k
		t.Run(k.name, func(t *testing.T) { f(t, k.name) })
	}
}

func random(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// float32s returns weights of float32.
func float32s(v []float32, k int) *Weights {
	raw := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return &Weights{
		Rows: len(v) / k, K: k, RowBytes: 4 * k, Block: 1, BlockBytes: 4,
		Raw: func(_ *[]byte, a, b int) ([]byte, error) { return raw[4*k*a : 4*k*b], nil },
		Decode: func(dst []float32, src []byte) error {
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
			}
			return nil
		},
	}
}

// same reports the first place where c is not the product by Dot.
func same(c []float32, ldc int, x []float32, tokens int, w []float32, rows, k int) error {
	for t := range tokens {
		for r := range rows {
			if got, want := c[t*ldc+r], Dot(x[t*k:][:k], w[r*k:][:k]); math.Float32bits(got) != math.Float32bits(want) {
				return fmt.Errorf("%d x %d x %d: C[%d, %d] = %v, want %v", tokens, rows, k, t, r, got, want)
			}
		}
	}
	return nil
}

// TestProduct compares every kernel with the definition, at sizes around those of
// vectors, panels, tiles and runs, with one worker and three.
func TestProduct(t *testing.T) {
	with(t, func(t *testing.T, _ string) {
		for _, d := range [][3]int{{1, 1, 1}, {1, 1, 16}, {2, 3, 15}, {3, 4, 17}, {4, 5, 31}, {7, 97, 64},
			{37, 53, 2064}, {5, 200, 1023}, {6, 96, 1024}, {3, 101, 1025}, {10, 8, 3100}, {50, 13, 1040},
			{4, 389, 30}} {
			tokens, rows, k := d[0], d[1], d[2]
			x, w := random(tokens*k, 1), random(rows*k, 2)
			for _, workers := range []int{1, 3} {
				var p Panels
				p.Pack(x, k, tokens, k)
				ldc := rows + 3
				c := make([]float32, tokens*ldc)
				for i := range c {
					c[i] = float32(math.NaN())
				}
				if err := Product(context.Background(), make([]Scratch, workers), c, ldc, &p,
					float32s(w, k)); err != nil {
					t.Fatal(err)
				}
				if err := same(c, ldc, x, tokens, w, rows, k); err != nil {
					t.Fatal(err)
				}
				for i := range tokens {
					for _, v := range c[i*ldc+rows : (i+1)*ldc] {
						if v == v {
							t.Fatalf("%v: a column that is not the product's was written to", d)
						}
					}
				}
			}
		}
	})
}

// TestMultiply checks products of matrices in memory, and those of the first columns.
func TestMultiply(t *testing.T) {
	with(t, func(t *testing.T, _ string) {
		const tokens, rows, k = 9, 14, 2100
		w := random(rows*k, 4)
		for _, n := range []int{1, 16, 40, 1024, 1030, 2048, 2049, k} {
			x := random(tokens*n, 3)
			var xp, wp Panels
			xp.Pack(x, n, tokens, n)
			wp.PackRight(w, k, rows, k)
			c := make([]float32, tokens*rows)
			Multiply(new(Scratch), c, rows, &xp, &wp, rows)
			cut := make([]float32, 0, rows*n)
			for r := range rows {
				cut = append(cut, w[r*k:][:n]...)
			}
			if err := same(c, rows, x, tokens, cut, rows, n); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMultiplyFewer checks products of the first columns of the left side: there are fewer on the right.
func TestMultiplyFewer(t *testing.T) {
	with(t, func(t *testing.T, _ string) {
		const tokens, rows, k = 7, 8, 2100
		x := random(tokens*k, 5)
		for _, n := range []int{1, 16, 40, 192, 1024, 1030, 1200, 2048, 2049} {
			w := random(rows*n, 6)
			var xp, wp Panels
			xp.Pack(x, k, tokens, k)
			wp.PackRight(w, n, rows, n)
			c := make([]float32, tokens*rows)
			Multiply(new(Scratch), c, rows, &xp, &wp, rows)
			cut := make([]float32, 0, tokens*n)
			for r := range tokens {
				cut = append(cut, x[r*k:][:n]...)
			}
			if err := same(c, rows, cut, tokens, w, rows, n); err != nil {
				t.Fatal(err)
			}
			if n > Run {
				continue
			}
			sums := random(tokens*rows, 9)
			want := slices.Clone(sums)
			vecmath.Add(want, c)
			MultiplyAdd(new(Scratch), sums, rows, &xp, &wp, rows)
			if !slices.Equal(sums, want) {
				t.Fatalf("%d columns: added, a product is not what it is by itself", n)
			}
		}
	})
}

// TestMultiplyLower checks the lower triangle of products, at sizes around those of panels and strips.
func TestMultiplyLower(t *testing.T) {
	with(t, func(t *testing.T, _ string) {
		for _, d := range [][2]int{{1, 1}, {5, 7}, {24, 24}, {50, 49}, {100, 192}} {
			tokens, rows, k := d[0], d[1], 40
			x, w := random(tokens*k, 7), random(rows*k, 8)
			var xp, wp Panels
			xp.Pack(x, k, tokens, k)
			wp.PackRight(w, k, rows, k)
			c := make([]float32, tokens*rows)
			MultiplyLower(new(Scratch), c, rows, &xp, &wp)
			for i := range tokens {
				for r := range min(i+1, rows) {
					if want := Dot(x[i*k:][:k], w[r*k:][:k]); c[i*rows+r] != want {
						t.Fatalf("%v: row %d, column %d: %v, want %v", d, i, r, c[i*rows+r], want)
					}
				}
			}
		}
	})
}

// TestDot checks the definition against exact sums.
func TestDot(t *testing.T) {
	for _, k := range []int{0, 1, 16, 1000, 5000} {
		x, w := random(k, 5), random(k, 6)
		var want, size float64
		for i := range x {
			p := float64(x[i]) * float64(w[i])
			want, size = want+p, size+math.Abs(p)
		}
		if got := Dot(x, w); math.Abs(float64(got)-want) > size*math.Ldexp(1, -24)*math.Sqrt(float64(k)) {
			t.Errorf("%d: %v, want %v", k, got, want)
		}
	}
}

// TestErrors checks that an error of the weights and the end of the context are returned.
func TestErrors(t *testing.T) {
	var p Panels
	p.Pack(make([]float32, 64), 16, 4, 16)
	w := float32s(make([]float32, 16*500), 16)
	c := make([]float32, 4*500)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Product(ctx, make([]Scratch, 2), c, 500, &p, w); err != context.Canceled {
		t.Errorf("canceled: %v", err)
	}
	bad := fmt.Errorf("bad block")
	w.Decode = func([]float32, []byte) error { return bad }
	if err := Product(context.Background(), make([]Scratch, 2), c, 500, &p, w); err != bad {
		t.Errorf("%v, want %v", err, bad)
	}
}

// FuzzMultiply compares kernels with the definition for numbers of any size.
func FuzzMultiply(f *testing.F) {
	f.Add(uint8(3), uint8(5), uint16(40), uint64(1), uint8(3))
	f.Add(uint8(7), uint8(4), uint16(1100), uint64(2), uint8(90))
	f.Fuzz(func(t *testing.T, tokens, rows uint8, k uint16, seed uint64, spread uint8) {
		m, n, l := int(tokens%8)+1, int(rows%12)+1, int(k%2200)+1
		x, w := random(m*l, seed), random(n*l, seed+1)
		r := rand.New(rand.NewPCG(seed, 2))
		for _, v := range [][]float32{x, w} {
			for i := range v {
				v[i] = float32(math.Ldexp(float64(v[i]), r.IntN(2*int(spread%70)+1)-int(spread%70)))
			}
		}
		old := active
		defer func() { active = old }()
		for _, k := range kernels() {
			active = k
			var xp, wp Panels
			xp.Pack(x, l, m, l)
			wp.PackRight(w, l, n, l)
			c := make([]float32, m*n)
			Multiply(new(Scratch), c, n, &xp, &wp, n)
			if err := same(c, n, x, m, w, n, l); err != nil {
				t.Fatal(k.name, err)
			}
		}
	})
}

// BenchmarkProduct is one product as in a layer of a small model: GFLOP/s.
func BenchmarkProduct(b *testing.B) {
	const tokens, rows, k = 512, 2048, 2048
	x, w := random(tokens*k, 1), float32s(random(rows*k, 2), k)
	c := make([]float32, tokens*rows)
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
				p.Pack(x, k, tokens, k)
				if err := Product(context.Background(), scratch, c, rows, &p, w); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(2*tokens*rows*k*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}

// BenchmarkKernel is the inner loop alone, on panels in the first cache: GFLOP/s.
func BenchmarkKernel(b *testing.B) {
	for _, kern := range kernels() {
		x, w := random(Run*kern.mr, 1), random(Run*kern.nr, 2)
		b.Run(kern.name, func(b *testing.B) {
			var s sums
			for b.Loop() {
				kern.dots(&s, x, w)
			}
			b.ReportMetric(2*float64(Run*kern.mr*kern.nr)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
		})
	}
}
