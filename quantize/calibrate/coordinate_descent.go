package calibrate

import (
	"context"
	"fmt"
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/quants/parts"
)

// Moments are the damped second moments H = E[x xᵀ] of a layer's inputs: a symmetric [n, n] matrix with a positive
// diagonal.
type Moments struct {
	n int
	h []float32 // [n, n]

	factors *feedback // or nil: for formats whose blocks and sub-blocks have cut columns
	cut     [2]int
}

// Result has the errors Σ (v-w)ᵀ H (v-w) of rows of weights before and after.
type Result struct{ Before, After float64 }

// visitColumns is the number of columns that are visited together; the gradients of the other columns follow their
// changes in one product.
const visitColumns = 256

// batchRows is the number of rows that are processed together.
const batchRows = 512

// CoordinateDescent improves encoded blocks step by step: a step changes one level, the scale and minimum of one
// sub-block, or d and dmin of one block, and is taken only if the error falls. d and dmin change in formats without codes
// of scales and in those with a grid; in the others a step of them costs as much as all steps of scales and gains
// nothing that the divergence of a model shows.
type CoordinateDescent struct {
	Format  *parts.Format
	Moments *Moments
	// Passes is the maximum number of passes over all columns.
	Passes  int
	Workers int

	// Feedback starts from the blocks of error feedback where their error is smaller.
	Feedback bool
	// Search, with Feedback and diagonal moments, searches scales and minima before, with levels that follow.
	Search bool

	local     []*neighbours // of each visit
	scratches []scratch     // of each worker
	left      gemm.Panels
	states    []state // of each worker
	feedback  *feedback
	grid      *grid
	v, g, e   []float32     // of a batch: values, gradients, room
	blocks    []parts.Block // of a batch, twice
	moves     []moves       // of a batch
	sizes     []size        // of the sub-blocks of a batch
}

// moves are the changes of a row in a visit: columns, and steps as float32 bits.
type moves struct {
	at    []int32
	steps []uint32
}

// size is what scaleStep needs of a sub-block's levels u alone, as long as they stay: uᵀHu, and uᵀH times ones.
type size struct {
	uu, uo float64
	known  bool
}

// neighbours are the moments among the columns of a visit, and their sums by sub-block.
type neighbours struct {
	at, n int
	h     []float32   // [n, n]
	reach []float32   // of each column: about the smallest gradient that changes its level, where levels are 1 apart
	ones  [][]float32 // of each sub-block: the sum of its rows of h
	all   []float64   // of each sub-block: the sum of those sums over itself
	forms []uint32    // of each group of a grid, see grid.forms
}

// state has the buffers of a worker for one row in one visit.
type state struct {
	u, hu, ho, old []float32
	bits           []uint32
	attempts       [3]attempt
}

// resizeBits returns the buffer bits with a length of n.
func (s *state) resizeBits(n int) []uint32 {
	if cap(s.bits) < n {
		s.bits = make([]uint32, n)
	}
	return s.bits[:n]
}

// rowState is a row of weights and its blocks.
type rowState struct {
	w      []float32
	data   []byte // its blocks, as they were
	blocks []parts.Block
	still  bool    // hardly anything was gained in a whole pass
	error  float64 // now
	gain   float64 // of a pass so far
	share  float64 // mean part of a column in the error at the beginning
	sizes  []size  // of each sub-block
}

// Minimum gains: of a change as a share of its columns' part of the error, of a pass as a share of the whole error.
// Changes of d cost the most time, as all values of a block change. Together the skipped gains are about a hundredth
// of the error.
const (
	minGainLevel = 0.001
	minGainScale = 0.002 // of a sub-block, or of a block that has no other
	minGainD     = 0.02  // of a block that has both
	minGainPass  = 0.002
)

// take reports whether a change of that many columns, which changes the error by e, gains enough, and adds its gain.
func (r *rowState) take(e, minGain float64, columns int) bool {
	if !(e < -float64(r.share*minGain)*float64(columns)) {
		return false
	}
	r.gain -= e
	return true
}

// Rows improves encoded rows in place: w has the weights, [rows, n], data their blocks. Rows whose error would not
// fall stay unchanged.
func (d *CoordinateDescent) Rows(ctx context.Context, w []float32, data []byte) (Result, error) {
	return d.columns(ctx, w, data, d.Moments.n, 0)
}

