//go:build goexperiment.simd && go1.27

package quants

import (
	"simd"
	"strconv"

	"ggforge/gguf"
	"ggforge/internal/lane"
)

// The searches of search.go on tiles: row i of a tile holds element i of as many
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
// appear twice are done once.
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
const tileLen = maxSearch * lane.MaxWidth

// tileEncoders are the encoders made of tiles, by type. They work in emulation
// too, but slowly; only tests run them there.
var tileEncoders [len(registry)]func(dst []byte, src, importance []float32)

// installTiles makes quantize the encoder of t, unless vectors are emulated.
func installTiles(t gguf.Type, quantize func(dst []byte, src, importance []float32)) {
	tileEncoders[t] = quantize
	if !simd.Emulated() {
		registry[t].quantize = quantize
		registry[t].impl = "simd-" + strconv.Itoa(simd.VectorBitSize())
	}
}

// magicBits are those of 1.5*2^23, which rn adds; magicZero + l are the low 23
// bits of the sum for level l.
const (
	magicBits = 0x4B400000
	magicZero = 1 << 22
	magicMask = 1<<23 - 1
)

// asymTable is an asymSearch as rows.
type asymTable struct {
	levels row
	high   row // levels + magic number
	one    row
	limit  row   // rn is an addition below this
	steps  []row // numerator of candidate k
	absErr bool
}

func newAsymTable(p *asymSearch) *asymTable {
	n := float32(p.levels)
	t := &asymTable{
		levels: splat(n), high: splat(n + 3<<22), one: splat(1), limit: splat(1 << 22), absErr: p.absErr,
	}
	for k := 0; k <= p.steps; k++ {
		t.steps = append(t.steps, splat(p.r0+float32(p.dr*float32(k))+n))
	}
	return t
}

// asymFit receives what searchAsym finds, per lane. Codes are the levels of
// step*(x - base).
type asymFit struct {
	scale, negMin, step, base []float32
	// exact is not 0 where the results are those of searchAsym. It is 0 where
	// rounding left the range in which adding the magic number is all there is
	// to it; scale and negMin are then to be searched anew, one by one.
	exact []int32
}

// searchAsymTile is searchAsym on a tile x with weights w. Candidates are tried
// one after the other, as in the scalar code, because each uses the minimum of the
// best one before it. lv is scratch. x, w and lv have one length.
func searchAsymTile(t *asymTable, x, w, lv []float32, fit *asymFit) {
	var zero simd.Float32s
	width := zero.Len()
	w, lv = w[:len(x)], lv[:len(x)]
	mn := simd.LoadFloat32s(x)
	mx := mn
	sw := simd.LoadFloat32s(w)
	sx := sw.Mul(mn)
	for i := width; i <= len(x)-width; i += width {
		v, wi := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(w[i:i+width])
		mn = v.IfElse(v.Less(mn), mn)
		mx = v.IfElse(v.Greater(mx), mx)
		sw = sw.Add(wi)
		sx = sx.Add(wi.Mul(v))
	}
	mn = zero.IfElse(mn.Greater(zero), mn)
	flat := mx.Equal(mn)

	low, high, limit := mn, simd.LoadFloat32s(t.high[:]), simd.LoadFloat32s(t.limit[:])
	span := mx.Sub(mn)
	step, base := simd.LoadFloat32s(t.levels[:]).Div(span), mn
	scale := simd.LoadFloat32s(t.one[:]).Div(step)
	// Rounding is monotonic, so the extremes of x have those of step*(x - mn).
	exact := step.Mul(span).Less(limit)
	asymLevels(step, mn, high, x, lv)
	best := asymErr(t.absErr, scale, mn, x, w, lv)
	for k := range t.steps {
		span = mx.Sub(mn)
		s := simd.LoadFloat32s(t.steps[k][:]).Div(span)
		exact = exact.And(s.Mul(span).Abs().Less(limit)).And(s.Mul(low.Sub(mn)).Abs().Less(limit))
		sl, sl2, sxl := asymSums(s, mn, high, x, w, lv)
		det := sw.Mul(sl2).Sub(sl.Mul(sl))
		scale1 := sw.Mul(sxl).Sub(sx.Mul(sl)).Div(det)
		mn1 := sl2.Mul(sx).Sub(sl.Mul(sxl)).Div(det)
		above := mn1.Greater(zero)
		mn1 = zero.IfElse(above, mn1)
		scale1 = sxl.Div(sl2).IfElse(above, scale1)
		e := asymErr(t.absErr, scale1, mn1, x, w, lv)
		win := det.Greater(zero).And(e.Less(best))
		best = e.IfElse(win, best)
		step = s.IfElse(win, step)
		base = mn.IfElse(win, base)
		scale = scale1.IfElse(win, scale)
		mn = mn1.IfElse(win, mn)
	}
	zero.IfElse(flat, scale).Store(fit.scale)
	mn.Neg().Store(fit.negMin)
	zero.IfElse(flat, step).Store(fit.step)
	base.Store(fit.base)
	exact.Or(flat).ToInt32s().Store(fit.exact)
}

