//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
	"ggforge/internal/kernel/lane"
)

// searchAsymTiles and searchSymTile with archsimd, as for AVX2, for the same reasons: of the instructions in a loop of
// package simd, a third are no-ops there. Where a lane has NaN, which is another one than amd64 has, its result is
// zeros or is not exact. BENCHMARKS.md has the instructions for a weight.

type (
	f32x4 = archsimd.Float32x4
	i32x4 = archsimd.Int32x4
)

// absBits are all bits of a float32 but the sign.
const absBits = 0x7FFFFFFF

// tilesByNeon says that tiles have the lanes of searchAsymNeon, which does not run where package simd is emulated.
var tilesByNeon = cpu.Here().Lanes() && lane.Width() == 4

func ints4(v uint32) i32x4 { return archsimd.BroadcastUint32x4(v).BitsToInt32() }

func load4(x []float32) f32x4 { return archsimd.LoadFloat32x4Array((*[4]float32)(x)) }

// neg4 returns -v.
func neg4(v f32x4, sign i32x4) f32x4 {
	return v.ToBits().BitsToInt32().Xor(sign).ToBits().BitsToFloat32()
}

// asymTiles is how many tiles searchAsym takes.
func asymTiles() int { return 2 }

// searchAsym is searchAsymTiles.
func searchAsym(t *asymTable, n int, x, w, pairs []float32, fit *asymFit) {
	pairs = pairs[:3*len(x)+1]
	if tilesByNeon {
		searchAsymNeon(t, x, w, pairs, fit)
	} else {
		searchAsymTiles(t, x, w, pairs, fit)
	}
}

func store4(x []float32, v f32x4) { v.StoreArray((*[4]float32)(x)) }

// asymTile is what the search knows of a tile.
type asymTile struct {
	sw, sx, mx, low, limit f32x4 // sums and extremes of the elements
	mn, scale, best        f32x4 // the best fit so far and its error
	step, base             f32x4 // its levels are those of step*(x - base)
	exact                  archsimd.Mask32x4

	// The candidate: its step, the sums of its levels, its fit, and whether it has one.
	s, l, ll, xl, d, m f32x4
	ok                 archsimd.Mask32x4
}

func searchAsymNeon(t *asymTable, x, w, pairs []float32, fit *asymFit) {
	var a, b asymTile
	a.start(t, x[:len(x)/2], w, pairs)
	b.start(t, x[len(x)/2:], w[len(x)/2:], pairs[12:])
	asymSumsNeon(&a, &b, pairs)
	a.best, b.best = asymErrNeon(t.absErr, a.scale, a.mn, b.scale, b.mn, pairs)
	for k := range t.steps {
		a.next(&t.steps[k])
		b.next(&t.steps[k])
		if t.capped[k] {
			asymCappedSumsNeon(&a, &b, load4(t.levels[:]).ToBits().BitsToInt32(), pairs)
		} else {
			asymSumsNeon(&a, &b, pairs)
		}
		a.solve()
		b.solve()
		e0, e1 := asymErrNeon(t.absErr, a.d, a.m, b.d, b.m, pairs)
		a.take(e0)
		b.take(e1)
	}
	a.store(fit, 0)
	b.store(fit, 4)
}

// start loads the elements x and weights w of a tile, puts them into pairs and fits
// the whole range of x.
func (a *asymTile) start(t *asymTable, x, w, pairs []float32) {
	var zero, sw, sx f32x4
	w = w[:len(x)]
	mn := load4(x)
	mx := mn
	for i := 0; i <= len(x)-4; i += 4 {
		v, wi := load4(x[i:i+4]), load4(w[i:i+4])
		mn = v.IfElse(v.Less(mn), mn)
		mx = v.IfElse(v.Greater(mx), mx)
		sw = sw.Add(wi)
		sx = sx.Add(wi.Mul(v))
		p := (*[8]float32)(pairs[6*i:])
		store4(p[:4], v)
		store4(p[4:], wi)
	}
	mn = zero.IfElse(mn.Greater(zero), mn)
	a.sw, a.sx, a.mx, a.low, a.mn, a.base = sw, sx, mx, mn, mn, mn
	span := mx.Sub(mn)
	a.step = load4(t.levels[:]).Div(span)
	a.s = a.step
	a.scale = load4(t.one[:]).Div(a.step)
	a.limit = load4(t.limit[:])
	// Rounding is monotonic, so the extremes of x have those of step*(x - mn).
	a.exact = a.step.Mul(span).Less(a.limit)
}

