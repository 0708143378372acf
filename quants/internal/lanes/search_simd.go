//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/search"
)

// The searches of package search on tiles: row i of a tile holds element i of as many
// sub-blocks as a vector has lanes, and every lane repeats the operations of the
// scalar search in their order. Where the scalar code leaves early, the lane's
// results are masked.
//
// The inner loops are functions of their own, not inlined: their arguments and
// results travel in registers, and with the search's other state in the same
// function the compiler (go1.27.4) keeps sums on the stack, which doubles the
// time. They are also written in a way that saves a third of their instructions:
// slices have their length as capacity, else every load checks a bound; and lines
// are few and long, each with a load, because every inlined call is marked with a no-op
// unless an address computation of the same line can carry the mark. Loads that
// appear twice are done once. Where a slice is moved on by a constant that its length
// is known to exceed, constant offsets from its start need no address computation.
//
// No function here computes with scalar floats: the compiler would emit
// legacy SSE between the vector instructions; constants come from tables of
// rows.

// row is one vector's worth of values, for any width.
type row = [lane.MaxWidth]float32

func splat(v float32) (r row) {
	for i := range r {
		r[i] = v
	}
	return r
}

// tileLen is the length of a tile of the longest sub-blocks.
const tileLen = search.MaxLen * lane.MaxWidth

// magicBits are those of 1.5*2^23, which arith.RoundEven adds; magicZero + l are the low 23
// bits of the sum for level l.
const (
	magicBits = 0x4B400000
	magicZero = 1 << 22
	magicMask = 1<<23 - 1
)

// asymTable is a search.AsymParams as rows.
type asymTable struct {
	levels row
	high   row // levels + magic number
	one    row
	limit  row    // arith.RoundEven is an addition below this
	steps  []row  // numerator of candidate k
	capped []bool // whether its levels may be larger than levels
	absErr bool
}

func newAsymTable(p *search.AsymParams) *asymTable {
	n := float32(p.Levels)
	t := &asymTable{
		levels: splat(n), high: splat(n + 3<<22), one: splat(1), limit: splat(1 << 22), absErr: p.AbsErr,
	}
	for k := 0; k <= p.Steps; k++ {
		numerator := p.R0 + float32(p.Dr*float32(k)) + n
		t.steps = append(t.steps, splat(numerator))
		// The largest element has the level of numerator, rounded twice before that.
		t.capped = append(t.capped, numerator > n+0.499)
	}
	return t
}

// asymFit receives the result of search.Asym, per lane. Codes are the levels of step*(x - base).
type asymFit struct {
	scale, negMin, step, base []float32
	// exact is not 0 where the results are those of search.Asym. It is 0 where
	// rounding left the range in which adding the magic number is all there is
	// to it; scale and negMin are then to be searched anew, one by one.
	exact []int32
}

