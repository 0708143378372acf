package calibrate

import (
	"context"
	"fmt"
	"math"

	"ggforge/internal/gemm"
	"ggforge/internal/parallel"
	"ggforge/internal/vecmath"
	"ggforge/quants/parts"
)

// Moments are the second moments of the inputs of a layer, damped: a symmetric matrix whose
// diagonal is above 0.
type Moments struct {
	n int
	h []float32 // [n, n]
}

// Result is what became of rows of weights: their errors before and after, Σ (v-w)ᵀ H (v-w).
type Result struct{ Before, After float64 }

// visit is how many columns are looked at together; what changes in them meets the others
// in one product.
const visit = 256

// batchRows is how many rows go through the columns together.
const batchRows = 512

// A Descender improves blocks step by step: each step changes one level, the scale and the
// minimum of one sub-block, or those of a block, and is taken only if the error falls.
type Descender struct {
	Format  *parts.Format
	Moments *Moments
	// Passes is how often all columns are visited at most.
	Passes  int
	Workers int

	// Feedback starts with blocks that feedback of errors makes, where these are better.
	Feedback bool

	local    []*neighbours // of each visit
	rooms    []room        // of each worker
	left     gemm.Panels
	states   []state // of each worker
	feedback *feedback
}

// neighbours are the moments among the columns of a visit, and their sums by sub-block.
type neighbours struct {
	at, n int
	h     []float32   // [n, n]
	ones  [][]float32 // of each sub-block: the sum of its rows of h
	all   []float64   // of each sub-block: the sum of those sums over itself
}

// state is what a worker needs for one row in one visit.
type state struct {
	u, hu, ho, old []float32
	bits           []uint32
}

func (s *state) room(n int) []uint32 {
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
	still  bool // nothing moved in a whole pass
	moved  bool
	scale  float64 // what a step has to be worth
}

// Rows improves rows of encoded weights in place; w has the weights, [rows, n]. A row whose
// error would not fall is left as it is.
func (d *Descender) Rows(ctx context.Context, w []float32, data []byte) (Result, error) {
	return d.columns(ctx, w, data, d.Moments.n, 0)
}

