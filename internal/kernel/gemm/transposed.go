package gemm

import (
	"context"
	"fmt"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
)

// transposedColumns is the number of values of a row of weights that are decoded together for Transposed:
// with Run rows of them, 16 MiB. Weights whose rows are longer are read several times.
const transposedColumns = 4096

// Transposed multiplies by weights along their other side,
//
//	C[t, k] = Σ G[t, r] · W[r, k]
//
// as gradients of outputs become those of inputs. The sum is over rows of w, of which g has a value each, and its bits
// are those of Dot over g's row and a column of w: runs of rows, 16 partial sums by r mod 16. If add is true the sums
// of runs are added to c. A row of c is ldc values, and len(c) >= (g.Rows()-1)*ldc + w.K. The number of workers is that
// of scratch, and the result does not depend on it.
func Transposed(ctx context.Context, scratch []Scratch, c []float32, ldc int, g *Panels, w *Weights, add bool) error {
	if g.k != w.Rows {
		panic(fmt.Sprintf("gemm: rows of %d times columns of %d", g.k, w.Rows))
	}
	for first := 0; first < w.K; {
		n := min(roundUp(transposedColumns, w.Block), w.K-first)
		step := tiles(n, len(scratch), g.kernel.nr)
		// of decoded rows: not a power of two, by which rows would share few lines of the cache
		stride := roundUp(n, width) + width
		wide := buffer.Resize(&scratch[0].wide, min(Run, w.Rows)*stride)
		for from := 0; from < w.Rows; from += Run {
			rows := min(Run, w.Rows-from)
			err := parallel.For(ctx, len(scratch), (rows+width-1)/width, func(i, worker int) error {
				a := i * width
				return scratch[worker].columns(wide[a*stride:], stride, w, from+a, from+min(a+width, rows), first, n)
			})
			if err != nil {
				return err
			}
			err = parallel.For(ctx, len(scratch), (n+step-1)/step, func(i, worker int) error {
				s, a := &scratch[worker], i*step
				b := min(a+step, n)
				s.panels.size(g.kernel, g.kernel.nr, b-a, rows)
				s.panels.turn(wide[a:], stride)
				s.multiply(c[first+a:], ldc, g, from, &s.panels, b-a, rows, add)
				return nil
			})
			if err != nil {
				return err
			}
		}
		first += n
	}
	return nil
}

// columns decodes n columns from column first on, of rows [a, b) of w, to rows that are
// stride apart.
func (s *Scratch) columns(to []float32, stride int, w *Weights, a, b, first, n int) error {
	raw, err := w.Raw(&s.raw, a, b)
	if err != nil {
		return err
	}
	from, size := first/w.Block*w.BlockBytes, n/w.Block*w.BlockBytes
	for r := range b - a {
		if err := w.Decode(to[r*stride:][:n], raw[r*w.RowBytes+from:][:size]); err != nil {
			return err
		}
	}
	return nil
}

// turn packs the columns of src, whose rows are stride apart, as rows: p.k rows of it, at
// most Run, and p.rows columns.
func (p *Panels) turn(src []float32, stride int) {
	steps, lanes := p.stride()/width, p.kernel.lanes
	for r := 0; r < p.rows; r += p.per {
		panel := p.data[r*p.stride():][:p.per*p.stride()]
		for i := range p.per {
			for s := range steps {
				var v [width]float32
				if r+i < p.rows {
					at := s*width*stride + r + i
					for l := range min(width, p.k-s*width) {
						v[l] = src[at]
						at += stride
					}
				}
				for h := 0; h < width; h += lanes {
					copy(panel[h*steps*p.per+(s*p.per+i)*lanes:][:lanes], v[h:])
				}
			}
		}
	}
}