// searchAsymTiles is search.Asym on two tiles x with weights w, one after the other.
// Candidates are tried one after the other, as in the scalar code, because each uses
// the minimum of the best one before it: a chain of sums, divisions and comparisons
// of which two run at the same time. x and w have one length. pairs is scratch, one
// element longer than x, w and the levels together: each row of it has the rows of x,
// w and the levels of the first tile, then those of the second.
func searchAsymTiles(t *asymTable, x, w, pairs []float32, fit *asymFit) {
	var zero simd.Float32s
	width, half := zero.Len(), len(x)/2
	w, pairs = w[:len(x)], pairs[:3*len(x)+1]
	mn0, mn1 := simd.LoadFloat32s(x), simd.LoadFloat32s(x[half:])
	mx0, mx1 := mn0, mn1
	var sw0, sw1, sx0, sx1 simd.Float32s
	for i, k, p := 0, half, pairs; k <= len(x)-width; i, k, p = i+width, k+width, p[6*width:] {
		v0, v1, w0, w1 := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(x[k:k+width]),
			simd.LoadFloat32s(w[i:i+width]), simd.LoadFloat32s(w[k:k+width])
		mn0, mn1 = v0.IfElse(v0.Less(mn0), mn0), v1.IfElse(v1.Less(mn1), mn1)
		mx0, mx1 = v0.IfElse(v0.Greater(mx0), mx0), v1.IfElse(v1.Greater(mx1), mx1)
		sw0, sw1 = sw0.Add(w0), sw1.Add(w1)
		sx0, sx1 = sx0.Add(w0.Mul(v0)), sx1.Add(w1.Mul(v1))
		v0.Store(p[:width])
		v1.Store(p[3*width : 4*width])
		w0.Store(p[width : 2*width])
		w1.Store(p[4*width : 5*width])
	}
	mn0, mn1 = zero.IfElse(mn0.Greater(zero), mn0), zero.IfElse(mn1.Greater(zero), mn1)
	flat0, flat1 := mx0.Equal(mn0), mx1.Equal(mn1)

	low0, low1 := mn0, mn1
	high, limit, one := simd.LoadFloat32s(t.high[:]), simd.LoadFloat32s(t.limit[:]), simd.LoadFloat32s(t.one[:])
	span0, span1 := mx0.Sub(mn0), mx1.Sub(mn1)
	step0, step1 := simd.LoadFloat32s(t.levels[:]).Div(span0), simd.LoadFloat32s(t.levels[:]).Div(span1)
	base0, base1 := mn0, mn1
	scale0, scale1 := one.Div(step0), one.Div(step1)
	// Rounding is monotonic, so the extremes of x have those of step*(x - mn).
	exact0, exact1 := step0.Mul(span0).Less(limit), step1.Mul(span1).Less(limit)
	asymSums(step0, mn0, step1, mn1, high, pairs)
	best0, best1 := asymErr(t.absErr, scale0, mn0, scale1, mn1, pairs)
	for k := range t.steps {
		span0, span1 = mx0.Sub(mn0), mx1.Sub(mn1)
		s0, s1 := simd.LoadFloat32s(t.steps[k][:]).Div(span0), simd.LoadFloat32s(t.steps[k][:]).Div(span1)
		exact0 = exact0.And(s0.Mul(span0).Abs().Less(limit)).And(s0.Mul(low0.Sub(mn0)).Abs().Less(limit))
		exact1 = exact1.And(s1.Mul(span1).Abs().Less(limit)).And(s1.Mul(low1.Sub(mn1)).Abs().Less(limit))
		l0, ll0, xl0, l1, ll1, xl1 := asymSums(s0, mn0, s1, mn1, high, pairs)
		det0, det1 := sw0.Mul(ll0).Sub(l0.Mul(l0)), sw1.Mul(ll1).Sub(l1.Mul(l1))
		d0, d1 := sw0.Mul(xl0).Sub(sx0.Mul(l0)).Div(det0), sw1.Mul(xl1).Sub(sx1.Mul(l1)).Div(det1)
		m0, m1 := ll0.Mul(sx0).Sub(l0.Mul(xl0)).Div(det0), ll1.Mul(sx1).Sub(l1.Mul(xl1)).Div(det1)
		above0, above1 := m0.Greater(zero), m1.Greater(zero)
		m0, m1 = zero.IfElse(above0, m0), zero.IfElse(above1, m1)
		d0, d1 = xl0.Div(ll0).IfElse(above0, d0), xl1.Div(ll1).IfElse(above1, d1)
		e0, e1 := asymErr(t.absErr, d0, m0, d1, m1, pairs)
		win0, win1 := det0.Greater(zero).And(e0.Less(best0)), det1.Greater(zero).And(e1.Less(best1))
		best0, best1 = e0.IfElse(win0, best0), e1.IfElse(win1, best1)
		step0, step1 = s0.IfElse(win0, step0), s1.IfElse(win1, step1)
		base0, base1 = mn0.IfElse(win0, base0), mn1.IfElse(win1, base1)
		scale0, scale1 = d0.IfElse(win0, scale0), d1.IfElse(win1, scale1)
		mn0, mn1 = m0.IfElse(win0, mn0), m1.IfElse(win1, mn1)
	}
	zero.IfElse(flat0, scale0).Store(fit.scale)
	zero.IfElse(flat1, scale1).Store(fit.scale[width:])
	mn0.Neg().Store(fit.negMin)
	mn1.Neg().Store(fit.negMin[width:])
	zero.IfElse(flat0, step0).Store(fit.step)
	zero.IfElse(flat1, step1).Store(fit.step[width:])
	base0.Store(fit.base)
	base1.Store(fit.base[width:])
	exact0.Or(flat0).ToInt32s().Store(fit.exact)
	exact1.Or(flat1).ToInt32s().Store(fit.exact[width:])
}