// asymLevels sets lv to the levels of s*(x - mn), for those below 2^22.
//
//go:noinline
func asymLevels(s, mn, high simd.Float32s, x, lv []float32) {
	lv = lv[:len(x)]
	width := s.Len()
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		s.Mul(v.Sub(mn)).Add(magic).Max(magic).Min(high).Sub(magic).Store(lv[i : i+width])
	}
}

// asymSums is asymLevels together with sum(w*l), sum(w*l*l) and sum(w*x*l).
//
//go:noinline
func asymSums(s, mn, high simd.Float32s, x, w, lv []float32) (sl, sl2, sxl simd.Float32s) {
	n := len(x)
	x, w, lv = x[:n:n], w[:n:n], lv[:n:n]
	width := s.Len()
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for i := 0; i <= n-width; i += width {
		l := s.Mul(simd.LoadFloat32s(x[i : i+width]).Sub(mn)).Add(magic).Max(magic).Min(high).Sub(magic)
		sl, sl2, sxl = sl.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l)), sl2.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l).Mul(l)), sxl.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l).Mul(simd.LoadFloat32s(x[i:i+width])))
		l.Store(lv[i : i+width])
	}
	return sl, sl2, sxl
}

// asymErr is asymSearch.err.
//
//go:noinline
func asymErr(abs bool, scale, mn simd.Float32s, x, w, lv []float32) (e simd.Float32s) {
	n := len(x)
	x, w, lv = x[:n:n], w[:n:n], lv[:n:n]
	width := scale.Len()
	if abs {
		mask := simd.BroadcastUint32s(1<<31 - 1) // Abs would make it anew for every row
		for i := 0; i <= n-width; i += width {
			d := scale.Mul(simd.LoadFloat32s(lv[i : i+width])).Add(mn).Sub(simd.LoadFloat32s(x[i : i+width]))
			e = e.Add(simd.LoadFloat32s(w[i : i+width]).Mul(d.ToBits().And(mask).BitsToFloat32()))
		}
		return e
	}
	for i := 0; i <= n-width; i += width {
		d := scale.Mul(simd.LoadFloat32s(lv[i : i+width])).Add(mn).Sub(simd.LoadFloat32s(x[i : i+width]))
		e = e.Add(simd.LoadFloat32s(w[i : i+width]).Mul(d.Mul(d)))
	}
	return e
}

// posTable are the parameters of searchPos as rows.
type posTable struct {
	levels row
	eps    row
	one    row
	top    [lane.MaxWidth]int32
	steps  []row // numerators of the candidates
}