// columns is Rows for columns [from, from+n) of rows of ld weights, n the size of the moments.
func (d *CoordinateDescent) columns(ctx context.Context, w []float32, data []byte, ld,
	from int) (sum Result, err error) {
	f, n := d.Format, d.Moments.n
	if n%f.Block != 0 || from%f.Block != 0 || from+n > ld || len(w)%ld != 0 ||
		int64(len(data)) != int64(len(w)/ld)*f.Type.RowBytes(int64(ld)) {
		return sum, fmt.Errorf("calibrate: columns %d to %d of %d weights and %d bytes in rows of %d", from, from+n,
			len(w), len(data), ld)
	}
	if d.local == nil {
		d.prepare()
	}
	if d.Feedback && d.feedback == nil {
		factors, err := d.Moments.feedback(ctx, f, d.scratches)
		if err != nil {
			return sum, err
		}
		own := *factors // which may be shared
		own.search = d.Search
		own.tries = codesNear(f)
		if err := own.groups(ctx, f, d.grid, len(d.scratches)); err != nil {
			return sum, err
		}
		d.feedback = &own
	}
	block := int(f.Type.BlockBytes())
	for row := 0; row < len(w)/ld; row += batchRows {
		rows := make([]rowState, min(batchRows, len(w)/ld-row))
		for r := range rows {
			at := (row+r)*ld + from
			rows[r].w = w[at:][:n]
			rows[r].data = data[at/f.Block*block:][:n/f.Block*block]
		}
		r, err := d.batch(ctx, rows)
		if err != nil {
			return sum, err
		}
		sum.Before, sum.After = sum.Before+r.Before, sum.After+r.After
	}
	return sum, nil
}

// traces returns tr(D) and tr(H), 0 without feedback.
func (d *CoordinateDescent) traces() (t traces) {
	if d.feedback == nil {
		return t
	}
	n := d.Moments.n
	for i, v := range d.feedback.d {
		t.add(traces{float64(v), float64(d.Moments.h[i*n+i])})
	}
	return t
}

func (d *CoordinateDescent) prepare() {
	workers := max(1, d.Workers)
	d.grid = newGrid(d.Format.Grid)
	d.scratches, d.states = make([]scratch, workers), make([]state, workers)
	n, sub := d.Moments.n, d.Format.Sub
	gap := d.Format.Gap()
	for at := 0; at < n; at += visitColumns {
		l := &neighbours{at: at, n: min(visitColumns, n-at)}
		l.h = make([]float32, l.n*l.n)
		l.reach = make([]float32, l.n)
		for i := range l.n {
			copy(l.h[i*l.n:], d.Moments.h[(at+i)*n+at:][:l.n])
			l.reach[i] = 0.499 * gap * l.h[i*l.n+i]
		}
		for from := 0; from < l.n; from += sub {
			one := make([]float32, l.n)
			for i := from; i < from+sub; i++ {
				vecmath.Add(one, l.h[i*l.n:][:l.n])
			}
			l.ones, l.all = append(l.ones, one), append(l.all, vecmath.Sum(one[from:][:sub]))
		}
		if d.grid != nil {
			l.forms = d.grid.forms(l.h, l.n, l.n, l.n)
		}
		d.local = append(d.local, l)
	}
}