// next begins the candidate with the given numerator. A lane in which the minimum
// is not below the largest element counts as not exact: there the largest level is
// not that of the largest element.
func (a *asymTile) next(numerator *row) {
	var zero f32x4
	span := a.mx.Sub(a.mn)
	s := load4(numerator[:]).Div(span)
	a.exact = a.exact.And(span.Greater(zero)).And(s.Mul(span).Less(a.limit)).And(s.Mul(a.mn.Sub(a.low)).Less(a.limit))
	a.s = s
}

// solve sets the candidate's fit.
func (a *asymTile) solve() {
	var zero f32x4
	det := a.sw.Mul(a.ll).Sub(a.l.Mul(a.l))
	d := a.sw.Mul(a.xl).Sub(a.sx.Mul(a.l)).Div(det)
	m := a.ll.Mul(a.sx).Sub(a.l.Mul(a.xl)).Div(det)
	above := m.Greater(zero)
	a.d, a.m, a.ok = a.xl.Div(a.ll).IfElse(above, d), zero.IfElse(above, m), det.Greater(zero)
}

// take makes the candidate the best fit where its error e is smaller.
func (a *asymTile) take(e f32x4) {
	win := a.ok.And(e.Less(a.best))
	a.best = e.IfElse(win, a.best)
	a.step = a.s.IfElse(win, a.step)
	a.base = a.mn.IfElse(win, a.base)
	a.scale = a.d.IfElse(win, a.scale)
	a.mn = a.m.IfElse(win, a.mn)
}

// store puts the best fit into fit, from lane i.
func (a *asymTile) store(fit *asymFit, i int) {
	var zero f32x4
	flat := a.mx.Equal(a.low)
	store4(fit.scale[i:], zero.IfElse(flat, a.scale))
	store4(fit.negMin[i:], neg4(a.mn, ints4(1<<31)))
	store4(fit.step[i:], zero.IfElse(flat, a.step))
	store4(fit.base[i:], a.base)
	a.exact.Or(flat).ToInt32x4().StoreArray((*[4]int32)(fit.exact[i:]))
}

// asymSumsNeon sets the levels of pairs to those of the steps of a and b, and the
// sums of both. No element has a level above the largest.
//
//go:noinline
func asymSumsNeon(a, b *asymTile, pairs []float32) {
	var zero i32x4
	var l0, ll0, xl0, l1, ll1, xl1 f32x4
	s0, m0, s1, m1 := a.s, a.mn, b.s, b.mn
	for p := pairs[:len(pairs):len(pairs)]; len(p) > 24; p = p[24:] {
		q := (*[24]float32)(p)
		v0 := load4(q[0:]).Sub(m0).Mul(s0).Round().ToBits().BitsToInt32().Max(zero).ToBits().BitsToFloat32()
		store4(q[8:], v0)
		w0 := v0.Mul(load4(q[4:]))
		l0, ll0, xl0 = l0.Add(w0), ll0.Add(w0.Mul(v0)), xl0.Add(w0.Mul(load4(q[0:])))
		v1 := load4(q[12:]).Sub(m1).Mul(s1).Round().ToBits().BitsToInt32().Max(zero).ToBits().BitsToFloat32()
		store4(q[20:], v1)
		w1 := v1.Mul(load4(q[16:]))
		l1, ll1, xl1 = l1.Add(w1), ll1.Add(w1.Mul(v1)), xl1.Add(w1.Mul(load4(q[12:])))
	}
	a.l, a.ll, a.xl, b.l, b.ll, b.xl = l0, ll0, xl0, l1, ll1, xl1
}

