//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"
)

// searchAsymTiles and searchSymTile with 256 bits. Package simd does not round to
// integers: with archsimd a level takes one operation less, and it can be limited as
// an integer is, which does not compete with the additions. Nor does the compiler
// put a no-op into the loop for every operation, as it does for those of package
// simd, which are inlined functions. Most candidates need one of the two limits only.
//
// Zen 3 does 2 additions or roundings, 2 multiplications and 4 operations of all kinds
// in a cycle. A candidate of searchAsymAVX2 takes 10 or 11 operations per element for
// its sums and 6 for its error, one of searchSymAVX2 8 or 9. Cycles per row of two
// tiles and candidate, of sub-blocks of 32: sums 8.4 without and 9.6 with an upper
// limit (searchAsymTiles: 11.1), error 4.5 (5.2). A call costs about 25 of them.
//
// Tried and lost: levels in one loop and their sums in another (a third of the
// instructions more); a level from a fused multiplication by 1 and addition (the
// constants take registers); three or four candidates of searchSymAVX2 at a time
// (registers again). Two rows in one round of the loop gain 1 to 3%.

type (
	f32x8  = archsimd.Float32x8
	f32x16 = archsimd.Float32x16
	i32x8  = archsimd.Int32x8
)

// absBits are all bits of a float32 but the sign.
const absBits = 0x7FFFFFFF

func ints8(v uint32) i32x8 { return archsimd.BroadcastUint32x8(v).AsInt32x8() }

func load8(x []float32) f32x8 { return archsimd.LoadFloat32x8Array((*[8]float32)(x)) }

// neg8 returns -v.
func neg8(v f32x8, sign i32x8) f32x8 { return v.AsInt32x8().Xor(sign).AsFloat32x8() }

// asymTiles is the number of tiles that searchAsym takes at most, and 2 at least.
func asymTiles() int {
	if tilesByAVX2 {
		return 4
	}
	return 2
}

// searchAsym is searchAsymTiles, of sub-blocks of n elements; it also takes four tiles if asymTiles says so.
func searchAsym(t *asymTable, n int, x, w, pairs []float32, fit *asymFit) {
	if tilesByAVX2 {
		searchAsymAVX2(t, n, x, w, pairs, fit)
	} else {
		searchAsymTiles(t, x, w, pairs[:3*len(x)+1], fit)
	}
}

func load16(x []float32) f32x16 { return archsimd.LoadFloat32x16Array((*[16]float32)(x)) }

func store16(x []float32, v f32x16) { v.StoreArray((*[16]float32)(x)) }

func store8(x []float32, v f32x8) { v.StoreArray((*[8]float32)(x)) }

// asymTile is the state of the search of a tile.
type asymTile struct {
	sw, sx, mx, low, limit f32x8 // sums and extremes of the elements
	mn, scale, best        f32x8 // the best fit so far and its error
	step, base             f32x8 // its levels are those of step*(x - base)
	exact                  archsimd.Mask32x8

	// The candidate: its step, the sums of its levels, its fit, and whether it has one.
	s, l, ll, xl, d, m f32x8
	ok                 archsimd.Mask32x8
}

// asymPair are two tiles that are searched together, and their rows.
type asymPair struct {
	a, b asymTile
	rows []float32
}

// searchAsymAVX2 searches two tiles or two pairs of them, whose candidates take turns: one has its
// sums while the other waits for those of its chain and its divisions. Each pair takes one element of pairs more than
// three times its own.
func searchAsymAVX2(t *asymTable, n int, x, w, pairs []float32, fit *asymFit) {
	var all [2]asymPair
	tile := 8 * n
	list := all[:len(x)/(2*tile)]
	for i := range list {
		p := &list[i]
		p.rows = pairs[i*(6*tile+16):][:6*tile+1] // in lines of the cache as the first
		p.start(t, n, x[2*i*tile:][:2*tile], w[2*i*tile:][:2*tile])
		p.sums()
		p.a.best, p.b.best = p.err(t.absErr)
	}
	for k := range t.steps {
		for i := range list {
			p := &list[i]
			p.next(&t.steps[k])
			if t.capped[k] {
				p.cappedSums(&t.levels)
			} else {
				p.sums()
			}
		}
		for i := range list {
			p := &list[i]
			p.solve()
			p.take(p.err(t.absErr))
		}
	}
	for i := range list {
		list[i].a.store(fit, 16*i)
		list[i].b.store(fit, 16*i+8)
	}
	archsimd.ClearAVXUpperBits()
}

