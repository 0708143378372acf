package calibrate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// MomentSums sums x xᵀ over the inputs x of a layer. Memory: n² values, 1024 n for pending rows, and 2048 n while
// these are added.
type MomentSums struct {
	n, rows     int
	h           []float32 // [n, n], lower triangle
	pending     []float32 // [n, pendingStride]: pending rows, transposed
	pendingRows int
	scratches   []scratch // of each worker
}

// scratch is a worker's memory for a product.
type scratch struct {
	scratch     gemm.Scratch
	left, right gemm.Panels
	y, h        []float32
}

// packed holds two transposed matrices of n columns, packed by tiles for the left and right side of products. Each
// tile is used in many products.
type packed struct{ left, right []gemm.Panels }

// packedPool has those not in use.
var packedPool = sync.Pool{New: func() any { return new(packed) }}

// pack packs rows of matrices whose columns are pendingStride apart.
func (p *packed) pack(ctx context.Context, workers int, left, right []float32, n, rows int) error {
	tiles := (n + tile - 1) / tile
	p.left, p.right = slices.Grow(p.left[:0], tiles)[:tiles], slices.Grow(p.right[:0], tiles)[:tiles]
	return parallel.For(ctx, workers, 2*tiles, func(i, _ int) error {
		from := i / 2 * tile
		if i%2 == 0 {
			p.left[i/2].Pack(left[from*pendingStride:], pendingStride, min(tile, n-from), rows)
		} else {
			p.right[i/2].PackRight(right[from*pendingStride:], pendingStride, min(tile, n-from), rows)
		}
		return nil
	})
}

// runRows is the number of rows that are added in one product. Sums are in the order of rows, whatever blocks they
// come in.
const runRows = gemm.Run

// pendingStride is how far columns of pending rows are apart: with a power of two all of them would share few lines of
// the cache.
const pendingStride = runRows + 16

// transpose adds columns [from, from+n) of rows of x, rows of ld values, to the pending ones, n columns of which the
// first at rows are set. The columns of a worker come in groups, for which 8 rows stay in the cache.
func transpose(ctx context.Context, workers int, pending []float32, at int, x []float32, ld, from, n, rows int) error {
	const some, few = 64, 8
	return parallel.For(ctx, workers, (n+some-1)/some, func(i, _ int) error {
		first, end := i*some, min((i+1)*some, n)
		for t := 0; t < rows; t += few {
			if rows-t < few {
				for c := first; c < end; c++ {
					for k := t; k < rows; k++ {
						pending[c*pendingStride+at+k] = x[k*ld+from+c]
					}
				}
				break
			}
			r := x[t*ld+from:]
			r0, r1, r2, r3 := r[first:end], r[ld+first:ld+end], r[2*ld+first:2*ld+end], r[3*ld+first:3*ld+end]
			r = r[4*ld:]
			r4, r5, r6, r7 := r[first:end], r[ld+first:ld+end], r[2*ld+first:2*ld+end], r[3*ld+first:3*ld+end]
			for c, v := range r0 {
				to := (*[few]float32)(pending[(first+c)*pendingStride+at+t:])
				to[0], to[1], to[2], to[3] = v, r1[c], r2[c], r3[c]
				to[4], to[5], to[6], to[7] = r4[c], r5[c], r6[c], r7[c]
			}
		}
		return nil
	})
}

// NewMomentSums returns empty sums for rows of n values.
func NewMomentSums(n, workers int) *MomentSums {
	return &MomentSums{n: n, h: make([]float32, n*n), pending: make([]float32, n*pendingStride),
		scratches: make([]scratch, max(1, workers))}
}

// Rows returns the number of rows added.
func (in *MomentSums) Rows() int { return in.rows }

// Add adds rows of n values.
func (in *MomentSums) Add(ctx context.Context, x []float32) error {
	return in.AddColumns(ctx, x, in.n, 0)
}

