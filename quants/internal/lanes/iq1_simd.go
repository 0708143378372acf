//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"
	"sync"

	"ggforge/internal/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// The search of IQ1_S and IQ1_M for cuts, with vectors. It replaces scalar.searchIQ1_S and
// scalar.searchIQ1_M.
//
// A lane is a second cut, a row all of them for one first cut. Which fit wins
// depends on the order, as the best so far is a rounded number: vectors only look
// for rows with any fit that is better than the best so far, and the scalar row of
// the type goes through those, by what lane had one. To have few of them the search
// starts from a lower bound, found in some rows; see bounded for why the result is
// the same. Elements are sorted by counting: a lane is an element, compared with all
// others.
//
// Limits: 23 operations for each 8 second cuts in IQ1_S, both shifts, of which
// there are 85 times 8 in a sub-block; 35 in IQ1_M, 27 times. A third of the time
// goes there, the rest in equal parts to sorting, tables, the rows gone through and
// the near points, for which see nearAVX2Dim8.
//
// Against the scalar code (Zen 3, Go 1.27.4, MB/s of float32): IQ1_S 90/31 at 256
// bits, 56/31 at 128; IQ1_M 65/18 and 45/18.

func QuantizeIQ1_S(dst []byte, src, importance []float32) {
	scalar.EncodeIQ1_S(dst, src, importance, searchIQ1_SLanes)
}

func QuantizeIQ1_M(dst []byte, src, importance []float32) {
	scalar.EncodeIQ1_M(dst, src, importance, searchIQ1_MLanes)
}

// rowBits are the bits of values by first cut, to be broadcast.
type rowBits [scalar.CutsLen]uint32

// iq1Lanes is the scratch of a sub-block.
type iq1Lanes struct {
	s scalar.CutsIQ1_S
	m scalar.CutsIQ1_M

	grid gridLanes // for the choice among near points

	keys  [pack.QK]int32 // as the values in order, -0 as 0
	ranks [pack.QK]int32 // places of the elements when sorted
	order [pack.QK]uint8 // elements by place
	wx    [pack.QK]float32

	rows  [10]rowBits
	ratio [maxLanes]float32 // of the bound, by lane
	hit   [maxLanes]int32   // lanes that are better, not 0

	xTop [2][2][maxLanes]uint32 // bits of m.xTop in all lanes
}

var iq1LanesPool = sync.Pool{New: func() any { return new(iq1Lanes) }}

// below holds -1 from 16 on.
var below = func() (t [2 * maxLanes]int32) {
	for i := maxLanes; i < len(t); i++ {
		t[i] = -1
	}
	return t
}()

// rankLanes sets wx to w*x and ranks to the places of x in ascending order, equal
// values in theirs. len(x) is 16 or 32.
func rankLanes(l *iq1Lanes, x, w []float32) {
	n := len(x)
	w = w[:n]
	var zero simd.Float32s
	abs := simd.BroadcastInt32s(math.MaxInt32)
	lanes := zero.Len()
	for i := 0; i < n; i += lanes {
		e := simd.LoadFloat32s(x[i:])
		simd.LoadFloat32s(w[i:]).Mul(e).Store(l.wx[i:])
		k := e.Add(zero).ToBits().BitsToInt32()
		k.Xor(k.ShiftAllRight(31).And(abs)).Store(l.keys[i:])
	}
	keys := l.keys[:n]
	for i := 0; i < n; i += lanes {
		k := simd.LoadInt32s(keys[i:])
		var c simd.Int32s
		for _, e := range keys[:i] {
			c = c.Sub(k.GreaterEqual(simd.BroadcastInt32s(e)).ToInt32s())
		}
		for j, e := range keys[i:][:lanes] {
			c = c.Sub(k.Greater(simd.BroadcastInt32s(e).Add(simd.LoadInt32s(below[maxLanes-1-j:]))).ToInt32s())
		}
		for _, e := range keys[i+lanes:] {
			c = c.Sub(k.Greater(simd.BroadcastInt32s(e)).ToInt32s())
		}
		c.Store(l.ranks[i:])
	}
}