// start loads the elements x and weights w of both tiles, puts them into p.rows and fits
// the whole range of x.
func (p *asymPair) start(t *asymTable, n int, x, w []float32) {
	var sw0, sx0, sw1, sx1 f32x8
	mn0, mn1 := load8(x), load8(x[8*n:])
	mx0, mx1 := mn0, mn1
	// Sub-blocks have 16 elements or 32. Counts that are constants leave no bounds to check.
	for i := 0; i < n; i += 16 {
		rows := (*[16*48 - 8]float32)(p.rows[48*i:])
		x0, x1 := (*[16 * 8]float32)(x[8*i:]), (*[16 * 8]float32)(x[8*n+8*i:])
		w0, w1 := (*[16 * 8]float32)(w[8*i:]), (*[16 * 8]float32)(w[8*n+8*i:])
		for i := range 16 {
			v, wi := load8(x0[8*i:]), load8(w0[8*i:])
			mn0, mx0 = v.IfElse(v.Less(mn0), mn0), v.IfElse(v.Greater(mx0), mx0)
			sw0, sx0 = sw0.Add(wi), sx0.Add(wi.Mul(v))
			store8(rows[48*i:], v)
			store8(rows[48*i+8:], wi)

			v, wi = load8(x1[8*i:]), load8(w1[8*i:])
			mn1, mx1 = v.IfElse(v.Less(mn1), mn1), v.IfElse(v.Greater(mx1), mx1)
			sw1, sx1 = sw1.Add(wi), sx1.Add(wi.Mul(v))
			store8(rows[48*i+24:], v)
			store8(rows[48*i+32:], wi)
		}
	}
	p.a.sw, p.a.sx, p.a.mn, p.a.mx = sw0, sx0, mn0, mx0
	p.b.sw, p.b.sx, p.b.mn, p.b.mx = sw1, sx1, mn1, mx1
	p.a.whole(t)
	p.b.whole(t)
}

// whole makes the whole range the candidate and the best fit, without its error.
func (a *asymTile) whole(t *asymTable) {
	var zero f32x8
	mn := zero.IfElse(a.mn.Greater(zero), a.mn)
	a.mn, a.low, a.base = mn, mn, mn
	span := a.mx.Sub(mn)
	a.step = load8(t.levels[:]).Div(span)
	a.s = a.step
	a.scale = load8(t.one[:]).Div(a.step)
	a.d, a.m = a.scale, mn
	a.limit = load8(t.limit[:])
	// Rounding is monotonic, so the extremes of x have those of step*(x - mn).
	a.exact = a.step.Mul(span).Less(a.limit)
}

// next, solve and take are those of both tiles. They are not inlined: addresses of fields that are
// needed before and after a call would be computed early and kept on the stack.
//
//go:noinline
func (p *asymPair) next(numerator *row) {
	p.a.next(numerator)
	p.b.next(numerator)
}

//go:noinline
func (p *asymPair) solve() {
	p.a.solve()
	p.b.solve()
}

//go:noinline
func (p *asymPair) take(e0, e1 f32x8) {
	p.a.take(e0)
	p.b.take(e1)
}

// next begins the candidate with the given numerator. A lane in which the minimum
// is not below the largest element counts as not exact: there the largest level is
// not that of the largest element.
func (a *asymTile) next(numerator *row) {
	var zero f32x8
	span := a.mx.Sub(a.mn)
	s := load8(numerator[:]).Div(span)
	a.exact = a.exact.And(span.Greater(zero)).And(s.Mul(span).Less(a.limit)).And(s.Mul(a.mn.Sub(a.low)).Less(a.limit))
	a.s = s
}

// solve sets the candidate's fit.
func (a *asymTile) solve() {
	var zero f32x8
	det := a.sw.Mul(a.ll).Sub(a.l.Mul(a.l))
	d := a.sw.Mul(a.xl).Sub(a.sx.Mul(a.l)).Div(det)
	m := a.ll.Mul(a.sx).Sub(a.l.Mul(a.xl)).Div(det)
	if above := m.Greater(zero); above.ToBits() != 0 {
		m = zero.IfElse(above, m)
		d = a.xl.Div(a.ll).IfElse(above, d)
	}
	a.d, a.m, a.ok = d, m, det.Greater(zero)
}

// take makes the candidate the best fit where its error e is smaller.
func (a *asymTile) take(e f32x8) {
	win := a.ok.And(e.Less(a.best))
	a.best = e.IfElse(win, a.best)
	a.step = a.s.IfElse(win, a.step)
	a.base = a.mn.IfElse(win, a.base)
	a.scale = a.d.IfElse(win, a.scale)
	a.mn = a.m.IfElse(win, a.mn)
}

