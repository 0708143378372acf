package calibrate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// TestStart checks that types that need importance get the same importance for all columns if none is given.
func TestStart(t *testing.T) {
	const n = 256
	w, data, want := weights(2*n), make([]byte, gguf.DataBytes(gguf.TypeIQ2_XXS, []int64{n, 2})),
		make([]byte, gguf.DataBytes(gguf.TypeIQ2_XXS, []int64{n, 2}))
	e := encoder{ctx: context.Background(), opt: &Options{}}
	if err := e.encodeWeighted(gguf.TypeIQ2_XXS, data, w, n, nil); err != nil {
		t.Fatal(err)
	}
	if err := quants.Lookup(gguf.TypeIQ2_XXS).Quantize(want, w, n, slices.Repeat([]float32{1}, n)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Error("other blocks than with the same importance for all columns")
	}
}

// TestChoose checks that the levels of a sub-block are those of its format, with scales and
// shifts of their own, and that the change of the error is the one returned.
func TestChoose(t *testing.T) {
	m, r := moments(t, 256, 600, 1), rand.New(rand.NewPCG(1, 2))
	for _, typ := range []gguf.Type{gguf.TypeIQ1_S, gguf.TypeIQ1_M, gguf.TypeIQ2_XXS, gguf.TypeIQ2_XS, gguf.TypeIQ2_S,
		gguf.TypeIQ3_XXS, gguf.TypeIQ3_S} {
		f := parts.Of(typ)
		c := newGrid(f.Grid)
		forms := c.forms(m.h, m.n, m.n, m.n)
		for round := range 20 {
			w, data := make([]float32, 256), make([]byte, f.Type.BlockBytes())
			for i := range w {
				w[i] = float32(r.NormFloat64())
			}
			if err := quants.Lookup(typ).Quantize(data, w, 256, m.Diagonal()); err != nil {
				t.Fatal(err)
			}
			for i := range w { // something else
				w[i] += float32(r.NormFloat64()) * 0.5
			}
			var b parts.Block
			f.Unpack(&b, data)
			values := make([]float32, 256)
			f.Values(values, &b)
			errorOfSub := func(v []float32, from int) (sum float64) {
				for i, x := range v {
					for k, y := range v {
						sum += float64(x-w[from+i]) * float64(m.h[(from+i)*m.n+from+k]) * float64(y-w[from+k])
					}
				}
				return sum
			}
			for j := range f.Subs() {
				from := j * f.Sub
				before := errorOfSub(values[from:][:f.Sub], from)
				best := c.choose(new(state), f, &b, j, &norm{m.h[from*m.n+from:], m.n, f.Sub, forms[from*(c.Dim+1)/2:]},
					1, 1, func(a *attempt) {
						copy(a.levels[:], b.Levels[from:][:f.Sub])
						copy(a.v[:], values[from:][:f.Sub])
						clear(a.g[:])
						for i := range f.Sub {
							for k := range f.Sub {
								a.g[k] += float32(m.h[(from+i)*m.n+from+k] * (a.v[i] - w[from+i]))
							}
						}
					})
				b.Scales[j] = best.code
				copy(b.Levels[from:], best.levels[:f.Sub])
				f.Pack(data, &b)
				if err := quants.Lookup(typ).Dequantize(values, data); err != nil {
					t.Fatal(err)
				}
				after := errorOfSub(values[from:][:f.Sub], from)
				if d := after - before - best.change; best.change > 0 || d > 1e-4*before || d < -1e-4*before {
					t.Fatalf("%v, round %d, sub-block %d: error %v, was %v, changed by %v", typ, round, j, after,
						before, best.change)
				}
			}
		}
	}
}