func newPosTable(levels int32) *posTable {
	n := float32(levels)
	p := &posTable{levels: splat(n), eps: splat(groupMaxEps), one: splat(1)}
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

// searchPosTile is searchPos on a tile x with weights w; it stores the codes, as
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

// roundLevels returns rn(v), for every v.
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
func posRefine(a, b simd.Float32s, top simd.Int32s, x, w []float32, codes []int32) (a1, b1 simd.Float32s, changed simd.Int32s) {
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

// symTable are the parameters of searchSym as rows.
type symTable struct {
	levels int32
	low    row // magic number - levels
	high   row // magic number + levels - 1
	eps    row
	first  row   // numerator of the first step
	steps  []row // numerators of the candidates, an even number
}

func newSymTable(levels int32) *symTable {
	n := float32(levels)
	t := &symTable{
		levels: levels, low: splat(3<<22 - n), high: splat(3<<22 + n - 1), eps: splat(groupMaxEps), first: splat(-n),
	}
	for c := float32(-9); c <= 9; c++ {
		if c != 0 {
			t.steps = append(t.steps, splat(-(n + float32(0.1*c))))
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

// searchSymTile is searchSym on a tile x with weights w. It stores one scale per
// lane, and in step and shift what symCodesTile needs to give the codes. wx is
// scratch. x, w and wx have one length.
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
		l0, l1 := s0.Mul(simd.LoadFloat32s(x[i:i+width])).Add(magic).Max(low).Min(high).Sub(magic), s1.Mul(simd.LoadFloat32s(x[i:i+width])).Add(magic).Max(low).Min(high).Sub(magic)
		a0, a1 = a0.Add(simd.LoadFloat32s(wx[i:i+width]).Mul(l0)), a1.Add(simd.LoadFloat32s(wx[i:i+width]).Mul(l1))
		b0, b1 = b0.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l0).Mul(l0)), b1.Add(simd.LoadFloat32s(w[i:i+width]).Mul(l1).Mul(l1))
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

// relevelSymTile is relevelSym on a tile: d has one value per lane, words the codes
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

// searchSym3Tiles is searchSym3 on two tiles x, one behind the other: moving levels
// is one long chain of dependent operations with a division in it, so two run at the
// same time. It stores one scale per lane and the codes as symCodesTile does, both
// for the first tile and then the second. w, wx and lv are scratch; they and x have
// one length.
func searchSym3Tiles(t *symTable, x, w, wx, lv, scales []float32, words []uint32) {
	var zero simd.Float32s
	width, half := zero.Len(), len(x)/2
	w, wx, lv, words = w[:len(x)], wx[:len(x)], lv[:len(x)], words[:len(x)/4]
	eps, first := simd.LoadFloat32s(t.eps[:]), simd.LoadFloat32s(t.first[:])
	m0, m1 := largestTile(x[:half]), largestTile(x[half:])
	flat0, flat1 := m0.Abs().Less(eps), m1.Abs().Less(eps)
	step0, step1 := zero.IfElse(flat0, first.Div(m0)), zero.IfElse(flat1, first.Div(m1))
	fl, fh := simd.LoadFloat32s(t.low[:]), simd.LoadFloat32s(t.high[:])
	a0, b0 := sym3Start(step0, fl, fh, x[:half], w[:half], wx[:half], lv[:half])
	a1, b1 := sym3Start(step1, fl, fh, x[half:], w[half:], wx[half:], lv[half:])
	low, high := simd.BroadcastInt32s(-t.levels), simd.BroadcastInt32s(t.levels-1)
	var changes [lane.MaxWidth]int32
	for pass := 0; pass < 5; pass++ {
		var changed simd.Int32s
		a0, b0, a1, b1, changed = sym3Refine(a0, b0, a1, b1, low, high, x, w, wx, lv)
		changed.Store(changes[:])
		if changes == [lane.MaxWidth]int32{} {
			break
		}
	}
	zero.IfElse(flat0, a0.Div(b0).Masked(b0.Greater(zero))).Store(scales)
	zero.IfElse(flat1, a1.Div(b1).Masked(b1.Greater(zero))).Store(scales[width:])
	flat := flat0
	for i, o := 0, 0; i <= len(x)-4*width; i, o = i+4*width, o+width {
		if i == half {
			flat = flat1
		}
		var q, none simd.Int32s
		for j := 3; j >= 0; j-- {
			l := simd.LoadFloat32s(lv[i+j*width : i+j*width+width]).ConvertToInt32().Sub(low)
			q = q.ShiftAllLeft(8).Or(l)
		}
		none.IfElse(flat, q).ToBits().Store(words[o : o+width])
	}
}

// sym3Start sets lv to the levels of step, w to x*x and wx to x*x*x, and returns the
// sums of the levels.
//
//go:noinline
func sym3Start(step, low, high simd.Float32s, x, w, wx, lv []float32) (a, b simd.Float32s) {
	w, wx, lv = w[:len(x)], wx[:len(x)], lv[:len(x)]
	width := step.Len()
	magic := simd.BroadcastUint32s(magicBits).BitsToFloat32()
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		l := step.Mul(v).Add(magic).Max(low).Min(high).Sub(magic)
		wi := v.Mul(v)
		wxi := wi.Mul(v)
		wi.Store(w[i : i+width])
		wxi.Store(wx[i : i+width])
		l.Store(lv[i : i+width])
		a = a.Add(wxi.Mul(l))
		b = b.Add(wi.Mul(l).Mul(l))
	}
	return a, b
}

// sym3Refine is one pass that moves levels one at a time, on two tiles with the sums
// p0, q0 and p1, q1 (a and b in searchSym3).
//
//go:noinline
func sym3Refine(p0, q0, p1, q1 simd.Float32s, low, high simd.Int32s, x, w, wx, lv []float32) (a0, b0, a1, b1 simd.Float32s, changed simd.Int32s) {
	var zero simd.Float32s
	a0, b0, a1, b1 = p0, q0, p1, q1
	w, wx, lv = w[:len(x)], wx[:len(x)], lv[:len(x)]
	width := zero.Len()
	for i, k := 0, len(x)/2; k <= len(x)-width; i, k = i+width, k+width {
		f0, w0, wx0 := simd.LoadFloat32s(lv[i:i+width]), simd.LoadFloat32s(w[i:i+width]), simd.LoadFloat32s(wx[i:i+width])
		f1, w1, wx1 := simd.LoadFloat32s(lv[k:k+width]), simd.LoadFloat32s(w[k:k+width]), simd.LoadFloat32s(wx[k:k+width])
		c0, c1 := a0.Sub(wx0.Mul(f0)), a1.Sub(wx1.Mul(f1))
		d0, d1 := b0.Sub(w0.Mul(f0).Mul(f0)), b1.Sub(w1.Mul(f1).Mul(f1))
		ok0, ok1 := c0.Greater(zero), c1.Greater(zero)
		l0 := roundLevels(simd.LoadFloat32s(x[i : i+width]).Mul(d0).Div(c0)).Max(low).Min(high).ConvertToFloat32()
		l1 := roundLevels(simd.LoadFloat32s(x[k : k+width]).Mul(d1).Div(c1)).Max(low).Min(high).ConvertToFloat32()
		ok0, ok1 = ok0.And(l0.NotEqual(f0)), ok1.And(l1.NotEqual(f1))
		c0, c1 = c0.Add(wx0.Mul(l0)), c1.Add(wx1.Mul(l1))
		d0, d1 = d0.Add(w0.Mul(l0).Mul(l0)), d1.Add(w1.Mul(l1).Mul(l1))
		ok0 = ok0.And(d0.Greater(zero)).And(c0.Mul(c0).Mul(b0).Greater(a0.Mul(a0).Mul(d0)))
		ok1 = ok1.And(d1.Greater(zero)).And(c1.Mul(c1).Mul(b1).Greater(a1.Mul(a1).Mul(d1)))
		l0.IfElse(ok0, f0).Store(lv[i : i+width])
		l1.IfElse(ok1, f1).Store(lv[k : k+width])
		a0, b0 = c0.IfElse(ok0, a0), d0.IfElse(ok0, b0)
		a1, b1 = c1.IfElse(ok1, a1), d1.IfElse(ok1, b1)
		changed = changed.Or(ok0.Or(ok1).ToInt32s())
	}
	return a0, b0, a1, b1, changed
}