// asymCappedSumsNeon sets the levels of pairs to those of the steps of a and b, and the
// sums of both.
//
//go:noinline
func asymCappedSumsNeon(a, b *asymTile, high i32x4, pairs []float32) {
	var zero i32x4
	var l0, ll0, xl0, l1, ll1, xl1 f32x4
	s0, m0, s1, m1 := a.s, a.mn, b.s, b.mn
	for p := pairs[:len(pairs):len(pairs)]; len(p) > 24; p = p[24:] {
		q := (*[24]float32)(p)
		v0 := load4(q[0:]).Sub(m0).Mul(s0).Round().ToBits().BitsToInt32().Max(zero).Min(high).ToBits().BitsToFloat32()
		store4(q[8:], v0)
		w0 := v0.Mul(load4(q[4:]))
		l0, ll0, xl0 = l0.Add(w0), ll0.Add(w0.Mul(v0)), xl0.Add(w0.Mul(load4(q[0:])))
		v1 := load4(q[12:]).Sub(m1).Mul(s1).Round().ToBits().BitsToInt32().Max(zero).Min(high).ToBits().BitsToFloat32()
		store4(q[20:], v1)
		w1 := v1.Mul(load4(q[16:]))
		l1, ll1, xl1 = l1.Add(w1), ll1.Add(w1.Mul(v1)), xl1.Add(w1.Mul(load4(q[12:])))
	}
	a.l, a.ll, a.xl, b.l, b.ll, b.xl = l0, ll0, xl0, l1, ll1, xl1
}

// asymErrNeon is asymErr.
//
//go:noinline
func asymErrNeon(abs bool, scale0, mn0, scale1, mn1 f32x4, pairs []float32) (e0, e1 f32x4) {
	p := pairs[:len(pairs):len(pairs)]
	if abs {
		mask := ints4(absBits)
		for ; len(p) > 24; p = p[24:] {
			q := (*[24]float32)(p)
			d0 := scale0.Mul(load4(q[8:])).Add(mn0).Sub(load4(q[0:])).ToBits().BitsToInt32().And(
				mask).ToBits().BitsToFloat32()
			d1 := scale1.Mul(load4(q[20:])).Add(mn1).Sub(load4(q[12:])).ToBits().BitsToInt32().And(
				mask).ToBits().BitsToFloat32()
			e0, e1 = e0.Add(d0.Mul(load4(q[4:]))), e1.Add(d1.Mul(load4(q[16:])))
		}
		return e0, e1
	}
	for ; len(p) > 24; p = p[24:] {
		q := (*[24]float32)(p)
		d0 := scale0.Mul(load4(q[8:])).Add(mn0).Sub(load4(q[0:]))
		d1 := scale1.Mul(load4(q[20:])).Add(mn1).Sub(load4(q[12:]))
		e0, e1 = e0.Add(d0.Mul(d0).Mul(load4(q[4:]))), e1.Add(d1.Mul(d1).Mul(load4(q[16:])))
	}
	return e0, e1
}

// searchSymRows is searchSymTile, for which rows are longer by at least 1 than three
// times x.
func searchSymRows(t *symTable, x, w, rows, scales, step, shift []float32) {
	if tilesByNeon {
		searchSymNeon(t, x, w, rows, scales, step, shift)
	} else {
		searchSymTile(t, x, w, rows, scales, step, shift)
	}
}