// columns is Rows for the columns from one on, as many as there are moments, of rows of ld
// weights.
func (d *Descender) columns(ctx context.Context, w []float32, data []byte, ld, from int) (sum Result, err error) {
	f, n := d.Format, d.Moments.n
	if n%f.Block != 0 || from%f.Block != 0 || from+n > ld || len(w)%ld != 0 || int64(len(data)) != int64(len(w)/ld)*f.Type.RowBytes(int64(ld)) {
		return sum, fmt.Errorf("calibrate: columns %d to %d of %d weights and %d bytes in rows of %d", from, from+n, len(w), len(data), ld)
	}
	if d.local == nil {
		d.prepare()
	}
	if d.Feedback && d.feedback == nil {
		if d.feedback, err = newFeedback(ctx, d.Moments, f, d.rooms); err != nil {
			return sum, err
		}
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

func (d *Descender) prepare() {
	workers := max(1, d.Workers)
	d.rooms, d.states = make([]room, workers), make([]state, workers)
	n, sub := d.Moments.n, d.Format.Sub
	for at := 0; at < n; at += visit {
		l := &neighbours{at: at, n: min(visit, n-at)}
		l.h = make([]float32, l.n*l.n)
		for i := range l.n {
			copy(l.h[i*l.n:], d.Moments.h[(at+i)*n+at:][:l.n])
		}
		for from := 0; from < l.n; from += sub {
			one := make([]float32, l.n)
			for i := from; i < from+sub; i++ {
				vecmath.Add(one, l.h[i*l.n:][:l.n])
			}
			l.ones, l.all = append(l.ones, one), append(l.all, vecmath.Sum(one[from:][:sub]))
		}
		d.local = append(d.local, l)
	}
}

// batch improves rows together.
func (d *Descender) batch(ctx context.Context, all []rowState) (Result, error) {
	f, n, rows := d.Format, d.Moments.n, len(all)
	perBlock := int(f.Type.BlockBytes())
	v, g, delta, y := make([]float32, rows*n), make([]float32, rows*n), make([]float32, rows*visit), make([]float32, rows*n)
	each := func(f func(r, worker int)) error {
		return parallel.For(ctx, len(d.rooms), rows, func(r, worker int) error { f(r, worker); return nil })
	}
	if err := each(func(r, _ int) {
		all[r].blocks = make([]parts.Block, n/f.Block)
		for i := range all[r].blocks {
			f.Unpack(&all[r].blocks[i], all[r].data[i*perBlock:])
			f.Values(v[r*n+i*f.Block:], &all[r].blocks[i])
		}
	}); err != nil {
		return Result{}, err
	}
	before := make([]float64, rows)
	if err := d.gradients(ctx, g, v, all, delta, y, before); err != nil {
		return Result{}, err
	}
	if d.feedback != nil {
		if err := d.restart(ctx, all, v, g, delta, y, before); err != nil {
			return Result{}, err
		}
	}
	for r := range all {
		all[r].scale = before[r] * 1e-7
	}
	for pass := range d.Passes {
		for _, l := range d.local {
			if err := each(func(r, worker int) {
				change := delta[r*l.n:][:l.n]
				if all[r].still {
					clear(change)
					return
				}
				d.visit(l, &d.states[worker], &all[r], pass, change, v[r*n+l.at:][:l.n], g[r*n+l.at:][:l.n])
			}); err != nil {
				return Result{}, err
			}
			if err := d.times(ctx, y, delta, rows, l); err != nil {
				return Result{}, err
			}
			if err := each(func(r, _ int) {
				if all[r].still {
					return
				}
				g, y := g[r*n:][:n], y[r*n:][:n]
				vecmath.Add(g[:l.at], y[:l.at])
				vecmath.Add(g[l.at+l.n:], y[l.at+l.n:])
			}); err != nil {
				return Result{}, err
			}
		}
		busy := false
		for r := range all {
			all[r].still = all[r].still || pass > 0 && !all[r].moved
			all[r].moved = false
			busy = busy || !all[r].still
		}
		if !busy {
			break
		}
	}
	after := make([]float64, rows)
	if err := d.gradients(ctx, g, v, all, delta, y, after); err != nil {
		return Result{}, err
	}
	var sum Result
	for r := range all {
		sum.Before += before[r]
		if !(after[r] < before[r]) {
			sum.After += before[r]
			continue
		}
		sum.After += after[r]
		for i := range all[r].blocks {
			f.Pack(all[r].data[i*perBlock:], &all[r].blocks[i])
		}
	}
	return sum, nil
}

// restart takes the rows that are better with feedback to that, values and gradients, too.
func (d *Descender) restart(ctx context.Context, all []rowState, v, g, delta, y []float32, before []float64) error {
	n := d.Moments.n
	other, fv, fg := make([]rowState, len(all)), make([]float32, len(v)), make([]float32, len(g))
	for r := range other {
		other[r] = rowState{w: all[r].w, blocks: make([]parts.Block, len(all[r].blocks))}
	}
	if err := d.feedback.rows(ctx, d.Format, other, fv, d.rooms); err != nil {
		return err
	}
	errors := make([]float64, len(all))
	if err := d.gradients(ctx, fg, fv, other, delta, y, errors); err != nil {
		return err
	}
	for r := range all {
		if errors[r] < before[r] {
			all[r].blocks = other[r].blocks
			copy(v[r*n:][:n], fv[r*n:])
			copy(g[r*n:][:n], fg[r*n:])
		}
	}
	return nil
}

// gradients sets g to the rows of (v-w) H, half the gradients of the errors, and errors to
// the errors. delta and y are room.
func (d *Descender) gradients(ctx context.Context, g, v []float32, all []rowState, delta, y []float32, errors []float64) error {
	n, rows := d.Moments.n, len(errors)
	clear(g)
	for _, l := range d.local {
		for r := range rows {
			to := delta[r*l.n:][:l.n]
			for i := range to {
				to[i] = v[r*n+l.at+i] - all[r].w[l.at+i]
			}
		}
		if err := d.times(ctx, y, delta, rows, l); err != nil {
			return err
		}
		vecmath.Add(g, y)
	}
	return parallel.For(ctx, len(d.rooms), rows, func(r, _ int) error {
		for i := range n {
			errors[r] += float64((float64(v[r*n+i]) - float64(all[r].w[i])) * float64(g[r*n+i]))
		}
		return nil
	})
}

// tile is how many columns of a product a worker computes at once.
const tile = 192

// times sets y to the products of rows of changes in the columns of a visit and H.
func (d *Descender) times(ctx context.Context, y, delta []float32, rows int, l *neighbours) error {
	n := d.Moments.n
	d.left.Pack(delta, l.n, rows, l.n)
	return parallel.For(ctx, len(d.rooms), (n+tile-1)/tile, func(i, worker int) error {
		from := i * tile
		count := min(tile, n-from)
		s := &d.rooms[worker]
		s.right.PackRight(d.Moments.h[from*n+l.at:], n, count, l.n)
		gemm.Multiply(&s.scratch, y[from:], n, &d.left, &s.right, count)
		return nil
	})
}

// visit improves one row in the columns of l: v are its values and g half the gradient, in
// these columns. change is set to how much the values moved.
func (d *Descender) visit(l *neighbours, s *state, row *rowState, pass int, change, v, g []float32) {
	f := d.Format
	s.old = append(s.old[:0], v...)
	for at := 0; at < l.n; at += f.Block {
		b := &row.blocks[(l.at+at)/f.Block]
		if b.D == 0 || !finite(b.D) {
			continue
		}
		for j := range f.Subs() {
			from := at + j*f.Sub
			if scale, _ := f.Scale(b, j); !finite(scale) {
				continue
			}
			if pass > 0 && f.Scales[0] < f.Scales[1] {
				d.rescale(l, s, row, b, j, from, v, g)
			}
			d.recode(l, row, b, j, from, v, g)
		}
		if pass > 0 && f.HasD() {
			d.restep(l, s, row, b, at, v, g)
		}
	}
	for i := range change {
		change[i] = v[i] - s.old[i]
	}
}

// move changes value i by d.
func (l *neighbours) move(g []float32, i int, d float32) {
	vecmath.AddScaled(g, l.h[i*l.n:][:l.n], d)
}

// recode looks for better levels in sub-block j of b, from column from on.
func (d *Descender) recode(l *neighbours, row *rowState, b *parts.Block, j, from int, v, g []float32) {
	f := d.Format
	scale, min := f.Scale(b, j)
	if scale == 0 {
		return
	}
	levels := b.Levels[j*f.Sub:][:f.Sub]
	for k := range levels {
		i := from + k
		h := l.h[i*l.n+i]
		level := f.Nearest(v[i]-g[i]/h, scale, min)
		if level == levels[k] {
			continue
		}
		next := float32(scale*float32(level)) - min
		step := next - v[i]
		if float64(step)*(2*float64(g[i])+float64(float64(step)*float64(h))) < -row.scale {
			levels[k], v[i], row.moved = level, next, true
			l.move(g, i, step)
		}
	}
}

// quadratic is what the error changes by if a of one direction and b of another are added:
// 2(a gu + b go) + a² uu + 2ab uo + b² oo.
type quadratic struct{ gu, gw, uu, uo, oo float64 }

func (q *quadratic) at(a, b float64) float64 {
	first := float64(a*q.gu) + float64(b*q.gw)
	return 2*first + float64(a*a*q.uu) + float64(2*a*b*q.uo) + float64(b*b*q.oo)
}

// least returns where it is the least; with a alone if it has one direction.
func (q *quadratic) least() (a, b float64) {
	if det := float64(q.uu*q.oo) - float64(q.uo*q.uo); q.oo > 0 && det > 1e-9*q.uu*q.oo {
		return (float64(q.gw*q.uo) - float64(q.gu*q.oo)) / det, (float64(q.gu*q.uo) - float64(q.gw*q.uu)) / det
	}
	if q.uu > 0 {
		return -q.gu / q.uu, 0
	}
	return 0, 0
}

// around is how far codes of scales and minima are tried from where they are.
const around = 4

// rescale looks for a better scale and minimum of a sub-block, with the levels held.
func (d *Descender) rescale(l *neighbours, s *state, row *rowState, b *parts.Block, j, from int, v, g []float32) {
	f := d.Format
	u, hu := grow(&s.u, f.Sub), grow(&s.hu, f.Sub)
	clear(hu)
	bits := s.room(f.Sub)
	for k := range u {
		u[k] = float32(b.Levels[j*f.Sub+k])
		bits[k] = math.Float32bits(u[k])
	}
	vecmath.Combine(hu, l.h[from*l.n+from:], l.n, bits)
	gs := g[from:][:f.Sub]
	q := quadratic{gu: vecmath.SumProducts(gs, u), uu: vecmath.SumProducts(hu, u)}
	if f.Mins[0] < f.Mins[1] {
		q.gw, q.oo = vecmath.Sum(gs), l.all[from/f.Sub]
		q.uo = vecmath.Sum(hu)
	}
	best, bs, bm := -row.scale, int(b.Scales[j]), int(b.Mins[j])
	s0, m0 := bs, bm
	for sc := max(f.Scales[0], s0-around); sc <= min(f.Scales[1], s0+around); sc++ {
		da := float64(b.D) * (float64(f.Factor(int16(sc))) - float64(f.Factor(int16(s0))))
		lo, hi := m0, m0
		if f.Mins[0] < f.Mins[1] {
			lo, hi = max(f.Mins[0], m0-around), min(f.Mins[1], m0+around)
		}
		for m := lo; m <= hi; m++ {
			if e := q.at(da, -float64(b.Min)*float64(m-m0)); e < best {
				best, bs, bm = e, sc, m
			}
		}
	}
	if bs == s0 && bm == m0 {
		return
	}
	b.Scales[j], b.Mins[j], row.moved = int16(bs), int16(bm), true
	d.set(l, s, b, j, from, v, g)
}

// set sets the values of a sub-block to those of its scale, minimum and levels.
func (d *Descender) set(l *neighbours, s *state, b *parts.Block, j, from int, v, g []float32) {
	f := d.Format
	scale, min := f.Scale(b, j)
	bits := s.room(f.Sub)
	for k := range bits {
		next := float32(scale*float32(b.Levels[j*f.Sub+k])) - min
		bits[k] = math.Float32bits(next - v[from+k])
		v[from+k] = next
	}
	vecmath.Combine(g, l.h[from*l.n:], l.n, bits)
}

// restep looks for better d and dmin of a block, with all levels held.
func (d *Descender) restep(l *neighbours, s *state, row *rowState, b *parts.Block, at int, v, g []float32) {
	f := d.Format
	u, hu, ho := grow(&s.u, f.Block), grow(&s.hu, f.Block), grow(&s.ho, f.Block)
	clear(hu)
	clear(ho)
	bits := s.room(f.Block)
	var q quadratic
	for j := range f.Subs() {
		for k := j * f.Sub; k < (j+1)*f.Sub; k++ {
			u[k] = f.Factor(b.Scales[j]) * float32(b.Levels[k])
			bits[k] = math.Float32bits(u[k])
		}
		if m := float32(b.Mins[j]); f.HasMins() && m != 0 {
			vecmath.AddScaled(ho, l.ones[at/f.Sub+j][at:][:f.Block], m)
			q.gw += float64(float64(m) * vecmath.Sum(g[at+j*f.Sub:][:f.Sub]))
		}
	}
	vecmath.Combine(hu, l.h[at*l.n+at:], l.n, bits)
	q.gu, q.uu = vecmath.SumProducts(g[at:][:f.Block], u), vecmath.SumProducts(hu, u)
	for j := range f.Subs() {
		if m := float64(b.Mins[j]); m != 0 {
			q.oo += float64(m * vecmath.Sum(ho[j*f.Sub:][:f.Sub]))
			q.uo += float64(m * vecmath.Sum(hu[j*f.Sub:][:f.Sub]))
		}
	}
	da, dm := q.least()
	nextD, nextMin := f.RoundD(float32(float64(b.D)+da)), b.Min
	if f.HasMins() {
		nextMin = f.RoundMin(float32(float64(b.Min) - dm))
		if f.Mins[0] < f.Mins[1] && nextMin < 0 {
			nextD, nextMin = f.RoundD(float32(float64(b.D)-q.gu/q.uu)), b.Min
		}
	}
	if !finite(nextD) || !finite(nextMin) || nextD == 0 {
		return
	}
	if q.at(float64(nextD)-float64(b.D), -(float64(nextMin)-float64(b.Min))) >= -row.scale {
		return
	}
	b.D, b.Min, row.moved = nextD, nextMin, true
	for j := range f.Subs() {
		d.set(l, s, b, j, at+j*f.Sub, v, g)
	}
}

func finite(x float32) bool { return !math.IsNaN(float64(x)) && !math.IsInf(float64(x), 0) }

// grow returns a slice of n values, in memory that is kept.
func grow(b *[]float32, n int) []float32 {
	if cap(*b) < n {
		*b = make([]float32, n)
	}
	return (*b)[:n]
}