// store puts the best fit into fit, from lane i.
func (a *asymTile) store(fit *asymFit, i int) {
	var zero f32x8
	flat := a.mx.Equal(a.low)
	store8(fit.scale[i:], zero.IfElse(flat, a.scale))
	store8(fit.negMin[i:], neg8(a.mn, ints8(1<<31)))
	store8(fit.step[i:], zero.IfElse(flat, a.step))
	store8(fit.base[i:], a.base)
	a.exact.Or(flat).ToInt32x8().StoreArray((*[8]int32)(fit.exact[i:]))
}

// err is asymErr of the candidates of both tiles.
//
//go:noinline
func (p *asymPair) err(abs bool) (e0, e1 f32x8) {
	scale0, mn0, scale1, mn1 := p.a.d, p.a.m, p.b.d, p.b.m
	r := p.rows[:len(p.rows):len(p.rows)]
	if abs {
		mask := ints8(absBits)
		for ; len(r) > 48; r = r[48:] {
			q := (*[48]float32)(r)
			d0 := scale0.Mul(load8(q[16:])).Add(mn0).Sub(load8(q[0:])).AsInt32x8().And(mask).AsFloat32x8()
			d1 := scale1.Mul(load8(q[40:])).Add(mn1).Sub(load8(q[24:])).AsInt32x8().And(mask).AsFloat32x8()
			e0, e1 = e0.Add(d0.Mul(load8(q[8:]))), e1.Add(d1.Mul(load8(q[32:])))
		}
		return e0, e1
	}
	for ; len(r) > 48; r = r[48:] {
		q := (*[48]float32)(r)
		d0 := scale0.Mul(load8(q[16:])).Add(mn0).Sub(load8(q[0:]))
		d1 := scale1.Mul(load8(q[40:])).Add(mn1).Sub(load8(q[24:]))
		e0, e1 = e0.Add(d0.Mul(d0).Mul(load8(q[8:]))), e1.Add(d1.Mul(d1).Mul(load8(q[32:])))
	}
	return e0, e1
}

// searchSymRows is searchSymTile, for which rows are longer by at least 1 than three
// times x.
func searchSymRows(t *symTable, x, w, rows, scales, step, shift []float32) {
	if tilesByAVX2 {
		searchSymAVX2(t, x, w, rows, scales, step, shift)
	} else {
		searchSymTile(t, x, w, rows, scales, step, shift)
	}
}

// relevelMin is relevelMinTile.
func relevelMin(levels int32, x, d, m, step, base []float32, words []uint32) {
	if tilesByAVX2 {
		relevelMinAVX2(levels, x, d, m, step, base, words[:len(x)/4])
	} else {
		relevelMinTile(levels, x, d, m, step, base, words)
	}
}

// relevelMinAVX2 is relevelMinTile with 256 bits.
func relevelMinAVX2(levels int32, x, d, m, step, base []float32, words []uint32) {
	var zero f32x8
	dv, mv, sv, bv := load8(d), load8(m), load8(step), load8(base)
	none := dv.Equal(zero)
	mask, magic := ints8(magicMask), archsimd.BroadcastUint32x8(magicBits).BitsToFloat32()
	low, high := archsimd.BroadcastInt32x8(magicZero), archsimd.BroadcastInt32x8(magicZero+levels)
	for v, o := x, words; len(v) >= 32 && len(o) >= 8; v, o = v[32:], o[8:] {
		e := (*[32]float32)(v)
		v0, v1, v2, v3 := load8(e[0:8]), load8(e[8:16]), load8(e[16:24]), load8(e[24:32])
		q0, q1, q2, q3 := v0.Add(mv).Div(dv), v1.Add(mv).Div(dv), v2.Add(mv).Div(dv), v3.Add(mv).Div(dv)
		if none.ToBits() != 0 {
			q0, q1 = sv.Mul(v0.Sub(bv)).IfElse(none, q0), sv.Mul(v1.Sub(bv)).IfElse(none, q1)
			q2, q3 = sv.Mul(v2.Sub(bv)).IfElse(none, q2), sv.Mul(v3.Sub(bv)).IfElse(none, q3)
		}
		q := q3.Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(low)
		q = q.ShiftAllLeft(8).Add(q2.Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(low))
		q = q.ShiftAllLeft(8).Add(q1.Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(low))
		q = q.ShiftAllLeft(8).Add(q0.Add(magic).AsInt32x8().And(mask).Max(low).Min(high).Sub(low))
		q.AsUint32x8().StoreArray((*[8]uint32)(o))
	}
	archsimd.ClearAVXUpperBits()
}
