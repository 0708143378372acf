package gemm

// Panels is a matrix packed for products. The zero value is ready for use; memory is
// kept from one matrix to the next.
type Panels struct {
	data    []float32
	rows, k int
	per     int // rows of a panel
	kernel  *kernel
}

// Rows returns the number of rows.
func (p *Panels) Rows() int { return p.rows }

// K returns the length of rows.
func (p *Panels) K() int { return p.k }

// Pack copies rows of k values, ld apart in src, for the left side of products: tokens.
func (p *Panels) Pack(src []float32, ld, rows, k int) {
	p.Reset(rows, k)
	for r := 0; r < rows; r += p.per {
		p.PackRows(src[r*ld:], ld, r, min(r+p.per, rows))
	}
}

// Reset prepares for rows of k values of the left side, which PackRows then sets.
func (p *Panels) Reset(rows, k int) {
	p.size(active, active.mr, rows, k)
}

// Block is the number of rows that PackRows takes at once, or a multiple of it.
func (p *Panels) Block() int { return p.per }

// PackRows sets rows [a, b): a is a multiple of Block, and so is b but for the last
// row. src begins with row a. Different rows may be set at the same time.
func (p *Panels) PackRows(src []float32, ld, a, b int) {
	for r := a; r < b; r += p.per {
		p.pack(src[(r-a)*ld:], ld, r, min(p.per, b-r))
	}
}

// PackRight copies like Pack, for the right side of products.
func (p *Panels) PackRight(src []float32, ld, rows, k int) {
	p.size(active, active.nr, rows, k)
	for r := 0; r < rows; r += p.per {
		p.pack(src[r*ld:], ld, r, min(p.per, rows-r))
	}
}

func (p *Panels) size(k *kernel, per, rows, length int) {
	p.kernel, p.per, p.rows, p.k = k, per, rows, length
	n := roundUp(rows, per) * p.stride()
	if cap(p.data) < n {
		p.data = newFloats(n)
	}
	p.data = p.data[:n]
}

// stride is the number of values of a row in a panel.
func (p *Panels) stride() int { return roundUp(p.k, width) }

// pack sets n rows from row r on, the first of a panel, from src, whose rows are ld
// apart. Rows and columns beyond the matrix are 0.
func (p *Panels) pack(src []float32, ld, r, n int) {
	for i := range p.per {
		var row []float32
		if i < n {
			row = src[i*ld:][:p.k]
		}
		p.set(r, i, row)
	}
}

// set sets row i of the panel of row r.
func (p *Panels) set(r, i int, row []float32) {
	panel := p.data[r*p.stride():][:p.per*p.stride()]
	lanes := p.kernel.lanes
	for from := 0; from < p.k; from += Run {
		steps := min(roundUp(p.k-from, width), Run) / width
		for h := 0; h < width; h += lanes {
			part := panel[from*p.per+h*steps*p.per:][:steps*p.per*lanes]
			pick(part[i*lanes:], row, from+h, p.per*lanes, lanes)
		}
	}
}

// pick copies lanes of each step of row from column at on, to places gap apart, and
// zeros after its end.
func pick(dst, row []float32, at, gap, lanes int) {
	for len(dst) >= lanes {
		switch { // by way of a variable: slices that may overlap would be copied by a call of memmove
		case at+lanes > len(row):
			clear(dst[:lanes])
			if at < len(row) {
				copy(dst[:lanes], row[at:])
			}
		case lanes == 16:
			v := *(*[16]float32)(row[at:])
			*(*[16]float32)(dst) = v
		case lanes == 8:
			v := *(*[8]float32)(row[at:])
			*(*[8]float32)(dst) = v
		default:
			v := *(*[4]float32)(row[at:])
			*(*[4]float32)(dst) = v
		}
		at += width
		dst = dst[min(gap, len(dst)):]
	}
}

// Scratch has the buffers of a product; each worker has its own. The zero value is ready for use.
type Scratch struct {
	sums    sums
	raw     []byte
	decoded []float32
	wide    []float32 // of Transposed, in the first one only
	panels  Panels
}

// Multiply sets c, of rows that are ldc apart, to the product of x and the transpose of
// the first rows of w. x may have fewer columns than w, and w fewer than x: the others do
// not count, but in x they have to be finite up to a multiple of 16.
func Multiply(s *Scratch, c []float32, ldc int, x, w *Panels, rows int) {
	s.multiply(c, ldc, x, 0, w, rows, min(x.k, w.k), false)
}

// MultiplyAdd is Multiply for a product that is added to c. Of sums over at most Run values the bits are those of
// adding what Multiply sets.
func MultiplyAdd(s *Scratch, c []float32, ldc int, x, w *Panels, rows int) {
	s.multiply(c, ldc, x, 0, w, rows, min(x.k, w.k), true)
}

// MultiplyLower is Multiply for all rows of w, of which only the lower triangle of c, its diagonal included, is needed:
// most of the others are not set.
func MultiplyLower(s *Scratch, c []float32, ldc int, x, w *Panels) {
	strip := roundUp(together/2, x.kernel.mr)
	for t := 0; t < x.rows; t += strip {
		rows := min(strip, x.rows-t)
		part := Panels{x.data[t*x.stride() : roundUp(t+rows, x.per)*x.stride()], rows, x.k, x.per, x.kernel}
		s.multiply(c[t*ldc:], ldc, &part, 0, w, min(t+rows, w.rows), min(x.k, w.k), false)
	}
}

// together is the number of rows of x that meet a panel of w before the next one: they stay in the
// second cache, and the panel of w in the first.
const together = 48

// multiply takes n columns, of x from column x0 on and of the first rows of w from the
// first. x0 is a multiple of Run; c is added to if it is not 0 or if add is true, else set.
func (s *Scratch) multiply(c []float32, ldc int, x *Panels, x0 int, w *Panels, rows, n int, add bool) {
	kernel := x.kernel
	mr, nr := kernel.mr, kernel.nr
	apart, wapart := x.stride()*mr, w.stride()*nr // of panels
	for from := 0; from < n; from += Run {
		// values of the run in each panel; the kernel takes the smaller number
		nx, nw := min(x.stride()-x0-from, Run)*mr, min(w.stride()-from, Run)*nr
		add := add || x0+from > 0
		for t0 := 0; t0 < x.rows; t0 += together {
			end := min(t0+together, x.rows)
			for r, wat := 0, from*nr; r < rows; r, wat = r+nr, wat+wapart {
				ws, columns := w.data[wat:][:nw], min(nr, rows-r)
				for t, xat := t0, t0*x.stride()+(x0+from)*mr; t < end; t, xat = t+mr, xat+apart {
					kernel.dots(&s.sums, x.data[xat:][:nx], ws)
					put(c[t*ldc+r:], ldc, &s.sums, min(mr, x.rows-t), columns, add)
				}
			}
		}
	}
}
