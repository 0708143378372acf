package eval

import (
	"math"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// hadamard is the transform H·D of the inputs of folded weights: signs, then the normalized Walsh-Hadamard transform of
// each block of values. See graph.Fold.
type hadamard struct {
	block int
	signs []float32 // a row of them; nil if all are 1
	// inputs have size values of each of keys × times heads; heads change from the order [time, key] to [key, time].
	// 0 for the order that they have.
	size, keys, times int
}

// folds are the transforms of a file by the length of inputs.
type folds struct {
	of      *graph.Fold
	byWidth map[int]*hadamard
	grouped *hadamard // of the outputs of gated delta nets, or nil
}

// folds returns the transforms of the file, nil for none.
func (b *builder) folds() *folds {
	of := b.d.Fold()
	if of == nil {
		return nil
	}
	f := &folds{of: of, byWidth: map[int]*hadamard{}}
	if of.Grouped {
		keys, heads, width := b.count("@ssm.group_count"), b.count("@ssm.time_step_rank"), b.count("@ssm.inner_size")
		if heads%keys != 0 || width%heads != 0 {
			b.fail(fault.Broken, "%d values of %d heads with %d key heads", width, heads, keys)
		}
		g := *f.transform(width)
		g.size, g.keys, g.times = width/heads, keys, heads/keys
		f.grouped = &g
	}
	return f
}

// transform returns the transform of rows of width.
func (f *folds) transform(width int) *hadamard {
	if f.byWidth[width] == nil {
		f.byWidth[width] = &hadamard{block: int(f.of.Block), signs: f.of.Signs[width]}
	}
	return f.byWidth[width]
}

// inputs returns the transform of the inputs of a tensor, rows of width; nil for none.
func (f *folds) inputs(name string, width int) *hadamard {
	if f == nil {
		return nil
	}
	_, folded := slices.BinarySearch(f.of.Weights, name)
	switch {
	case f.grouped != nil && folded && strings.HasSuffix(name, ".ssm_out.weight"):
		return f.grouped
	case folded || f.of.Tied && name == "token_embd.weight":
		return f.transform(width)
	}
	return nil
}

// lookup returns the transform that folded the embeddings, rows of width; nil for none.
func (f *folds) lookup(width int) *hadamard {
	if f == nil || !f.of.Lookup {
		return nil
	}
	return f.transform(width)
}

// apply sets dst, a row, to the transform of src; both are apart.
func (t *hadamard) apply(dst, src []float32) {
	copy(dst, src)
	for k := range t.keys {
		for r := range t.times {
			copy(dst[(k*t.times+r)*t.size:][:t.size], src[(r*t.keys+k)*t.size:])
		}
	}
	if t.signs != nil {
		vecmath.Mul(dst, t.signs)
	}
	t.walsh(dst)
}

// undo sets dst, a row, to the inverse of apply, which is its transpose; both are apart, and src is overwritten.
func (t *hadamard) undo(dst, src []float32) {
	t.walsh(src)
	if t.signs != nil {
		vecmath.Mul(src, t.signs)
	}
	copy(dst, src)
	for k := range t.keys {
		for r := range t.times {
			copy(dst[(r*t.keys+k)*t.size:][:t.size], src[(k*t.times+r)*t.size:])
		}
	}
}

// walsh applies the normalized transform to each block of x.
func (t *hadamard) walsh(x []float32) {
	for at := 0; at < len(x); at += t.block {
		block := x[at:][:t.block]
		for half := 1; half < t.block; half *= 2 {
			for i := 0; i < t.block; i += 2 * half {
				low, high := block[i:][:half], block[i+half:][:half]
				for j, a := range low {
					low[j], high[j] = a+high[j], a-high[j]
				}
			}
		}
	}
	vecmath.Scale(x, x, float32(1/math.Sqrt(float64(t.block))))
}

// folded returns rows of x, k values each, as the layer multiplies them: transformed if its weights are folded.
func (s *stream) folded(t *hadamard, x []float32, rows, k int) ([]float32, error) {
	if t == nil {
		return x, nil
	}
	y := buffer.Resize(&s.transformed, rows*k)
	return y, s.eachRows(rows, func(a, b int) {
		for i := a; i < b; i++ {
			t.apply(y[i*k:][:k], x[i*k:][:k])
		}
	})
}

// sameInputs returns the number of layers at the beginning of a list that multiply the same inputs.
func sameInputs(layers []*linear) int {
	n := 1
	for n < len(layers) && layers[n].fold == layers[0].fold {
		n++
	}
	return n
}
