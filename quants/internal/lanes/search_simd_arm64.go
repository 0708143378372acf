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

// tilesByNeon: tiles have the lanes of searchAsymNeon, which does not run where package simd is emulated.
var tilesByNeon = cpu.Here().Lanes() && lane.Width() == 4

func ints4(v uint32) i32x4 { return archsimd.BroadcastUint32x4(v).BitsToInt32() }

func load4(x []float32) f32x4 { return archsimd.LoadFloat32x4Array((*[4]float32)(x)) }

// neg4 returns -v.
func neg4(v f32x4, sign i32x4) f32x4 {
	return v.ToBits().BitsToInt32().Xor(sign).ToBits().BitsToFloat32()
}

// asymTiles is the number of tiles that searchAsym takes.
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

// asymTile is the state of the search of a tile.
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

// relevelMin is relevelMinTile.
func relevelMin(levels int32, x, d, m, step, base []float32, words []uint32) {
	relevelMinTile(levels, x, d, m, step, base, words)
}