// asymSums sets the levels of pairs to those of s*(x - mn), for those below 2^22,
// and returns sum(w*l), sum(w*l*l) and sum(w*x*l) of both tiles.
//
//go:noinline
func asymSums(s0, mn0, s1, mn1, high simd.Float32s, pairs []float32) (l0, ll0, xl0, l1, ll1, xl1 simd.Float32s) {
	width := s0.Len()
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for p := pairs[:len(pairs):len(pairs)]; len(p) > 6*width; {
		v0, v1 := s0.Mul(simd.LoadFloat32s(p[:width]).Sub(mn0)).Add(magic).Max(magic).Min(high).Sub(magic),
			s1.Mul(simd.LoadFloat32s(p[3*width:4*width]).Sub(mn1)).Add(magic).Max(magic).Min(high).Sub(magic)
		v0.Store(p[2*width : 3*width])
		v1.Store(p[5*width : 6*width])
		l0, ll0, xl0, l1, ll1, xl1, p = l0.Add(simd.LoadFloat32s(p[width:2*width]).Mul(v0)),
			ll0.Add(simd.LoadFloat32s(p[width:2*width]).Mul(v0).Mul(v0)),
			xl0.Add(simd.LoadFloat32s(p[width:2*width]).Mul(v0).Mul(simd.LoadFloat32s(p[:width]))),
			l1.Add(simd.LoadFloat32s(p[4*width:5*width]).Mul(v1)),
			ll1.Add(simd.LoadFloat32s(p[4*width:5*width]).Mul(v1).Mul(v1)),
			xl1.Add(simd.LoadFloat32s(p[4*width:5*width]).Mul(v1).Mul(simd.LoadFloat32s(p[3*width:4*width]))),
			p[6*width:]
	}
	return l0, ll0, xl0, l1, ll1, xl1
}

// asymErr is search.AsymParams.err of both tiles.
//
//go:noinline
func asymErr(abs bool, scale0, mn0, scale1, mn1 simd.Float32s, pairs []float32) (e0, e1 simd.Float32s) {
	width := scale0.Len()
	p := pairs[:len(pairs):len(pairs)]
	if abs {
		mask := simd.BroadcastUint32s(1<<31 - 1) // Abs would make it anew for every row
		for len(p) > 6*width {
			d0, d1 := scale0.Mul(simd.LoadFloat32s(p[2*width:3*width])).Add(mn0).Sub(simd.LoadFloat32s(p[:width])),
				scale1.Mul(simd.LoadFloat32s(p[5*width:6*width])).Add(mn1).Sub(simd.LoadFloat32s(p[3*width:4*width]))
			e0, e1, p = e0.Add(simd.LoadFloat32s(p[width:2*width]).Mul(d0.ToBits().And(mask).BitsToFloat32())),
				e1.Add(simd.LoadFloat32s(p[4*width:5*width]).Mul(d1.ToBits().And(mask).BitsToFloat32())), p[6*width:]
		}
		return e0, e1
	}
	for len(p) > 6*width {
		d0, d1 := scale0.Mul(simd.LoadFloat32s(p[2*width:3*width])).Add(mn0).Sub(simd.LoadFloat32s(p[:width])),
			scale1.Mul(simd.LoadFloat32s(p[5*width:6*width])).Add(mn1).Sub(simd.LoadFloat32s(p[3*width:4*width]))
		e0, e1, p = e0.Add(simd.LoadFloat32s(p[width:2*width]).Mul(d0.Mul(d0))),
			e1.Add(simd.LoadFloat32s(p[4*width:5*width]).Mul(d1.Mul(d1))), p[6*width:]
	}
	return e0, e1
}

// posTable are the parameters of search.Pos as rows.
type posTable struct {
	levels row
	eps    row
	one    row
	top    [lane.MaxWidth]int32
	steps  []row // numerators of the candidates
}

func newPosTable(levels int32) *posTable {
	n := float32(levels)
	p := &posTable{levels: splat(n), eps: splat(search.GroupMaxEps), one: splat(1)}
	for i := range p.top {
		p.top[i] = levels
	}
	for t := float32(-4); t <= 4; t++ {
		if t != 0 {
			p.steps = append(p.steps, splat(float32(0.1*t)+n))
		}
	}
	return p
}

// searchPosTile is search.Pos on a tile x with weights w; it stores the codes, as
// numbers 0..255, and one scale per lane. The three have one length.
func searchPosTile(p *posTable, x, w []float32, codes []int32, scales []float32) {
	var zero, mx simd.Float32s
	width := zero.Len()
	w, codes = w[:len(x)], codes[:len(x)]
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		mx = v.IfElse(v.Greater(mx), mx)
	}
	flat := mx.Less(simd.LoadFloat32s(p.eps[:]))
	top := simd.LoadInt32s(p.top[:])
	one := simd.LoadFloat32s(p.one[:])
	step := simd.LoadFloat32s(p.levels[:]).Div(mx)
	best := posErrFirst(step, one.Div(step), x, w)
	for k := range p.steps {
		s := simd.LoadFloat32s(p.steps[k][:]).Div(mx)
		e := posErr(s, one.Div(s), top, x, w)
		win := e.Less(best)
		best = e.IfElse(win, best)
		step = s.IfElse(win, step)
	}
	a, b := posCodes(step, top, x, w, codes)
	var changes [lane.MaxWidth]int32
	// (go1.27.4 does not compile "for range 5" next to vectors.)
	for pass := 0; pass < 5; pass++ {
		var changed simd.Int32s
		a, b, changed = posRefine(a, b, top, x, w, codes)
		changed.Store(changes[:])
		if changes == [lane.MaxWidth]int32{} {
			break
		}
	}
	a.Div(b).Masked(b.Greater(zero)).Masked(mx.GreaterEqual(simd.LoadFloat32s(p.eps[:]))).Store(scales)
	var none simd.Int32s
	for i := 0; i <= len(x)-width; i += width {
		none.IfElse(flat, simd.LoadInt32s(codes[i:i+width])).Store(codes[i : i+width])
	}
}

