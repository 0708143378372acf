package calibrate

import (
	"context"
	"fmt"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// CrossMoments sums y (x-y)ᵀ over tokens, x the inputs of a layer in the base model and y those in the quantized
// model. Memory: 2 n² values, 2048 n for pending rows, and 2048 n more while these are added.
type CrossMoments struct {
	n, rows, pendingRows int
	d                    []float32    // [n, n]: of y, of x-y
	half                 []float32    // the same of every second run of rows, nil before the first of them
	halfRows             int          // in half
	pending              [2][]float32 // [n, pendingStride]: pending rows of y and of x-y, transposed
	scratches            []scratch    // of each worker
}

// NewCrossMoments returns empty sums for rows of n values.
func NewCrossMoments(n, workers int) *CrossMoments {
	s := &CrossMoments{n: n, d: make([]float32, n*n), scratches: make([]scratch, max(1, workers))}
	for i := range s.pending {
		s.pending[i] = make([]float32, n*pendingStride)
	}
	return s
}

// AddColumns adds columns [from, from+n) of rows of ld values.
func (s *CrossMoments) AddColumns(ctx context.Context, x, y []float32, ld, from int) error {
	if len(x) != len(y) || len(x)%ld != 0 || from+s.n > ld {
		return fmt.Errorf("calibrate: columns %d to %d of %d and %d values in rows of %d", from, from+s.n,
			len(x), len(y), ld)
	}
	for len(x) > 0 {
		rows := min(runRows-s.pendingRows, len(x)/ld)
		for i, rowsOf := range [][]float32{y, x} {
			if err := transpose(ctx, len(s.scratches), s.pending[i], s.pendingRows, rowsOf, ld, from, s.n, rows); err != nil {
				return err
			}
		}
		if err := parallel.For(ctx, len(s.scratches), s.n, func(c, _ int) error {
			at := c*pendingStride + s.pendingRows
			vecmath.AddScaled(s.pending[1][at:][:rows], s.pending[0][at:][:rows], -1)
			return nil
		}); err != nil {
			return err
		}
		x, y = x[rows*ld:], y[rows*ld:]
		s.pendingRows += rows
		s.rows += rows
		if s.pendingRows == runRows {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush adds the pending rows.
func (s *CrossMoments) flush(ctx context.Context) error {
	p := packedPool.Get().(*packed)
	defer packedPool.Put(p)
	if err := p.pack(ctx, len(s.scratches), s.pending[0], s.pending[1], s.n, s.pendingRows); err != nil {
		return err
	}
	n, tiles := s.n, len(p.left)
	second := (s.rows-1)/runRows%2 == 1
	if second {
		if s.halfRows += s.pendingRows; s.half == nil {
			s.half = make([]float32, n*n)
		}
	}
	err := parallel.For(ctx, len(s.scratches), tiles*tiles, func(i, worker int) error {
		r, a, b := &s.scratches[worker], i/tiles*tile, i%tiles*tile
		rows, columns := min(tile, n-a), min(tile, n-b)
		if !second {
			gemm.MultiplyAdd(&r.scratch, s.d[a*n+b:], n, &p.left[i/tiles], &p.right[i%tiles], columns)
			return nil
		}
		y := buffer.Resize(&r.y, rows*columns)
		gemm.Multiply(&r.scratch, y, columns, &p.left[i/tiles], &p.right[i%tiles], columns)
		for k := range rows {
			vecmath.Add(s.d[(a+k)*n+b:][:columns], y[k*columns:][:columns])
			vecmath.Add(s.half[(a+k)*n+b:][:columns], y[k*columns:][:columns])
		}
		return nil
	})
	s.pendingRows = 0
	return err
}

// TargetCorrection replaces the target of a row of weights by the one that gives the base model's outputs from the
// quantized model's inputs y (asymmetric calibration, GPTAQ): w' = w + share * w C (H+λ)⁻¹, H = E[y yᵀ],
// C = E[(x-y) yᵀ]. But for damping and share, w' minimizes E[(w'y - wx)²].
//
// What the correction takes from that error is in part chance: what C of these tokens takes and C of others does not.
// With C of every second run of tokens and C of the others, the cross product w C₁ (H+λ)⁻¹ C₂ᵀ wᵀ estimates the part
// that other tokens have, too. Its ratio to w C (H+λ)⁻¹ Cᵀ wᵀ, at most 1, is the factor for the least error on other
// tokens.
type TargetCorrection struct {
	n     int
	share float32
	d     []float32 // [n, n]: Cᵀ
	half  []float32 // the same of a part of the tokens, nil if there is no other part
	part  float64   // its share of the tokens
	lower []float32 // [n, n]: L with L Lᵀ = H+λ
	// inverses has, for each block of columns, the inverse of the block of L on the diagonal, and its transpose.
	inverses   [][2][]float32
	scratches  []scratch
	transposed [][]float32 // of each worker
	left       gemm.Panels
	t, y, z    []float32
}

// NewTargetCorrection returns the correction for the damped moments of y. It takes over the memory of s, to which
// nothing can be added any more.
func NewTargetCorrection(ctx context.Context, m *Moments, s *CrossMoments, share float64) (*TargetCorrection, error) {
	if s.pendingRows > 0 {
		if err := s.flush(ctx); err != nil {
			return nil, err
		}
	}
	v := &TargetCorrection{n: m.n, share: float32(share), d: s.d, lower: make([]float32, m.n*m.n),
		scratches:  s.scratches,
		transposed: make([][]float32, len(s.scratches))}
	vecmath.Scale(v.d, v.d, float32(1/float64(max(1, s.rows))))
	if s.half != nil {
		v.half, v.part = s.half, float64(s.halfRows)/float64(s.rows)
		vecmath.Scale(v.half, v.half, float32(1/float64(s.halfRows)))
	}
	for i := range v.n {
		copy(v.lower[i*v.n:][:i+1], m.h[i*v.n:])
	}
	if err := cholesky(ctx, v.lower, v.n, v.scratches); err != nil {
		return nil, err
	}
	for at := 0; at < v.n; at += visitColumns {
		w := min(visitColumns, v.n-at)
		inverse, turned := invertLower(v.lower[at*v.n+at:], v.n, w), make([]float32, w*w)
		for i := range w {
			for k, x := range inverse[i*w:][:i+1] {
				turned[k*w+i] = x
			}
		}
		v.inverses = append(v.inverses, [2][]float32{inverse, turned})
	}
	return v, nil
}

// sampled is how many rows of weights there are for each one that decides about the share of the correction.
const sampled = 16

// CorrectTarget replaces columns [from, from+n) of rows of ld weights.
func (m *TargetCorrection) CorrectTarget(ctx context.Context, w []float32, ld, from int) error {
	n := m.n
	for ; len(w) > 0; w = w[min(len(w), batchRows*ld):] {
		rows := min(batchRows, len(w)/ld)
		t := buffer.Resize(&m.t, rows*n)
		if err := m.shift(ctx, t, m.d, w[from:], ld, rows); err != nil {
			return err
		}
		share, err := m.reliable(ctx, t, w[from:], ld, rows)
		if err != nil {
			return err
		}
		if err := m.backward(ctx, t, rows); err != nil {
			return err
		}
		if err := m.each(ctx, rows, func(r int) {
			vecmath.AddScaled(w[r*ld+from:][:n], t[r*n:][:n], m.share*share)
		}); err != nil {
			return err
		}
	}
	return nil
}

// shift sets rows t to z with z Lᵀ = w C, for d = Cᵀ.
func (m *TargetCorrection) shift(ctx context.Context, t, d, w []float32, ld, rows int) error {
	n := m.n
	m.left.Pack(w, ld, rows, n)
	if err := m.multiply(ctx, t, n, rows, func(c, count, worker int) {
		m.scratches[worker].right.PackRight(d[c*n:], n, count, n)
	}); err != nil {
		return err
	}
	return m.forward(ctx, t, rows)
}

// reliable returns the part of the correction of rows w that other tokens have, too. t is what shift makes of them.
func (m *TargetCorrection) reliable(ctx context.Context, t, w []float32, ld, rows int) (float32, error) {
	if m.half == nil {
		return 1, nil
	}
	n, some := m.n, (rows+sampled-1)/sampled
	z := buffer.Resize(&m.z, some*n)
	if err := m.shift(ctx, z, m.half, w, sampled*ld, some); err != nil {
		return 0, err
	}
	cross, all := 0.0, 0.0
	for i := range some {
		z, t := z[i*n:][:n], t[i*sampled*n:][:n]
		cross += (vecmath.SumProducts(t, z) - float64(m.part*vecmath.SumSquares(z, 0))) / (1 - m.part)
		all += vecmath.SumSquares(t, 0)
	}
	if all == 0 {
		return 1, nil
	}
	return float32(min(1, max(0, cross/all))), nil
}

func (m *TargetCorrection) each(ctx context.Context, rows int, f func(r int)) error {
	return parallel.For(ctx, len(m.scratches), rows, func(r, _ int) error { f(r); return nil })
}

// multiply sets y, [rows, columns], to the product of the packed left side and the columns that right packs, from c on.
func (m *TargetCorrection) multiply(ctx context.Context, y []float32, columns, rows int,
	right func(c, count, worker int)) error {
	return parallel.For(ctx, len(m.scratches), (columns+tile-1)/tile, func(i, worker int) error {
		c := i * tile
		count := min(tile, columns-c)
		right(c, count, worker)
		s := &m.scratches[worker]
		gemm.Multiply(&s.scratch, y[c:], columns, &m.left, &s.right, count)
		return nil
	})
}

// forward sets rows t to z with z Lᵀ = t in blocks of columns, each of which is subtracted from the other columns in one
// product.
func (m *TargetCorrection) forward(ctx context.Context, t []float32, rows int) error {
	n := m.n
	for at := 0; at < n; at += visitColumns {
		w := min(visitColumns, n-at)
		if err := m.times(ctx, t, rows, at, w, m.inverses[at/visitColumns][0]); err != nil {
			return err
		}
		below := at + w
		if err := m.subtract(ctx, t, rows, at, w, below, n-below, func(c, count, worker int) {
			m.scratches[worker].right.PackRight(m.lower[(below+c)*n+at:], n, count, w)
		}); err != nil {
			return err
		}
	}
	return nil
}

// backward is forward for y with y L = t.
func (m *TargetCorrection) backward(ctx context.Context, t []float32, rows int) error {
	n := m.n
	for at := (n - 1) / visitColumns * visitColumns; at >= 0; at -= visitColumns {
		w := min(visitColumns, n-at)
		if err := m.times(ctx, t, rows, at, w, m.inverses[at/visitColumns][1]); err != nil {
			return err
		}
		if err := m.subtract(ctx, t, rows, at, w, 0, at, func(c, count, worker int) {
			columns := buffer.Resize(&m.transposed[worker], count*w)
			for k := range w {
				for i, v := range m.lower[(at+k)*n+c:][:count] {
					columns[i*w+k] = v
				}
			}
			m.scratches[worker].right.PackRight(columns, w, count, w)
		}); err != nil {
			return err
		}
	}
	return nil
}

// times multiplies w columns of t, from column at on, by the transpose of right, [w, w].
func (m *TargetCorrection) times(ctx context.Context, t []float32, rows, at, w int, right []float32) error {
	m.left.Pack(t[at:], m.n, rows, w)
	y := buffer.Resize(&m.y, rows*w)
	if err := m.multiply(ctx, y, w, rows, func(c, count, worker int) {
		m.scratches[worker].right.PackRight(right[c*w:], w, count, w)
	}); err != nil {
		return err
	}
	return m.each(ctx, rows, func(r int) { copy(t[r*m.n+at:][:w], y[r*w:]) })
}

// subtract subtracts the product of w columns of t, from column at on, with the columns that right packs, from count
// columns, from column to on.
func (m *TargetCorrection) subtract(ctx context.Context, t []float32, rows, at, w, to, count int,
	right func(c, count, worker int)) error {
	if count == 0 {
		return nil
	}
	n := m.n
	m.left.Pack(t[at:], n, rows, w)
	y := buffer.Resize(&m.y, rows*count)
	if err := m.multiply(ctx, y, count, rows, right); err != nil {
		return err
	}
	return m.each(ctx, rows, func(r int) {
		x := t[r*n+to:][:count]
		for i, v := range y[r*count:][:count] {
			x[i] -= v
		}
	})
}
