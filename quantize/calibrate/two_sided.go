package calibrate

import (
	"context"
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/quants"
	"ggforge/quants/parts"
)

// twoSided is feedback between the rows of a matrix (YAQA). With G = E[g gᵀ] of the gradients at its outputs and E its
// errors, the loss grows by about tr(E H Eᵀ G). With G = L D Lᵀ, D diagonal but for groups of rows, that is the sum of
// tr(D_i X_i H X_iᵀ) over groups, X_i = E_i + Σ_{k>i} L_kiᵀ E_k. So groups are encoded from the last to the first, each
// with targets that compensate the errors of those before it. Rows of a group do not compensate each other: they are
// encoded together.
type twoSided struct {
	n, group  int
	factors   *feedback // over rows: those with the largest mean squares come last and so are encoded first
	scratches []scratch
	// transposed has, for each worker, errors of some columns.
	transposed [][]float32
	l, y, v    []float32
	left       gemm.Panels
	data       []byte
}

// groupRows returns the rows of a group: a 32nd of n, and a multiple of those that feedback takes together.
func groupRows(n int) int { return max(1, (n+32*feedbackRows-1)/(32*feedbackRows)) * feedbackRows }

// newTwoSided factors damped moments of outputs.
func newTwoSided(ctx context.Context, m *Moments, workers int) (*twoSided, error) {
	x := &twoSided{n: m.n, group: groupRows(m.n), scratches: make([]scratch, max(1, workers)),
		transposed: make([][]float32, max(1, workers))}
	var err error
	x.factors, err = newFeedback(ctx, m, &parts.Format{Block: 1, Sub: 1}, x.scratches)
	return x, err
}

// encode encodes n rows w of ld weights of a type to data: encode is called for groups of rows. w becomes their errors.
func (x *twoSided) encode(ctx context.Context, typ gguf.Type, w []float32, data []byte, ld int,
	encode func(w []float32, data []byte, n int) error) error {
	codec, perRow, order := quants.Lookup(typ), int(typ.RowBytes(int64(ld))), x.factors.order
	for to := x.n; to > 0; to -= x.group {
		from := max(0, to-x.group)
		count := to - from
		y, group := buffer.Resize(&x.y, count*ld), buffer.Resize(&x.data, count*perRow)
		clear(y)
		if err := x.compensate(ctx, y, w, ld, from, to); err != nil {
			return err
		}
		for i, row := range order[from:to] {
			vecmath.Add(y[i*ld:][:ld], w[row*ld:][:ld])
		}
		if err := encode(y, group, ld); err != nil {
			return err
		}
		v := buffer.Resize(&x.v, count*ld)
		if err := codec.Dequantize(v, group); err != nil {
			return err
		}
		for i, row := range order[from:to] {
			copy(data[row*perRow:][:perRow], group[i*perRow:])
			e, v := w[row*ld:][:ld], v[i*ld:][:ld]
			for c := range e {
				e[c] -= v[c]
			}
		}
	}
	return nil
}

// compensate sets y, the rows of places [from, to), to what the errors of the places after them, in w, add to their
// targets.
func (x *twoSided) compensate(ctx context.Context, y, w []float32, ld, from, to int) error {
	n, count, after := x.n, to-from, x.n-to
	if after == 0 {
		return nil
	}
	// Rows of Lᵀ without what goes through other rows of the group.
	l := buffer.Resize(&x.l, count*after)
	for i := count - 1; i >= 0; i-- {
		row, to := x.factors.l[(from+i)*n:][:n], l[i*after:][:after]
		copy(to, row[n-after:])
		for k := i + 1; k < count; k++ {
			vecmath.AddScaled(to, l[k*after:][:after], -row[from+k])
		}
	}
	x.left.Pack(l, after, count, after)
	return parallel.For(ctx, len(x.scratches), (ld+tile-1)/tile, func(i, worker int) error {
		c := i * tile
		columns := min(tile, ld-c)
		errors, s := buffer.Resize(&x.transposed[worker], columns*after), &x.scratches[worker]
		for k, row := range x.factors.order[to:] {
			for i, v := range w[row*ld+c:][:columns] {
				errors[i*after+k] = v
			}
		}
		s.right.PackRight(errors, after, columns, after)
		gemm.Multiply(&s.scratch, y[c:], ld, &x.left, &s.right, columns)
		return nil
	})
}

// matrixTwoSided encodes a matrix by the moments of its outputs, too; to may be nil.
func (e *encoder) matrixTwoSided(k *encodedTensor, m matrix, how *method, to correction, o *storedOutput) error {
	src := &e.blocks.m.Tensors[k.Tensor]
	n, perRow := int(src.NE[0]), k.Type.RowBytes(src.NE[0])
	var buf []byte
	encode := func(part int) error {
		moments, err := e.outputs.moments(e.ctx, o, part)
		if err != nil {
			return err
		}
		x, err := newTwoSided(e.ctx, moments, e.opt.Run.Workers)
		if err != nil {
			return err
		}
		first := int64(m.at)*int64(o.n) + int64(part*e.outputs.most)
		w, data := make([]float32, x.n*n), make([]byte, int64(x.n)*perRow)
		for a := 0; a < x.n; a += batchRows {
			b := min(a+batchRows, x.n)
			if err := decode(src.Source, w[a*n:b*n], &buf, n, first+int64(a)); err != nil {
				return err
			}
		}
		if to != nil {
			if err := to(w, n); err != nil {
				return err
			}
		}
		if err := x.encode(e.ctx, k.Type, w, data, n, func(w []float32, data []byte, n int) error {
			err := how.encode(w, data, n)
			e.progress.encoded(src, float64(len(w))/float64(src.Elements()))
			return err
		}); err != nil {
			return err
		}
		return e.blocks.put(k, first, data)
	}
	for part := 0; part*e.outputs.most < o.n; part++ {
		if err := encode(part); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", e.blocks.m.Path, src.Name, err)
		}
	}
	return nil
}