// sort sets order and wx. The vectors are no longer in use.
func (l *iq1Lanes) sort(x, w []float32) {
	rankLanes(l, x, w)
	clearUpper()
	for i, r := range l.ranks[:len(x)] {
		l.order[r&(pack.QK-1)] = uint8(i)
	}
}

// Constants, each by shift: the first level, its square as a product of two.
var (
	level0IQ1 = [2]uint32{math.Float32bits(scalar.ValuesIQ1[0][0]), math.Float32bits(scalar.ValuesIQ1[1][0])}
	level2IQ1 = [2]uint32{math.Float32bits(scalar.ValuesIQ1[0][2]), math.Float32bits(scalar.ValuesIQ1[1][2])}
)

const eighth = 0x3E000000 // 1/8

// tablesIQ1_S fills the tables of cuts from sx and sw. Rows are sx, sw, and what
// the part before the cut adds to a and b, for either shift. After the last cut b
// becomes NaN.
func tablesIQ1_S(l *iq1Lanes) {
	c := &l.s
	for i, lanes := 0, (simd.Float32s{}).Len(); i <= pack.QK; i += lanes {
		simd.LoadFloat32s(c.Sx[i:]).ToBits().Store(l.rows[0][i:])
		simd.LoadFloat32s(c.Sw[i:]).ToBits().Store(l.rows[1][i:])
	}
	xAll := simd.BroadcastUint32s(l.rows[0][pack.QK]).BitsToFloat32()
	wAll := simd.BroadcastUint32s(l.rows[1][pack.QK]).BitsToFloat32()
	var zero simd.Float32s
	for s := range 2 {
		q0 := simd.BroadcastUint32s(level0IQ1[s]).BitsToFloat32()
		q2 := simd.BroadcastUint32s(level2IQ1[s]).BitsToFloat32()
		for i := 0; i <= pack.QK; i += zero.Len() {
			x, w := simd.LoadFloat32s(c.Sx[i:]), simd.LoadFloat32s(c.Sw[i:])
			x.Sub(zero).Mul(q0).ToBits().Store(l.rows[2+2*s][i:])
			w.Sub(zero).Mul(q0).Mul(q0).ToBits().Store(l.rows[3+2*s][i:])
			xAll.Sub(x).Mul(q2).Store(c.A2[s][i:])
			wAll.Sub(w).Mul(q2).Mul(q2).Store(c.B2[s][i:])
		}
		nan := simd.BroadcastUint32s(0x7FC00000).BitsToFloat32()
		for i := pack.QK + 1; i < scalar.CutsLen; i += zero.Len() {
			nan.StorePart(c.B2[s][i:])
		}
	}
}