// searchSymNeon is searchSymTile in the way of those of AVX2. Each row of rows has that of x, of w
// and of their product.
func searchSymNeon(t *symTable, x, w, rows, scales, steps, shift []float32) {
	var zero, m, largest f32x4
	w, rows = w[:len(x)], rows[:3*len(x)+1]
	mask := ints4(absBits)
	for i := 0; i <= len(x)-4; i += 4 {
		v, wi := load4(x[i:i+4]), load4(w[i:i+4])
		av := v.ToBits().BitsToInt32().And(mask).ToBits().BitsToFloat32()
		larger := av.Greater(largest)
		m, largest = v.IfElse(larger, m), av.IfElse(larger, largest)
		r := (*[12]float32)(rows[3*i:])
		store4(r[0:], v)
		store4(r[4:], wi)
		store4(r[8:], wi.Mul(v))
	}
	low, high := load4(t.min[:]), load4(t.max[:]).ToBits().BitsToInt32()
	step := load4(t.first[:]).Div(m)
	a, b, _, _ := symSumsNeon(step, step, high, rows)
	scale := zero.IfElse(b.Equal(zero), a.Div(b))
	best := scale.Mul(a)
	for k := 0; k+1 < len(t.steps); k += 2 {
		s0, s1 := load4(t.steps[k][:]).Div(m), load4(t.steps[k+1][:]).Div(m)
		var a0, b0, a1, b1 f32x4
		if t.capped[k+1] {
			a0, b0, a1, b1 = symCappedSumsNeon(s0, s1, low, high, rows)
		} else {
			a0, b0, a1, b1 = symSumsNeon(s0, s1, high, rows)
		}

		win := b0.Greater(zero).And(a0.Mul(a0).Greater(best.Mul(b0)))
		d := a0.Div(b0)
		scale, best, step = d.IfElse(win, scale), d.Mul(a0).IfElse(win, best), s0.IfElse(win, step)

		win = b1.Greater(zero).And(a1.Mul(a1).Greater(best.Mul(b1)))
		d = a1.Div(b1)
		scale, best, step = d.IfElse(win, scale), d.Mul(a1).IfElse(win, best), s1.IfElse(win, step)
	}
	flat := largest.Less(load4(t.eps[:]))
	store4(scales, zero.IfElse(flat, scale))
	store4(steps, zero.IfElse(flat, step))
	store4(shift, load4(t.first[:]).Masked(flat))
}

// symSumsNeon is symSums for steps with which no element has a level below the
// smallest.
//
//go:noinline
func symSumsNeon(s0, s1 f32x4, high i32x4, rows []float32) (a0, b0, a1, b1 f32x4) {
	for r := rows[:len(rows):len(rows)]; len(r) > 12; r = r[12:] {
		q := (*[12]float32)(r)
		x, w, wx := load4(q[0:]), load4(q[4:]), load4(q[8:])
		l0 := x.Mul(s0).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		a0, b0 = a0.Add(l0.Mul(wx)), b0.Add(l0.Mul(w).Mul(l0))
		l1 := x.Mul(s1).Round().ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		a1, b1 = a1.Add(l1.Mul(wx)), b1.Add(l1.Mul(w).Mul(l1))
	}
	return a0, b0, a1, b1
}

// symCappedSumsNeon is symSums.
//
//go:noinline
func symCappedSumsNeon(s0, s1, low f32x4, high i32x4, rows []float32) (a0, b0, a1, b1 f32x4) {
	for r := rows[:len(rows):len(rows)]; len(r) > 12; r = r[12:] {
		q := (*[12]float32)(r)
		x, w, wx := load4(q[0:]), load4(q[4:]), load4(q[8:])
		l0 := x.Mul(s0).Round().Max(low).ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		a0, b0 = a0.Add(l0.Mul(wx)), b0.Add(l0.Mul(w).Mul(l0))
		l1 := x.Mul(s1).Round().Max(low).ToBits().BitsToInt32().Min(high).ToBits().BitsToFloat32()
		a1, b1 = a1.Add(l1.Mul(wx)), b1.Add(l1.Mul(w).Mul(l1))
	}
	return a0, b0, a1, b1
}

// relevelMin is relevelMinTile.
func relevelMin(levels int32, x, d, m, step, base []float32, words []uint32) {
	relevelMinTile(levels, x, d, m, step, base, words)
}