// roundLevels returns arith.RoundEven(v), for every v.
func roundLevels(v simd.Float32s) simd.Int32s {
	sum := v.Add(simd.BroadcastUint32s(magicBits).BitsToFloat32()).ToBits()
	return sum.And(simd.BroadcastUint32s(magicMask)).BitsToInt32().Sub(simd.BroadcastInt32s(magicZero))
}

// posErrFirst returns the error of the levels of step, taken as bytes.
//
//go:noinline
func posErrFirst(step, inv simd.Float32s, x, w []float32) (e simd.Float32s) {
	w = w[:len(x)]
	width := step.Len()
	for i := 0; i <= len(x)-width; i += width {
		v, wi := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(w[i:i+width])
		l := roundLevels(step.Mul(v)).And(simd.BroadcastInt32s(255)).ConvertToFloat32()
		d := v.Sub(inv.Mul(l))
		e = e.Add(wi.Mul(d).Mul(d))
	}
	return e
}

// posErr returns the error of the levels of step, at most top.
//
//go:noinline
func posErr(step, inv simd.Float32s, top simd.Int32s, x, w []float32) (e simd.Float32s) {
	w = w[:len(x)]
	width := step.Len()
	for i := 0; i <= len(x)-width; i += width {
		v, wi := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(w[i:i+width])
		l := roundLevels(step.Mul(v)).Min(top).ConvertToFloat32()
		d := v.Sub(inv.Mul(l))
		e = e.Add(wi.Mul(d).Mul(d))
	}
	return e
}

// posCodes stores the bytes of the levels of step and returns the sums of the
// levels.
//
//go:noinline
func posCodes(step simd.Float32s, top simd.Int32s, x, w []float32, codes []int32) (a, b simd.Float32s) {
	w, codes = w[:len(x)], codes[:len(x)]
	width := step.Len()
	for i := 0; i <= len(x)-width; i += width {
		v, wi := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(w[i:i+width])
		l := roundLevels(step.Mul(v)).Min(top)
		l.And(simd.BroadcastInt32s(255)).Store(codes[i : i+width])
		f := l.ConvertToFloat32()
		a = a.Add(wi.Mul(v).Mul(f))
		b = b.Add(wi.Mul(f).Mul(f))
	}
	return a, b
}

// posRefine is one pass that moves levels one at a time. A lane in which nothing
// changed stays as it is in later passes, so passes beyond its last do no harm.
//
//go:noinline
func posRefine(a, b simd.Float32s, top simd.Int32s, x, w []float32, codes []int32) (a1, b1 simd.Float32s,
	changed simd.Int32s) {
	var zero simd.Float32s
	w, codes = w[:len(x)], codes[:len(x)]
	width := a.Len()
	for i := 0; i <= len(x)-width; i += width {
		v, wi, c := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(w[i:i+width]), simd.LoadInt32s(codes[i:i+width])
		f := c.ConvertToFloat32()
		wx := wi.Mul(v)
		a1 := a.Sub(wx.Mul(f))
		b1 := b.Sub(wi.Mul(f).Mul(f))
		ok := a1.Greater(zero).And(b1.Greater(zero))
		l := roundLevels(v.Mul(b1).Div(a1)).Min(top)
		ok = ok.And(l.NotEqual(c))
		f = l.ConvertToFloat32()
		a1 = a1.Add(wx.Mul(f))
		b1 = b1.Add(wi.Mul(f).Mul(f))
		ok = ok.And(a1.Mul(a1).Mul(b).Greater(a.Mul(a).Mul(b1)))
		l.And(simd.BroadcastInt32s(255)).IfElse(ok, c).Store(codes[i : i+width])
		a, b = a1.IfElse(ok, a), b1.IfElse(ok, b)
		changed = changed.Or(ok.ToInt32s())
	}
	return a, b, changed
}

// symTable are the parameters of search.Sym as rows.
type symTable struct {
	levels int32
	low    row // magic number - levels
	high   row // magic number + levels - 1
	min    row // -levels
	max    row // levels - 1
	over   row // a little above max
	eps    row
	first  row    // numerator of the first step
	steps  []row  // numerators of the candidates, an even number
	capped []bool // whether levels may be below -levels; from some candidate on
}