// boundIQ1_S sets ratio to the largest a*a/b of some rows, by lane.
func boundIQ1_S(l *iq1Lanes) {
	c := &l.s
	var zero, top simd.Float32s
	eighths := simd.BroadcastUint32s(eighth).BitsToFloat32()
	for i1 := 4; i1 <= 13; i1 += 3 {
		sx, sw := simd.BroadcastUint32s(l.rows[0][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[1][i1]).BitsToFloat32()
		aUp, bUp := simd.BroadcastUint32s(l.rows[2][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[3][i1]).BitsToFloat32()
		aDown, bDown := simd.BroadcastUint32s(l.rows[4][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[5][i1]).BitsToFloat32()
		for i2 := i1; i2 <= pack.QK; i2 += zero.Len() {
			x := simd.LoadFloat32s(c.Sx[i2:]).Sub(sx).Mul(eighths)
			w := simd.LoadFloat32s(c.Sw[i2:]).Sub(sw).Mul(eighths).Mul(eighths)
			a, b := aUp.Add(x).Add(simd.LoadFloat32s(c.A2[0][i2:])), bUp.Add(w).Add(simd.LoadFloat32s(c.B2[0][i2:]))
			r := a.Mul(a).Div(b)
			top = r.IfElse(r.Greater(top).And(b.Greater(zero)), top)
			a, b = aDown.Sub(x).Add(simd.LoadFloat32s(c.A2[1][i2:])), bDown.Add(w).Add(simd.LoadFloat32s(c.B2[1][i2:]))
			r = a.Mul(a).Div(b)
			top = r.IfElse(r.Greater(top).And(b.Greater(zero)), top)
		}
	}
	top.Store(l.ratio[:])
}

// scanIQ1_S returns the first row from i1 on with a fit better than best, or 33.
func scanIQ1_S(l *iq1Lanes, i1 int, bestBits uint32) int {
	c := &l.s
	best := simd.BroadcastUint32s(bestBits).BitsToFloat32()
	eighths := simd.BroadcastUint32s(eighth).BitsToFloat32()
	lanes := best.Len()
	for ; i1 <= pack.QK; i1++ {
		sx, sw := simd.BroadcastUint32s(l.rows[0][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[1][i1]).BitsToFloat32()
		aUp, bUp := simd.BroadcastUint32s(l.rows[2][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[3][i1]).BitsToFloat32()
		aDown, bDown := simd.BroadcastUint32s(l.rows[4][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[5][i1]).BitsToFloat32()
		hit := best.Greater(best)
		for i2 := i1; i2 <= pack.QK; i2 += lanes {
			x := simd.LoadFloat32s(c.Sx[i2:]).Sub(sx).Mul(eighths)
			w := simd.LoadFloat32s(c.Sw[i2:]).Sub(sw).Mul(eighths).Mul(eighths)
			a, b := aUp.Add(x).Add(simd.LoadFloat32s(c.A2[0][i2:])), bUp.Add(w).Add(simd.LoadFloat32s(c.B2[0][i2:]))
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b)))
			a, b = aDown.Sub(x).Add(simd.LoadFloat32s(c.A2[1][i2:])), bDown.Add(w).Add(simd.LoadFloat32s(c.B2[1][i2:]))
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b)))
		}
		hit.ToInt32s().Store(l.hit[:])
		var any int32
		for _, h := range l.hit[:lanes] {
			any |= h
		}
		if any != 0 {
			break
		}
	}
	return i1
}

// bounded returns the fit to start the search from: a lower bound for the best
// fit, if weights and sums are in a range where the errors of the arithmetic are
// relative ones; else scalar.NoCuts. Fits that are not better than best have a scale*a of
// at most 1 + 2^-21 times it, so that none of them would have kept one that is
// better than above from being taken.
func (l *iq1Lanes) bounded(total float32, negative bool) scalar.CutFit {
	var top float32
	for _, r := range l.ratio[:] {
		top = max(top, r)
	}
	f := scalar.NoCuts
	best := top * (1 - 0x1p-12)
	if p := best * total; !negative && best > 0x1p-80 && best < 0x1p80 && total > 0x1p-80 && total < 0x1p80 && p > 0x1p-100 && p < 0x1p60 {
		f.Best, f.Above, f.Bounded = best, best*(1+0x1p-20), true
	}
	return f
}

// searchIQ1_SLanes is scalar.searchIQ1_S.
func searchIQ1_SLanes(x, w []float32, codes []uint16) (scale float32, shift uint8) {
	l := iq1LanesPool.Get().(*iq1Lanes)
	defer iq1LanesPool.Put(l)
	clear(codes)
	x, w = x[:pack.QK], w[:pack.QK]
	l.sort(x, w)
	if max(arith.Abs(x[l.order[0]&(pack.QK-1)]), arith.Abs(x[l.order[pack.QK-1]&(pack.QK-1)])) < 1e-12 {
		return 0, 0
	}
	c := &l.s
	negative := false
	var sx, sw float32
	for k, i := range l.order {
		i &= pack.QK - 1
		sx += l.wx[i]
		sw += w[i]
		negative = negative || w[i] < 0
		c.Sx[k+1], c.Sw[k+1] = sx, sw
	}
	tablesIQ1_S(l)
	boundIQ1_S(l)
	clearUpper()
	f := l.bounded(sw, negative)
	if f.Bounded {
		for i1 := 0; ; i1++ {
			i1 = scanIQ1_S(l, i1, math.Float32bits(f.Best))
			clearUpper()
			if i1 > pack.QK {
				break
			}
			c.Row(&f, i1, l.hit[:lane.Width()])
		}
		if f.Bounded || f.Doubtful {
			f = scalar.NoCuts
		}
	}
	if f.Cut1 < 0 {
		for i1 := range pack.QK + 1 {
			c.Row(&f, i1, nil)
		}
	}
	if f.Cut1 < 0 {
		return 0, 0
	}
	scale, shift = f.CodesIQ1_S(l.order[:], codes)
	shifts := [4]uint8{shift, shift, shift, shift}
	return l.snap(codes, x, w, scale, shifts[:]), shift
}

// tablesIQ1_M fills the tables of cuts from sx and sw. Rows are sx by group, then
// w1 by group and shift. After the last cut one part of b becomes NaN.
func tablesIQ1_M(l *iq1Lanes) {
	c := &l.m
	var zero simd.Float32s
	var all [2][2]uint32 // bits of the last sx and sw, by group
	for h := range 2 {
		for i := 0; i <= 16; i += zero.Len() {
			simd.LoadFloat32s(c.Sx[h][i:]).ToBits().Store(l.rows[h][i:])
			simd.LoadFloat32s(c.Sw[h][i:]).ToBits().Store(l.rows[6][i:])
		}
		all[h] = [2]uint32{l.rows[h][16], l.rows[6][16]}
		for s := range 2 {
			k := &kindBitsIQ1_M[s]
			top := simd.BroadcastUint32s(k[0]).BitsToFloat32()
			c1, c2 := simd.BroadcastUint32s(k[1]).BitsToFloat32(), simd.BroadcastUint32s(k[2]).BitsToFloat32()
			simd.BroadcastUint32s(all[h][0]).BitsToFloat32().Mul(top).ToBits().Store(l.xTop[h][s][:])
			w := simd.BroadcastUint32s(all[h][1]).BitsToFloat32().Mul(top).Mul(top)
			for i := 0; i <= 16; i += zero.Len() {
				v := simd.LoadFloat32s(c.Sw[h][i:])
				v1 := w.Add(v.Mul(c1))
				v1.Store(c.W1[h][s][i:])
				v1.ToBits().Store(l.rows[2+2*h+s][i:])
				v.Mul(c2).Store(c.W2[h][s][i:])
			}
		}
	}
	nan := simd.BroadcastUint32s(0x7FC00000).BitsToFloat32()
	for s := range 2 {
		for i := 17; i < scalar.CutsLen; i += zero.Len() {
			nan.StorePart(c.W2[0][s][i:])
		}
	}
}

// kindBitsIQ1_M are the bits of scalar.KindsIQ1_M.
var kindBitsIQ1_M = func() (bits [2][3]uint32) {
	for s, k := range scalar.KindsIQ1_M {
		bits[s] = [3]uint32{math.Float32bits(k.Top), math.Float32bits(k.C1), math.Float32bits(k.C2)}
	}
	return bits
}()

// boundIQ1_M sets ratio to the largest a*a/b of some rows, by lane.
func boundIQ1_M(l *iq1Lanes) {
	c := &l.m
	var zero, best simd.Float32s
	top00, top01 := simd.LoadUint32s(l.xTop[0][0][:]).BitsToFloat32(), simd.LoadUint32s(l.xTop[0][1][:]).BitsToFloat32()
	top10, top11 := simd.LoadUint32s(l.xTop[1][0][:]).BitsToFloat32(), simd.LoadUint32s(l.xTop[1][1][:]).BitsToFloat32()
	for i1 := 2; i1 <= 6; i1 += 2 {
		x0, x1 := simd.BroadcastUint32s(l.rows[0][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[1][i1]).BitsToFloat32()
		w00, w01 := simd.BroadcastUint32s(l.rows[2][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[3][i1]).BitsToFloat32()
		w10, w11 := simd.BroadcastUint32s(l.rows[4][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[5][i1]).BitsToFloat32()
		for i2 := i1; i2 <= 16; i2 += zero.Len() {
			v0, v1 := x0.Add(simd.LoadFloat32s(c.Sx[0][i2:])), x1.Add(simd.LoadFloat32s(c.Sx[1][i2:]))
			a00, a01, a10, a11 := top00.Sub(v0), top01.Sub(v0), top10.Sub(v1), top11.Sub(v1)
			b00, b01 := w00.Add(simd.LoadFloat32s(c.W2[0][0][i2:])), w01.Add(simd.LoadFloat32s(c.W2[0][1][i2:]))
			b10, b11 := w10.Add(simd.LoadFloat32s(c.W2[1][0][i2:])), w11.Add(simd.LoadFloat32s(c.W2[1][1][i2:]))
			a, b := a00.Add(a10), b00.Add(b10)
			r := a.Mul(a).Div(b)
			best = r.IfElse(r.Greater(best).And(b.Greater(zero)), best)
			a, b = a00.Add(a11), b00.Add(b11)
			r = a.Mul(a).Div(b)
			best = r.IfElse(r.Greater(best).And(b.Greater(zero)), best)
			a, b = a01.Add(a10), b01.Add(b10)
			r = a.Mul(a).Div(b)
			best = r.IfElse(r.Greater(best).And(b.Greater(zero)), best)
			a, b = a01.Add(a11), b01.Add(b11)
			r = a.Mul(a).Div(b)
			best = r.IfElse(r.Greater(best).And(b.Greater(zero)), best)
		}
	}
	best.Store(l.ratio[:])
}

// scanIQ1_M returns the first row from i1 on with a fit better than best, or 17.
func scanIQ1_M(l *iq1Lanes, i1 int, bestBits uint32) int {
	c := &l.m
	best := simd.BroadcastUint32s(bestBits).BitsToFloat32()
	lanes := best.Len()
	top00, top01 := simd.LoadUint32s(l.xTop[0][0][:]).BitsToFloat32(), simd.LoadUint32s(l.xTop[0][1][:]).BitsToFloat32()
	top10, top11 := simd.LoadUint32s(l.xTop[1][0][:]).BitsToFloat32(), simd.LoadUint32s(l.xTop[1][1][:]).BitsToFloat32()
	for ; i1 <= 16; i1++ {
		x0, x1 := simd.BroadcastUint32s(l.rows[0][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[1][i1]).BitsToFloat32()
		w00, w01 := simd.BroadcastUint32s(l.rows[2][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[3][i1]).BitsToFloat32()
		w10, w11 := simd.BroadcastUint32s(l.rows[4][i1]).BitsToFloat32(), simd.BroadcastUint32s(l.rows[5][i1]).BitsToFloat32()
		hit := best.Greater(best)
		for i2 := i1; i2 <= 16; i2 += lanes {
			v0, v1 := x0.Add(simd.LoadFloat32s(c.Sx[0][i2:])), x1.Add(simd.LoadFloat32s(c.Sx[1][i2:]))
			a00, a01, a10, a11 := top00.Sub(v0), top01.Sub(v0), top10.Sub(v1), top11.Sub(v1)
			b00, b01 := w00.Add(simd.LoadFloat32s(c.W2[0][0][i2:])), w01.Add(simd.LoadFloat32s(c.W2[0][1][i2:]))
			b10, b11 := w10.Add(simd.LoadFloat32s(c.W2[1][0][i2:])), w11.Add(simd.LoadFloat32s(c.W2[1][1][i2:]))
			a := a00.Add(a10)
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b00.Add(b10))))
			a = a00.Add(a11)
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b00.Add(b11))))
			a = a01.Add(a10)
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b01.Add(b10))))
			a = a01.Add(a11)
			hit = hit.Or(a.Mul(a).Greater(best.Mul(b01.Add(b11))))
		}
		hit.ToInt32s().Store(l.hit[:])
		var any int32
		for _, h := range l.hit[:lanes] {
			any |= h
		}
		if any != 0 {
			break
		}
	}
	return i1
}

