package gemm

import (
	"context"
	"fmt"

	"ggforge/internal/kernel/parallel"
)

// Weights is a matrix whose rows are decoded where they are needed.
type Weights struct {
	Rows, K int
	// RowBytes is the size of a row as Raw returns it; Block elements are BlockBytes of
	// it.
	RowBytes, Block, BlockBytes int
	// Raw returns rows [a, b), valid until buf is used again.
	Raw func(buf *[]byte, a, b int) ([]byte, error)
	// Decode sets dst from whole blocks.
	Decode func(dst []float32, src []byte) error
}

// tileRows is the number of rows of weights that are decoded together, at most: all tokens are read
// as often as there are tiles, and a run of their rows should stay in the second cache.
const tileRows = 192

// tiles returns the rows of a tile, so that each worker gets about the same number of tiles.
func tiles(rows, workers, nr int) (step int) {
	n := roundUp((rows+tileRows-1)/tileRows, workers)
	return max(1, roundUp((rows+n-1)/n, nr))
}

// Product sets c to the product of x and the transpose of w; a row of c is ldc values,
// and len(c) >= (x.Rows()-1)*ldc + w.Rows. The number of workers is that of scratch, and
// the result does not depend on it.
func Product(ctx context.Context, scratch []Scratch, c []float32, ldc int, x *Panels, w *Weights) error {
	if x.k != w.K {
		panic(fmt.Sprintf("gemm: rows of %d times rows of %d", x.k, w.K))
	}
	step := tiles(w.Rows, len(scratch), x.kernel.nr)
	return parallel.For(ctx, len(scratch), (w.Rows+step-1)/step, func(i, worker int) error {
		a := i * step
		return scratch[worker].tile(c[a:], ldc, x, w, a, min(a+step, w.Rows))
	})
}

// tile computes the columns of rows [a, b) of w.
func (s *Scratch) tile(c []float32, ldc int, x *Panels, w *Weights, a, b int) error {
	raw, err := w.Raw(&s.raw, a, b)
	if err != nil {
		return err
	}
	run := Run
	if Run%w.Block != 0 {
		run = w.K
	}
	if n := min(run, w.K); cap(s.decoded) < n {
		s.decoded = make([]float32, n)
	}
	p := &s.panels
	for from := 0; from < w.K; from += run {
		n := min(run, w.K-from)
		first, size := from/w.Block*w.BlockBytes, n/w.Block*w.BlockBytes
		p.size(x.kernel, x.kernel.nr, b-a, n)
		for r := range roundUp(b-a, p.per) {
			var row []float32
			if r < b-a {
				row = s.decoded[:n]
				if err := w.Decode(row, raw[r*w.RowBytes+first:][:size]); err != nil {
					return err
				}
			}
			p.set(r-r%p.per, r%p.per, row)
		}
		s.multiply(c, ldc, x, from, p, b-a, n, false)
	}
	return nil
}