func newSymTable(levels int32) *symTable {
	n := float32(levels)
	t := &symTable{
		levels: levels, low: splat(3<<22 - n), high: splat(3<<22 + n - 1), min: splat(-n), max: splat(n - 1),
		over: splat(n - 0.75),
		eps:  splat(search.GroupMaxEps), first: splat(-n),
	}
	for c := float32(-9); c <= 9; c++ {
		if c != 0 {
			numerator := n + float32(0.1*c)
			t.steps = append(t.steps, splat(-numerator))
			// The largest element has the level of numerator, rounded twice before that.
			t.capped = append(t.capped, numerator > n+0.499)
		}
	}
	return t
}

// largestTile returns the first element of largest magnitude of every lane, 0 if
// all are zero.
func largestTile(x []float32) (m simd.Float32s) {
	var a simd.Float32s
	width := m.Len()
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		av := v.Abs()
		larger := av.Greater(a)
		m, a = v.IfElse(larger, m), av.IfElse(larger, a)
	}
	return m
}

// searchSymTile is search.Sym on a tile x with weights w. It stores one scale per lane, and in step and shift the
// arguments by which symCodesTile finds the codes. x and w have one length, and wx, which is scratch, is longer.
//
// Levels cannot leave the range of rounding by one addition: no element is larger
// than the one that defines the step.
func searchSymTile(t *symTable, x, w, wx, scales, step, shift []float32) {
	var zero simd.Float32s
	width := zero.Len()
	w, wx = w[:len(x)], wx[:len(x)]
	m := largestTile(x)
	for i := 0; i <= len(x)-width; i += width {
		simd.LoadFloat32s(w[i : i+width]).Mul(simd.LoadFloat32s(x[i : i+width])).Store(wx[i : i+width])
	}
	low, high := simd.LoadFloat32s(t.low[:]), simd.LoadFloat32s(t.high[:])
	bestStep := simd.LoadFloat32s(t.first[:]).Div(m)
	a, b, _, _ := symSums(bestStep, bestStep, low, high, x, w, wx)
	scale := zero.IfElse(b.Equal(zero), a.Div(b))
	best := scale.Mul(a)
	for k := 0; k+1 < len(t.steps); k += 2 {
		s0 := simd.LoadFloat32s(t.steps[k][:]).Div(m)
		s1 := simd.LoadFloat32s(t.steps[k+1][:]).Div(m)
		a0, b0, a1, b1 := symSums(s0, s1, low, high, x, w, wx)

		win := b0.Greater(zero).And(a0.Mul(a0).Greater(best.Mul(b0)))
		d := a0.Div(b0)
		scale = d.IfElse(win, scale)
		best = d.Mul(a0).IfElse(win, best)
		bestStep = s0.IfElse(win, bestStep)

		win = b1.Greater(zero).And(a1.Mul(a1).Greater(best.Mul(b1)))
		d = a1.Div(b1)
		scale = d.IfElse(win, scale)
		best = d.Mul(a1).IfElse(win, best)
		bestStep = s1.IfElse(win, bestStep)
	}
	flat := m.Abs().Less(simd.LoadFloat32s(t.eps[:]))
	zero.IfElse(flat, scale).Store(scales)
	zero.IfElse(flat, bestStep).Store(step)
	simd.LoadFloat32s(t.first[:]).Masked(flat).Store(shift)
}

// symSums returns sum(w*x*l) and sum(w*l*l) for the levels of s0 and those of s1.
//
//go:noinline
func symSums(s0, s1, low, high simd.Float32s, x, w, wx []float32) (a0, b0, a1, b1 simd.Float32s) {
	n := len(x)
	x, w, wx = x[:n:n], w[:n:n], wx[:n:n]
	width := s0.Len()
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for i := 0; i <= n-width; i += width {
		l0, l1 := s0.Mul(simd.LoadFloat32s(x[i:i+width])).Add(magic).Max(low).Min(high).Sub(magic),
			s1.Mul(simd.LoadFloat32s(x[i:i+width])).Add(magic).Max(low).Min(high).Sub(magic)
		a0, a1 = a0.Add(simd.LoadFloat32s(wx[i:i+width]).Mul(l0)), a1.Add(simd.LoadFloat32s(wx[i:i+width]).Mul(l1))
		b0, b1 = b0.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l0).Mul(l0)),
			b1.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l1).Mul(l1))
	}
	return a0, b0, a1, b1
}