// AddColumns adds columns [from, from+n) of rows of ld values.
func (in *MomentSums) AddColumns(ctx context.Context, x []float32, ld, from int) error {
	if len(x)%ld != 0 || from+in.n > ld {
		return fmt.Errorf("calibrate: columns %d to %d of %d values in rows of %d", from, from+in.n, len(x), ld)
	}
	for len(x) > 0 {
		rows := min(runRows-in.pendingRows, len(x)/ld)
		if err := transpose(ctx, len(in.scratches), in.pending, in.pendingRows, x, ld, from, in.n, rows); err != nil {
			return err
		}
		x = x[rows*ld:]
		in.pendingRows += rows
		in.rows += rows
		if in.pendingRows == runRows {
			if err := in.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush adds the pending rows to the tiles of the lower triangle.
func (in *MomentSums) flush(ctx context.Context) error {
	p := packedPool.Get().(*packed)
	defer packedPool.Put(p)
	if err := p.pack(ctx, len(in.scratches), in.pending, in.pending, in.n, in.pendingRows); err != nil {
		return err
	}
	n, tiles := in.n, len(p.left)
	err := parallel.For(ctx, len(in.scratches), tiles*(tiles+1)/2, func(i, worker int) error {
		row := 0
		for i > row {
			row++
			i -= row
		}
		s, a, b := &in.scratches[worker], row*tile, i*tile
		rows, columns := min(tile, n-a), min(tile, n-b)
		if row != i {
			gemm.MultiplyAdd(&s.scratch, in.h[a*n+b:], n, &p.left[row], &p.right[i], columns)
			return nil
		}
		y := buffer.Resize(&s.y, rows*columns)
		gemm.MultiplyLower(&s.scratch, y, columns, &p.left[row], &p.right[i])
		for r := range rows {
			vecmath.Add(in.h[(a+r)*n+b:][:r+1], y[r*columns:][:r+1])
		}
		return nil
	})
	in.pendingRows = 0
	return err
}

// Moments returns the moments, divided by the number of rows, in the memory of in: nothing can be added any more.
// damping, a share of the mean of the diagonal, is added to the diagonal; zeros there become the mean.
func (in *MomentSums) Moments(ctx context.Context, damping float64) (*Moments, error) {
	m, err := in.mean(ctx, in.rows)
	if err == nil {
		m.damp(damping)
	}
	return m, err
}

// mean returns the sums divided by rows, undamped.
func (in *MomentSums) mean(ctx context.Context, rows int) (*Moments, error) {
	if in.pendingRows > 0 {
		if err := in.flush(ctx); err != nil {
			return nil, err
		}
	}
	n, h := in.n, in.h
	f := float32(1 / float64(max(1, rows)))
	if err := parallel.For(ctx, len(in.scratches), n, func(r, _ int) error {
		vecmath.Scale(h[r*n:][:r+1], h[r*n:][:r+1], f)
		return nil
	}); err != nil {
		return nil, err
	}
	in.pending = nil
	const some = 64
	return &Moments{n: n, h: h}, parallel.For(ctx, len(in.scratches), (n+some-1)/some, func(i, _ int) error { // columns
		from, to := i*some, min((i+1)*some, n)
		for r := from; r < n; r++ {
			row := h[r*n:]
			for c := from; c < min(to, r); c++ {
				h[c*n+r] = row[c]
			}
		}
		return nil
	})
}

// damp adds a share of the mean of the diagonal to the diagonal; zeros there become the mean.
func (m *Moments) damp(damping float64) {
	n, h := m.n, m.h
	mean := 0.0
	for r := range n {
		mean += float64(h[r*n+r]) / float64(n)
	}
	if mean == 0 {
		mean = 1
	}
	for r := range n {
		d := float64(h[r*n+r])
		h[r*n+r] = float32(d + float64(damping*mean))
		if d == 0 {
			h[r*n+r] = float32(mean)
		}
	}
}

// identity returns the identity matrix of n columns.
func identity(n int) *Moments {
	m := &Moments{n: n, h: make([]float32, n*n)}
	for i := range n {
		m.h[i*n+i] = 1
	}
	return m
}

// Diagonal returns the mean square of each column, the values of an importance matrix.
func (m *Moments) Diagonal() []float32 {
	d := make([]float32, m.n)
	for i := range d {
		d[i] = m.h[i*m.n+i]
	}
	return d
}