// searchIQ1_MLanes is scalar.searchIQ1_M.
func searchIQ1_MLanes(x, w []float32, codes []uint16, shifts []uint8) (scale float32) {
	l := iq1LanesPool.Get().(*iq1Lanes)
	defer iq1LanesPool.Put(l)
	clear(codes)
	clear(shifts)
	x, w = x[:16], w[:16]
	l.sort(x, w)
	if max(arith.Abs(x[l.order[0]&15]), arith.Abs(x[l.order[15]&15])) < 1e-7 {
		return 0
	}
	c := &l.m
	negative := false
	for k, i := range l.order[:16] {
		i &= 15
		negative = negative || w[i] < 0
		for h := range c.Sx {
			c.Sx[h][k+1], c.Sw[h][k+1] = c.Sx[h][k], c.Sw[h][k]
		}
		h := i >> 3 & 1
		c.Sx[h][k+1] += l.wx[i]
		c.Sw[h][k+1] += w[i]
	}
	tablesIQ1_M(l)
	boundIQ1_M(l)
	clearUpper()
	for h := range 2 {
		for s := range 2 {
			c.XTop[h][s] = math.Float32frombits(l.xTop[h][s][0])
		}
	}
	f := l.bounded(c.Sw[0][16]+c.Sw[1][16], negative)
	if f.Bounded {
		for i1 := 0; ; i1++ {
			i1 = scanIQ1_M(l, i1, math.Float32bits(f.Best))
			clearUpper()
			if i1 > 16 {
				break
			}
			c.Row(&f, i1, l.hit[:lane.Width()])
		}
		if f.Bounded || f.Doubtful {
			f = scalar.NoCuts
		}
	}
	if f.Cut1 < 0 {
		for i1 := range 17 {
			c.Row(&f, i1, nil)
		}
	}
	if f.Cut1 < 0 {
		return 0
	}
	scale = f.CodesIQ1_M(l.order[:16], codes, shifts)
	return l.snap(codes, x, w, scale, shifts)
}

// snap is scalar.SnapIQ1.
func (l *iq1Lanes) snap(codes []uint16, x, w []float32, scale float32, shifts []uint8) float32 {
	if !nearByTable {
		return scalar.SnapIQ1(codes, x, w, scale, shifts)
	}
	lists := chunked(&codebook.IQ1)
	s := &l.grid
	n := 0
	for g, code := range codes {
		r, t := codebook.IQ1.Rank(code), shifts[g]&1
		s.ranks[g][t] = uint32(r)
		s.codes[g][t] = uint32(code)
		if lists.spans[r].n > 0 {
			s.one[n] = uint16(g)<<8 | uint16(t)
			n++
		}
	}
	if n == 0 {
		return scale
	}
	for t := range scalar.ValuesIQ1 {
		for q, v := range scalar.ValuesIQ1[t] {
			s.values[t][q], s.values[t][q+4] = scale*v, scale*v
		}
	}
	spreadPair(s, x, w)
	failed := nearAVX2Dim8(lists, s, s.one[:n])
	clearUpper()
	if failed {
		return scalar.SnapIQ1(codes, x, w, scale, shifts) // stops at the first
	}
	for g := range codes {
		codes[g] = uint16(s.codes[g][shifts[g]&1])
	}
	return scalar.RefitIQ1(scale, codes, x, w, shifts)
}

// spreadPair fills ys and vs with x and w.
func spreadPair(s *gridLanes, x, w []float32) {
	w = w[:len(x)]
	for i, l := 0, (simd.Float32s{}).Len(); i < len(x); i += l {
		simd.LoadFloat32s(x[i:]).ToBits().Store(s.yBits[i:])
		simd.LoadFloat32s(w[i:]).ToBits().Store(s.vBits[i:])
	}
	for i := range x {
		simd.BroadcastUint32s(s.yBits[i]).BitsToFloat32().Store(s.ys[i][:])
		simd.BroadcastUint32s(s.vBits[i]).BitsToFloat32().Store(s.vs[i][:])
	}
}