// symCodesTile stores the codes of the levels of step*x + shift, four rows in one,
// the first in the low byte.
func symCodesTile(levels int32, x, step, shift []float32, words []uint32) {
	sv, tv := simd.LoadFloat32s(step), simd.LoadFloat32s(shift)
	width := sv.Len()
	words = words[:len(x)/4]
	low, high := simd.BroadcastInt32s(-levels), simd.BroadcastInt32s(levels-1)
	for i, o := 0, 0; i <= len(x)-4*width; i, o = i+4*width, o+width {
		var q simd.Int32s
		for j := 3; j >= 0; j-- {
			v := simd.LoadFloat32s(x[i+j*width : i+j*width+width])
			l := roundLevels(sv.Mul(v).Add(tv)).Max(low).Min(high).Sub(low)
			q = q.ShiftAllLeft(8).Or(l)
		}
		q.ToBits().Store(words[o : o+width])
	}
}

// relevelSymTile is search.RelevelSym on a tile: d has one value per lane, words the codes
// as symCodesTile stores them, which lanes with a d of 0 keep.
func relevelSymTile(levels int32, x, d []float32, words []uint32) {
	var zero simd.Float32s
	width := zero.Len()
	words = words[:len(x)/4]
	dv := simd.LoadFloat32s(d)
	none := dv.Equal(zero)
	low, high := simd.BroadcastInt32s(-levels), simd.BroadcastInt32s(levels-1)
	for i, o := 0, 0; i <= len(x)-4*width; i, o = i+4*width, o+width {
		var q simd.Int32s
		for j := 3; j >= 0; j-- {
			v := simd.LoadFloat32s(x[i+j*width : i+j*width+width])
			l := roundLevels(v.Div(dv)).Max(low).Min(high).Sub(low)
			q = q.ShiftAllLeft(8).Or(l)
		}
		simd.LoadUint32s(words[o:o+width]).IfElse(none, q.ToBits()).Store(words[o : o+width])
	}
}

// search is search.Sym3 on the sub-blocks of 16 elements x: it stores their scales, and
// puts x into tiles. Whether an element gets another level
// depends on all that have got one before it: a long chain with a division in each step. But
// most sub-blocks keep their levels, all of them where the largest element is positive:
// levels have the other sign then, no w*x*l is above 0, and a, which is their sum, is not above any of
// them, also when rounded, so that a1 is not above 0. sym3First looks at all elements of a tile as if none before
// them had changed, which needs no chain. Sub-blocks in which one may change are gathered in tiles of
// their own, where sym3Chain tries one element after the other, once. Those that it has changed
// are looked at again, and move makes the first change of each until there is none.
func (s *sym3) search(t *symTable, x, tiles, scales []float32) {
	width := lane.Width()
	tile := 16 * width
	n := (len(x) + tile - 1) / tile
	for i := range n {
		lane.Load(tiles[i*tile:][:tile], x[i*tile:min((i+1)*tile, len(x))], 16, width)
	}
	sym3First(t, tiles[:n*tile], s, scales)
	// Which are restless is hard to predict: nothing waits for that here.
	s.n = 0
	for i, rest := range s.rest[:n] {
		for ; rest != 0; rest &= rest - 1 {
			sub := i*width + bits.TrailingZeros32(rest)
			if 16*sub >= len(x) {
				break
			}
			s.at[s.n] = uint32(sub)
			*(*[16]float32)(s.gathered[16*s.n:]) = *(*[16]float32)(x[16*sub:])
			s.n++
		}
		if s.n > sym3Many-width {
			s.settle(t, scales, width)
		}
	}
	s.settle(t, scales, width)
}

// sym3Many is the number of restless sub-blocks that are settled together: so many that the chain of one tile
// leaves the processor little time to wait.
const sym3Many = 64

// sym3 is the state of the search. A row has the level l of an element of each lane, x*x*x*l and x*x*l*l. Each
// lane has the sums of these two, the next row of the pass it is in, and the rows, one bit
// each, whose levels may change.
type sym3 struct {
	rows       [3 * 16 * sym3Many]float32
	m, a, b    [sym3Many]float32
	changed    [sym3Many]int32
	next, pass [sym3Many]uint8
	restless   [sym3Many]int32
	rest       [maxSub / 4]uint32 // by tile: the lanes that are restless

	n        int                    // restless sub-blocks
	at       [sym3Many]uint32       // their numbers
	gathered [16 * sym3Many]float32 // their elements
	x        [16 * sym3Many]float32 // the same in tiles
}

// sym3Each sets the scales of tiles, and rest: other lanes are settled.
func sym3Each(t *symTable, x []float32, s *sym3, scales []float32) {
	width := lane.Width()
	for i := range len(x) / (16 * width) {
		sym3Tile(t, x[i*16*width:][:16*width], s, scales[i*width:])
		clearUpper()
		for k, rows := range s.restless[:width] {
			if k == 0 {
				s.rest[i] = 0
			}
			if rows != 0 {
				s.rest[i] |= 1 << k
			}
		}
	}
}

// sym3Tile sets the scales of a tile, and restless.
func sym3Tile(t *symTable, x []float32, s *sym3, scales []float32) {
	sym3Start(t, x, s, 0)
	m, a, b := simd.LoadFloat32s(s.m[:]), simd.LoadFloat32s(s.a[:]), simd.LoadFloat32s(s.b[:])
	var zero simd.Float32s
	some := m.Abs().GreaterEqual(simd.LoadFloat32s(t.eps[:]))
	a.Div(b).Masked(b.Greater(zero)).Masked(some).Store(scales)
	sym3Look(t, x, s, 0)
	simd.LoadInt32s(s.restless[:]).Masked(some.And(m.Less(zero))).Store(s.restless[:])
}

// settle finds the scales of the sub-blocks that are gathered.
func (s *sym3) settle(t *symTable, scales []float32, width int) {
	tile := 16 * width
	tiles := (s.n + width - 1) / width
	for i := range tiles {
		lane.Load(s.x[i*tile:][:tile], s.gathered[i*tile:min((i+1)*tile, 16*s.n)], 16, width)
	}
	sym3Chains(t, s, tiles)
	for k := range s.n {
		s.next[k], s.pass[k] = 0, 1
	}
	// Tiles take turns here, too. Those that come to rest are left out.
	for open := uint32(1)<<tiles - 1; open != 0; {
		for m := open; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			sym3LookAgain(t, s.x[i*tile:][:tile], s, i)
		}
		for m := open; m != 0; m &= m - 1 {
			if i := bits.TrailingZeros32(m); !s.move(t.levels, width, i) {
				open &^= m & -m
			}
		}
	}
	for k, sub := range s.at[:s.n] {
		scales[sub] = 0
		if b := s.b[k]; b > 0 {
			scales[sub] = s.a[k] / b
		}
	}
	s.n = 0
}

// sym3Start sets the first levels and sums of tile i, and the largest elements.
func sym3Start(t *symTable, x []float32, s *sym3, i int) {
	m := largestTile(x)
	var a, b simd.Float32s
	width := m.Len()
	step := simd.LoadFloat32s(t.first[:]).Div(m)
	high := simd.LoadFloat32s(t.high[:])
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for r, v := s.rows[3*i*len(x):][:3*len(x)], x; len(r) >= 3*width && len(v) >= width; r, v = r[3*width:], v[width:] {
		e := simd.LoadFloat32s(v[:width])
		l := step.Mul(e).Add(magic).Min(high).Sub(magic)
		w := e.Mul(e)
		p, q := w.Mul(e).Mul(l), w.Mul(l).Mul(l)
		l.Store(r[:width])
		p.Store(r[width : 2*width])
		q.Store(r[2*width : 3*width])
		a, b = a.Add(p), b.Add(q)
	}
	a.Store(s.a[i*width:])
	b.Store(s.b[i*width:])
	m.Store(s.m[i*width:])
}

// sym3Look finds the rows of tile i that may get another level if they are the next to get one.
// Others certainly keep theirs. With the names of search.Sym3,
// and u = x*b1/a1: where |u - l| < 1/2, u is rounded to l, and so it is where u is above the
// largest level and l is that level, up to 2^22, where arith.RoundEven ends. over is between
// that level and the next half.
//
// A u that is no number changes nothing: a1 > 0 is finite then or infinite. If it is infinite,
// so is a, and nothing is above a*a*b1; if not, b1 is infinite or no number, and so are b and the new b.
func sym3Look(t *symTable, x []float32, s *sym3, i int) {
	var bits, none simd.Int32s
	over := simd.LoadFloat32s(t.over[:])
	width := over.Len()
	bit := none.Sub(none.Equal(none).ToInt32s())
	const quarterBits, limitBits = 0x3E800000, 0x4A800000 // of 1/4, which only squares of 1/2 and more reach, and 2^22
	quarter, limit := simd.BroadcastUint32s(quarterBits).BitsToFloat32(),
		simd.BroadcastUint32s(limitBits).BitsToFloat32()
	a, b := simd.LoadFloat32s(s.a[i*width:]), simd.LoadFloat32s(s.b[i*width:])
	for r, v := s.rows[3*i*len(x):][:3*len(x)], x; len(r) >= 3*width && len(v) >= width; r, v = r[3*width:], v[width:] {
		u := b.Sub(simd.LoadFloat32s(r[2*width : 3*width])).Mul(simd.LoadFloat32s(v[:width])).Div(
			a.Sub(simd.LoadFloat32s(r[width : 2*width])))
		away := u.Min(over).Sub(simd.LoadFloat32s(r[:width]))
		bits = bits.Or(bit.Masked(away.Mul(away).GreaterEqual(quarter).Or(u.GreaterEqual(limit))))
		bit = bit.Add(bit)
	}
	bits.Store(s.restless[i*width:])
}