// batch improves rows together.
func (d *CoordinateDescent) batch(ctx context.Context, all []rowState) (Result, error) {
	f, n, rows := d.Format, d.Moments.n, len(all)
	perBlock := int(f.Type.BlockBytes())
	v, g := buffer.Resize(&d.v, rows*n), buffer.Resize(&d.g, rows*n)
	perRow := n / f.Block
	blocks := buffer.Resize(&d.blocks, 2*rows*perRow)
	each := func(f func(r, worker int)) error {
		return parallel.For(ctx, len(d.scratches), rows, func(r, worker int) error { f(r, worker); return nil })
	}
	if err := each(func(r, _ int) {
		all[r].blocks = blocks[r*perRow:][:perRow]
		for i := range all[r].blocks {
			f.Unpack(&all[r].blocks[i], all[r].data[i*perBlock:])
			f.Values(v[r*n+i*f.Block:], &all[r].blocks[i])
		}
	}); err != nil {
		return Result{}, err
	}
	before := make([]float64, rows)
	if d.feedback != nil {
		if err := d.errors(ctx, v, all, before); err != nil {
			return Result{}, err
		}
		if err := d.startWithFeedback(ctx, all, blocks[rows*perRow:], before); err != nil {
			return Result{}, err
		}
	}
	if err := d.gradients(ctx, all); err != nil {
		return Result{}, err
	}
	subs := n / f.Sub
	sizes := buffer.Resize(&d.sizes, rows*subs)
	clear(sizes)
	for r := range all {
		all[r].sizes = sizes[r*subs:][:subs]
		if d.feedback == nil {
			before[r] = all[r].error
		}
		all[r].share = all[r].error / float64(n)
	}
	for pass := range d.Passes {
		if err := d.pass(ctx, all, pass); err != nil {
			return Result{}, err
		}
		busy := false
		for r := range all {
			x := &all[r]
			x.still = x.still || pass > 0 && !(x.gain > minGainPass*x.error)
			x.gain = 0
			busy = busy || !x.still
		}
		if !busy {
			break
		}
	}
	if err := each(func(r, _ int) { all[r].measure(v[r*n:][:n], g[r*n:][:n], d.e[r*n:][:n]) }); err != nil {
		return Result{}, err
	}
	var sum Result
	for r := range all {
		sum.Before += before[r]
		if !(all[r].error < before[r]) {
			sum.After += before[r]
			continue
		}
		sum.After += all[r].error
		for i := range all[r].blocks {
			f.Pack(all[r].data[i*perBlock:], &all[r].blocks[i])
		}
	}
	return sum, nil
}

// startWithFeedback replaces rows by the rows of error feedback whose error is smaller.
func (d *CoordinateDescent) startWithFeedback(ctx context.Context, all []rowState, blocks []parts.Block,
	before []float64) error {
	n, perRow := d.Moments.n, len(all[0].blocks)
	other, values := make([]rowState, len(all)), buffer.Resize(&d.g, len(all)*n)
	for r := range other {
		other[r] = rowState{w: all[r].w, blocks: blocks[r*perRow:][:perRow]}
	}
	if err := d.feedback.rows(ctx, d.Format, other, values, d.scratches); err != nil {
		return err
	}
	for r := range all {
		if other[r].error < before[r] {
			all[r].blocks = other[r].blocks
			copy(d.v[r*n:][:n], values[r*n:])
		}
	}
	return nil
}

// pass visits all columns of rows that are not still.
func (d *CoordinateDescent) pass(ctx context.Context, all []rowState, pass int) error {
	n, v, g, rows := d.Moments.n, d.v, d.g, len(all)
	moves := buffer.Resize(&d.moves, rows)
	for _, l := range d.local {
		if err := parallel.For(ctx, len(d.scratches), rows, func(r, worker int) error {
			m := &moves[r]
			m.at, m.steps = m.at[:0], m.steps[:0]
			if !all[r].still {
				d.visit(l, &d.states[worker], &all[r], pass, m, v[r*n+l.at:][:l.n], g[r*n+l.at:][:l.n])
			}
			return nil
		}); err != nil {
			return err
		}
		// the changes times H of the other columns: the columns of a piece stay in the cache for some rows
		const piece, some = 1024, 64
		pieces, groups := (n+piece-1)/piece, (rows+some-1)/some
		if err := parallel.For(ctx, len(d.scratches), pieces*groups, func(i, _ int) error {
			from := i / groups * piece
			to := min(from+piece, n)
			for r := i % groups * some; r < min((i%groups+1)*some, rows); r++ {
				m, g := &moves[r], g[r*n:][:n]
				if len(m.at) == 0 {
					continue
				}
				if to, h := min(to, l.at), d.Moments.h[from:]; from < to {
					vecmath.CombineAt(g[from:to], h, n, m.at, m.steps)
				}
				if from := max(from, l.at+l.n); from < to {
					vecmath.CombineAt(g[from:to], d.Moments.h[from:], n, m.at, m.steps)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }
