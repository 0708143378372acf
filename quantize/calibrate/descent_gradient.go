package calibrate

import (
	"context"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// measure computes the error of values v from half its gradient g; e becomes v-w.
func (r *rowState) measure(v, g, e []float32) {
	for i, w := range r.w {
		e[i] = v[i] - w
	}
	r.error = vecmath.SumProducts(e, g)
}

// residuals packs the rows of v-w.
func (d *CoordinateDescent) residuals(ctx context.Context, all []rowState) error {
	n, rows := d.Moments.n, len(all)
	e := buffer.Resize(&d.e, rows*n)
	d.left.Reset(rows, n)
	const some = 48 // a multiple of the rows of panels
	return parallel.For(ctx, len(d.scratches), (rows+some-1)/some, func(i, _ int) error {
		a, b := i*some, min((i+1)*some, rows)
		for r := a; r < b; r++ {
			to, v := e[r*n:][:n], d.v[r*n:][:n]
			for k, w := range all[r].w {
				to[k] = v[k] - w
			}
		}
		d.left.PackRows(e[a*n:], n, a, b)
		return nil
	})
}

// tile is the number of columns of a product that a worker computes at once.
const tile = 192

// errors computes the errors of values from the lower triangle of H: columns below the diagonal count twice.
func (d *CoordinateDescent) errors(ctx context.Context, v []float32, all []rowState, errors []float64) error {
	if err := d.residuals(ctx, all); err != nil {
		return err
	}
	n, rows := d.Moments.n, len(all)
	finite := vecmath.Finite(d.e[:rows*n])
	tiles := (n + tile - 1) / tile
	sums := make([]float64, tiles*rows)
	if err := parallel.For(ctx, len(d.scratches), tiles, func(i, worker int) error {
		from := i * tile
		count := min(tile, n-from)
		k := from + count // elements beyond the tile are 0: those of the run change sums only of what is not finite
		if !finite {
			k = min((k+gemm.Run-1)/gemm.Run*gemm.Run, n)
		}
		s := &d.scratches[worker]
		h := buffer.Resize(&s.h, count*k)
		for c := range count {
			row, src := h[c*k:][:k], d.Moments.h[(from+c)*n:][:from+count]
			vecmath.Scale(row[:from], src[:from], 2)
			copy(row[from:], src[from:])
			clear(row[from+count:])
		}
		s.right.PackRight(h, k, count, k)
		y := buffer.Resize(&s.y, rows*count)
		gemm.Multiply(&s.scratch, y, count, &d.left, &s.right, count)
		for r := range rows {
			sums[i*rows+r] = vecmath.SumProducts(y[r*count:][:count], d.e[r*n+from:][:count])
		}
		return nil
	}); err != nil {
		return err
	}
	for i, s := range sums {
		errors[i%rows] += s
	}
	return nil
}

// gradients sets the rows of g to (v-w) H, half the gradients of the errors, and computes the errors.
func (d *CoordinateDescent) gradients(ctx context.Context, all []rowState) error {
	if err := d.residuals(ctx, all); err != nil {
		return err
	}
	n, g := d.Moments.n, d.g
	if err := parallel.For(ctx, len(d.scratches), (n+tile-1)/tile, func(i, worker int) error {
		from := i * tile
		count := min(tile, n-from)
		s := &d.scratches[worker]
		s.right.PackRight(d.Moments.h[from*n:], n, count, n)
		gemm.Multiply(&s.scratch, g[from:], n, &d.left, &s.right, count)
		return nil
	}); err != nil {
		return err
	}
	return parallel.For(ctx, len(d.scratches), len(all), func(r, _ int) error {
		all[r].measure(d.v[r*n:][:n], g[r*n:][:n], d.e[r*n:][:n])
		return nil
	})
}