// sym3ChainsTiles sets the first levels of the tiles, and is sym3Chain.
func sym3ChainsTiles(t *symTable, s *sym3, tiles int) {
	tile := 16 * lane.Width()
	for i := range tiles {
		sym3Start(t, s.x[i*tile:][:tile], s, i)
	}
	sym3Chain(t, s, tiles)
	clearUpper()
}

// sym3Chain is the first pass of search.Sym3 over the tiles, which take turns.
func sym3Chain(t *symTable, s *sym3, tiles int) {
	var zero simd.Float32s
	var none simd.Int32s
	width := zero.Len()
	tile := 16 * width
	low, high := simd.BroadcastInt32s(-t.levels), simd.BroadcastInt32s(t.levels-1)
	for i := 0; i < tiles*width; i += width {
		none.Store(s.changed[i:])
	}
	for row := 0; row < tile; row += width {
		for i, k := row, 0; k < tiles*width; i, k = i+tile, k+width {
			r := s.rows[3*i:][:3*width]
			v, a, b := simd.LoadFloat32s(s.x[i:i+width]), simd.LoadFloat32s(s.a[k:k+width]),
				simd.LoadFloat32s(s.b[k:k+width])
			l, p, q := simd.LoadFloat32s(r[:width]), simd.LoadFloat32s(r[width:2*width]),
				simd.LoadFloat32s(r[2*width:3*width])
			w := v.Mul(v)
			a1, b1 := a.Sub(p), b.Sub(q)
			ok := a1.Greater(zero)
			f := roundLevels(v.Mul(b1).Div(a1)).Max(low).Min(high).ConvertToFloat32()
			p1, q1 := w.Mul(v).Mul(f), w.Mul(f).Mul(f)
			a1, b1 = a1.Add(p1), b1.Add(q1)
			ok = ok.And(f.NotEqual(l)).And(b1.Greater(zero)).And(a1.Mul(a1).Mul(b).Greater(a.Mul(a).Mul(b1)))
			f.IfElse(ok, l).Store(r[:width])
			p1.IfElse(ok, p).Store(r[width : 2*width])
			q1.IfElse(ok, q).Store(r[2*width : 3*width])
			a1.IfElse(ok, a).Store(s.a[k : k+width])
			b1.IfElse(ok, b).Store(s.b[k : k+width])
			simd.LoadInt32s(s.changed[k : k+width]).Or(ok.ToInt32s()).Store(s.changed[k : k+width])
		}
	}
}

// move gives one element of each lane of tile i that is restless another level, as search.Sym3 does after its first
// pass, and reports whether there was one. It has no vectors: floats of both kinds in one function are slow.
func (s *sym3) move(levels int32, width, i int) (moved bool) {
	tile := 16 * width
	x, all := s.x[i*tile:][:tile], s.rows[3*i*tile:][:3*tile]
	as, bs, changed := s.a[i*width:][:width], s.b[i*width:][:width], s.changed[i*width:][:width]
	next, pass := s.next[i*width:][:width], s.pass[i*width:][:width]
	for k, restless := range s.restless[i*width:][:width] {
		rows := uint32(restless & changed[k]) // the first pass was the last if it has changed nothing
		for rows != 0 {
			row := bits.TrailingZeros32(rows >> (next[k] & 31) << (next[k] & 31))
			if row == 32 { // the others are of the next pass, which there is because this one has changed something
				if pass[k] == 4 {
					break
				}
				pass[k]++
				next[k] = 0
				continue
			}
			rows &^= 1 << (row & 31)
			v, a, b, r := x[row*width+k], as[k], bs[k], all[3*row*width+k:][:2*width+1]
			a1 := a - r[width]
			if !(a1 > 0) {
				continue
			}
			b1 := b - r[2*width]
			f := float32(search.LevelSym(levels, float32(v*b1)/a1))
			if f == r[0] {
				continue
			}
			w := float32(v * v)
			p, q := float32(float32(w*v)*f), float32(float32(w*f)*f)
			a1 += p
			b1 += q
			if b1 > 0 && a1*a1*b > a*a*b1 {
				r[0], r[width], r[2*width] = f, p, q
				as[k], bs[k], next[k] = a1, b1, uint8(row+1)
				moved = true
				break
			}
		}
	}
	return moved
}
