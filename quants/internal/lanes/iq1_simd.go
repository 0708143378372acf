//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/bits"
	"simd"
	"sync"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// IQ1_S and IQ1_M with a sub-block in each lane. Replaces scalar.QuantizeIQ1_S and
// scalar.QuantizeIQ1_M.
//
// Sorting: elements become integers in their order, whose low 4 or 5 bits make room for the
// number of the element. A network sorts them, two operations for each comparison and all
// lanes. Equal elements keep their order then; ones that differ in those low bits only may
// come out wrong, which shows when the elements themselves are put in place: such a lane
// is left to scalar.SearchIQ1_S or scalar.SearchIQ1_M, as is any other that is not sure.
//
// Cuts: which fit wins depends on the order in which fits are tried, as the best so far is a
// rounded number. So all fits are first measured roughly, 12 operations for two (IQ1_S, both
// shifts of a pair of cuts) or 30 for four (IQ1_M), and the scalar row of the type then tries those that
// could win, 1 or 2, from a lower bound of the best (scalar.FitFrom). It tries the pairs of
// a first cut and a second cut that both have a rough fit that is good enough.
//
// Why none that could win is left out: Let u = 2^-24, W the sum of weights, X the largest magnitude
// of a sum of w*x over the first elements (of a group), both as the floats that all
// fits are made of; m the largest rough fit; start = m*(1 - 2^-10), and fits not tried have a rough
// fit below start*(1 - 2^-10). Weights are not negative, so that sums of weights ascend.
//
//   - b is at least W/64, as levels are at least 1/8, and at most 1.3*W. Its parts are products of such
//     sums: scalar code errs by less than 12uW, the rough one by less than 15uW, together by less than
//     27*64*u = 2^-13.2 of b.
//   - a: scalar code errs by less than 11uX (IQ1_S) or 19uX (IQ1_M), the rough one by less than 10uX or 19uX, together
//     by 2^-19 X or 2^-18 X. Where a*a/b is start at least, a is at least sqrt(start*W)/8, less a little. Lanes are sure only if
//     X*X is at most 16 or 4 times start*W: then that is 2^-14 of a, and 2^-13 of a*a.
//   - The rounding of a division is negligible here. VRCPPS, which scanIQ1_SAVX2 has instead, errs by
//     1.5*2^-12 at most, by Intel's and AMD's manuals. All together is less than 2.5*2^-12 < 2^-10.6.
//
// So the fit whose rough one is m is above start*(1 + 2^-12), and a fit that is start in scalar
// arithmetic has a rough one above start*(1 - 2^-10). As Best never falls below start, else the
// search is in doubt, no fit that is left out would have been taken after the first that
// is; and none of those that would have been taken before it could have kept it from being taken, as it is
// better than start by 2^-20, and they leave a Best of start*(1 + 2^-21) at most.
// Ranges (start, W, their product: see boundsIQ1) keep out underflow and overflow of whatever is
// compared, NaN, and sums that are not finite: they fail X*X <= 16*start*W.
//
// Neighbours: see neighboursIQ1AVX2 and nearest8Neon. Levels are turned into codes, and codes into the sums of the last
// scale, in lanes again.
//
// Where the time goes, IQ1_S and IQ1_M (Sapphire Rapids, 256 bits, Go 1.27.4): rough fits 20%, neighbours 27% and 20%,
// sorting and putting in place 22% and 15%, cuts that are tried 7% and 20%, the rest to blocks, weights, codes. Of
// 33*34/2 = 561 pairs of cuts each takes some 5 cycles for 8 sub-blocks, 17*18/2 = 153 some 10: 350 and 190 cycles for
// a sub-block.
//
// MB/s of float32 on one core of it, best of many short runs: IQ1_S 230 at 256 bits (98 with a cut in each lane and all
// of them computed as the reference does), 210 (91) at 512, 95 (61) at 128; IQ1_M 175 (70), 160 (67) and 84 (49). At
// 512 bits that is with divisions; reciprocals have since made it 23% and 16% more.

func QuantizeIQ1_S(dst []byte, src, importance []float32) {
	l := iq1LanesPool.Get().(*iq1Lanes)
	defer iq1LanesPool.Put(l)
	l.lists = chunked(&codebook.IQ1)
	width := lane.Width()
	for len(src) > 0 {
		n := min(len(src), len(l.w))
		x, w := src[:n], l.w[:n]
		squaresOf(l.squares[:], x, 1, 2, 1.0/pack.QK_K)
		for i := 0; i < n; i += pack.QK_K {
			importanceWeights(w[i:][:pack.QK_K], x[i:][:pack.QK_K], importance[i:][:pack.QK_K],
				math.Float32bits(l.squares[i/pack.QK_K]))
		}
		for i := 0; i < n; i += pack.QK * width {
			end := min(i+pack.QK*width, n)
			l.fitIQ1_S(x[i:end], w[i:end], i/pack.QK, width)
		}
		clearUpper()
		for i := range n / pack.QK_K {
			l.fits[i].PutIQ1_S(dst[:scalar.BytesIQ1_S:scalar.BytesIQ1_S])
			dst = dst[scalar.BytesIQ1_S:]
		}
		src, importance = src[n:], importance[n:]
	}
}

func QuantizeIQ1_M(dst []byte, src, importance []float32) {
	l := iq1LanesPool.Get().(*iq1Lanes)
	defer iq1LanesPool.Put(l)
	l.lists = chunked(&codebook.IQ1)
	width := lane.Width()
	for len(src) > 0 {
		n := min(len(src), len(l.w))
		x, w := src[:n], l.w[:n]
		if importance != nil {
			squaresOf(l.squares[:], x, 1, 2, 1.0/pack.QK_K)
			for i := 0; i < n; i += pack.QK_K {
				importanceWeights(w[i:][:pack.QK_K], x[i:][:pack.QK_K], importance[i:][:pack.QK_K],
					math.Float32bits(l.squares[i/pack.QK_K]))
			}
			importance = importance[n:]
		} else {
			squareTile(w, x)
		}
		for i := 0; i < n; i += 16 * width {
			end := min(i+16*width, n)
			l.fitIQ1_M(x[i:end], w[i:end], i/16, width)
		}
		clearUpper()
		for i := range n / pack.QK_K {
			l.fits[i].PutIQ1_M(dst[:scalar.BytesIQ1_M:scalar.BytesIQ1_M], x[pack.QK_K*i:][:pack.QK_K],
				w[pack.QK_K*i:][:pack.QK_K])
			dst = dst[scalar.BytesIQ1_M:]
		}
		src = src[n:]
	}
}

// iq1Chunk is the number of superblocks that are fitted together.
const iq1Chunk = 4

// tileIQ1 is a tile of IQ1: rows of one vector each, of which IQ1_M has 16.
type tileIQ1[T any] [pack.QK * maxLanes]T

// iq1Lanes is the scratch of a few superblocks.
type iq1Lanes struct {
	lists   *neighbourLists
	w       [iq1Chunk * pack.QK_K]float32
	squares [iq1Chunk]float32
	fits    [iq1Chunk]scalar.FitIQ1

	// Of one tile, row by element:
	x, w1  tileIQ1[float32]
	keys   tileIQ1[int32] // see keysTile
	sorted tileIQ1[int32]
	// and by place in ascending order, with a row of zeros before the sums:
	xs, ws tileIQ1[float32]
	sx, sw [2][(pack.QK + 1) * maxLanes]float32 // sums of w*x and w over the elements before the cut, of IQ1_M by group

	// The terms of a and b, by first and by second cut: see scanIQ1_S and scanIQ1_M.
	first, second [99 * maxLanes]float32
	consts        [4 * maxLanes]float32
	tops          [2][(pack.QK + 1) * maxLanes]float32 // the largest fits by first, and by second cut
	large         [maxLanes]float32                    // the largest sum of w*x
	odd           [maxLanes]int32                      // not 0: a weight is negative, or elements are not sorted
	start         [maxLanes]float32
	sure          [maxLanes]int32        // not 0: start is a lower bound
	total         [maxLanes]float32      // of all weights, of IQ1_M
	flags, last   [2][maxLanes]int32     // cuts to try, as bits, and whether the last is one, by first and by second
	cuts          [2][maxLanes]int32     // keys less 1 that elements of the next level are above
	mirrored      [maxLanes]int32        // -1 or 0
	scale         [maxLanes]float32      // of the sub-block
	shift         [2][maxLanes]int32     // by group (IQ1_M) or all the same
	codes, ranks  [4][maxLanes]uint32    // by group
	failed        [maxLanes]bool         // no neighbour has a finite error
	snapped       [maxLanes]int32        // -1 where there is any neighbour
	values        [2][3][maxLanes]uint32 // bits of the values of levels, by shift
	items         [4 * maxLanes]uint16   // groups that need a neighbour
	s             scalar.CutsIQ1_S
	m             scalar.CutsIQ1_M
}

var iq1LanesPool = sync.Pool{New: func() any { return new(iq1Lanes) }}

// importanceWeights sets w to importance*sqrt(mean + x*x).
func importanceWeights(w, x, importance []float32, mean uint32) {
	m := simd.BroadcastUint32s(mean).BitsToFloat32()
	w, importance = w[:len(x)], importance[:len(x)]
	for i, l := 0, m.Len(); i <= len(x)-l; i += l {
		e := simd.LoadFloat32s(x[i : i+l])
		simd.LoadFloat32s(importance[i : i+l]).Mul(m.Add(e.Mul(e)).Sqrt()).Store(w[i : i+l])
	}
}

// load loads the sub-blocks of n elements, and sorts them.
func (l *iq1Lanes) load(x, w []float32, n, width int) {
	tile := n * width
	lane.Load(l.x[:tile], x, n, width)
	lane.Load(l.w1[:tile], w, n, width)
	keysTile(l.keys[:tile], l.sorted[:tile], l.x[:tile], n)
	if n == 16 {
		sortKeys(l.sorted[:], network16, width)
	} else {
		sortKeys(l.sorted[:], network32, width)
	}
	clearUpper()
	if len(x) < tile {
		clear(l.xs[:tile])
		clear(l.ws[:tile])
	}
	for k := 0; k < len(x)/n; k++ {
		x, w := x[k*n:][:n], w[k*n:][:n]
		for o := k; o < tile; o += width {
			i := int(l.sorted[o]) & (n - 1)
			l.xs[o], l.ws[o] = x[i], w[i]
		}
	}
}

// keysTile sets keys, and again, to integers in the order of x, whose low bits are the number of the row: of n rows.
func keysTile(keys, again []int32, x []float32, n int) {
	var zero simd.Float32s
	abs, one := simd.BroadcastInt32s(math.MaxInt32), simd.BroadcastInt32s(1)
	mask := simd.BroadcastInt32s(int32(-n))
	var row simd.Int32s
	width := zero.Len()
	keys, again = keys[:len(x)], again[:len(x)]
	for i := 0; i <= len(x)-width; i += width {
		k := simd.LoadFloat32s(x[i : i+width]).Add(zero).ToBits().BitsToInt32()
		k = k.Xor(k.ShiftAllRight(31).And(abs)).And(mask).Or(row)
		k.Store(keys[i : i+width])
		k.Store(again[i : i+width])
		row = row.Add(one)
	}
}

// Batcher's networks, as pairs of rows.
var network16, network32 = network(16), network(32)

func network(n int) (pairs [][2]uint8) {
	for p := 1; p < n; p *= 2 {
		for k := p; k >= 1; k /= 2 {
			for j := k % p; j+k < n; j += 2 * k {
				for i := range min(k, n-j-k) {
					if (i+j)/(2*p) == (i+j+k)/(2*p) {
						pairs = append(pairs, [2]uint8{uint8(i + j), uint8(i + j + k)})
					}
				}
			}
		}
	}
	return pairs
}

// sortTile sorts the lanes of the tile.
func sortTile(keys []int32, pairs [][2]uint8, width int) {
	for _, p := range pairs {
		a, b := keys[int(p[0])*width:], keys[int(p[1])*width:]
		v, w := simd.LoadInt32s(a), simd.LoadInt32s(b)
		v.Min(w).Store(a)
		v.Max(w).Store(b)
	}
}

// sumsIQ1_S sets sx and sw, large and odd.
func sumsIQ1_S(l *iq1Lanes) {
	var zero, sx, sw, large simd.Float32s
	width := zero.Len()
	n := pack.QK * width
	xs, ws, sxs, sws := l.xs[:n], l.ws[:n], l.sx[0][:n+width], l.sw[0][:n+width]
	zero.Store(sxs)
	zero.Store(sws)
	before := simd.LoadFloat32s(xs)
	odd := before.Less(before)
	for i := 0; i <= n-width; i += width {
		x, w := simd.LoadFloat32s(xs[i:i+width]), simd.LoadFloat32s(ws[i:i+width])
		odd = odd.Or(x.Less(before)).Or(w.Less(zero))
		before = x
		sx, sw = sx.Add(w.Mul(x)), sw.Add(w)
		large = large.Max(sx.Abs())
		sx.Store(sxs[i+width : i+2*width])
		sw.Store(sws[i+width : i+2*width])
	}
	odd.ToInt32s().Store(l.odd[:])
	large.Store(l.large[:])
}

// float bits
const (
	bits1_125    = 0x3F900000
	bits1_265625 = 0x3FA20000
	bits0_765625 = 0x3F440000
	bits1_25     = 0x3FA00000
	bits0_75     = 0x3F400000
	bits0_875    = 0x3F600000
	bits0_25     = 0x3E800000
)

func splatBits(b uint32) simd.Float32s { return simd.BroadcastUint32s(b).BitsToFloat32() }

// tablesIQ1_S sets first, second and consts.
func tablesIQ1_S(l *iq1Lanes) {
	width := (simd.Float32s{}).Len()
	n := pack.QK * width
	sxs, sws := l.sx[0][:n+width], l.sw[0][:n+width]
	all, total := simd.LoadFloat32s(sxs[n:]), simd.LoadFloat32s(sws[n:])
	a := all.Mul(splatBits(bits1_125))
	b0, b1 := total.Mul(splatBits(bits1_265625)), total.Mul(splatBits(bits0_765625))
	c75, c125 := splatBits(bits0_75), splatBits(bits1_25)
	all.Mul(splatBits(bits0_25)).Store(l.consts[:])
	for i, o := 0, 0; i <= n; i, o = i+width, o+3*width {
		x, w := simd.LoadFloat32s(sxs[i:i+width]), simd.LoadFloat32s(sws[i:i+width])
		w0, w1 := w.Mul(c75), w.Mul(c125)
		f, s := l.first[o:o+3*width], l.second[o:o+3*width]
		a.Sub(x).Store(f[:width])
		b0.Add(w0).Store(f[width : 2*width])
		b1.Add(w1).Store(f[2*width : 3*width])
		x.Store(s[:width])
		w1.Store(s[width : 2*width])
		w0.Store(s[2*width : 3*width])
	}
}

// scanIQ1_S sets tops to the largest a*a/b by first cut.
func scanIQ1_S(l *iq1Lanes) {
	var zero simd.Float32s
	width := zero.Len()
	shifted := simd.LoadFloat32s(l.consts[:])
	n := 3 * (pack.QK + 1) * width
	firsts, seconds, tops, ends := l.first[:n], l.second[:n:n], l.tops[0][:], l.tops[1][:n/3:n/3]
	for i := 0; i <= len(ends)-width; i += width {
		zero.Store(ends[i : i+width])
	}
	for len(firsts) >= 3*width {
		c, e0, e1 := simd.LoadFloat32s(firsts[:width]), simd.LoadFloat32s(firsts[width:2*width]),
			simd.LoadFloat32s(firsts[2*width:3*width])
		var top simd.Float32s
		for s, t := seconds, ends; len(s) >= 3*width; s, t = s[3*width:], t[width:] {
			a := c.Sub(simd.LoadFloat32s(s[:width]))
			a1 := a.Sub(shifted)
			b0, b1 := e0.Sub(simd.LoadFloat32s(s[width:2*width])), e1.Sub(simd.LoadFloat32s(s[2*width:3*width]))
			m := a.Mul(a).Div(b0).Max(a1.Mul(a1).Div(b1))
			top = top.Max(m)
			simd.LoadFloat32s(t[:width]).Max(m).Store(t[:width])
		}
		top.Store(tops)
		firsts, seconds, tops, ends = firsts[3*width:], seconds[3*width:], tops[width:], ends[width:]
	}
}

// boundsIQ1 sets start, sure, flags and last.
func boundsIQ1(l *iq1Lanes, n int, total []float32, factor uint32) {
	var top simd.Float32s
	width := top.Len()
	tops := l.tops[0][:(n+1)*width]
	for i := 0; i <= len(tops)-width; i += width {
		top = top.Max(simd.LoadFloat32s(tops[i : i+width]))
	}
	less := splatBits(0x3F7FC000) // 1 - 2^-10
	start := top.Mul(less)
	start.Store(l.start[:])
	w := simd.LoadFloat32s(total)
	p := start.Mul(w)
	large := simd.LoadFloat32s(l.large[:])
	var zero simd.Int32s
	sure := simd.LoadInt32s(l.odd[:]).Equal(zero).And(large.Mul(large).LessEqual(p.Mul(splatBits(factor))))
	low, high := splatBits(0x17800000), splatBits(0x67800000) // 2^-80, 2^80
	sure = sure.And(start.Greater(low)).And(start.Less(high)).And(w.Greater(low)).And(w.Less(high))
	sure = sure.And(p.Greater(splatBits(0x0D800000))).And(p.Less(splatBits(0x5D800000))) // 2^-100, 2^60
	sure.ToInt32s().Store(l.sure[:])
	limit := start.Mul(less)
	for j := range l.tops {
		tops := l.tops[j][:(n+1)*width]
		simd.LoadFloat32s(tops[n*width:]).GreaterEqual(limit).ToInt32s().Store(l.last[j][:])
		var flags simd.Int32s
		for i := (n - 1) * width; i >= 0; i -= width {
			flags = flags.Add(flags).Sub(simd.LoadFloat32s(tops[i : i+width]).GreaterEqual(limit).ToInt32s())
		}
		flags.Store(l.flags[j][:])
	}
}

// sumsIQ1_M sets sx and sw, large and odd.
func sumsIQ1_M(l *iq1Lanes) {
	var zero, x0, x1, w0, w1, large simd.Float32s
	width := zero.Len()
	n := 16 * width
	xs, ws, keys := l.xs[:n], l.ws[:n], l.sorted[:n]
	sx0, sx1, sw0, sw1 := l.sx[0][:n+width], l.sx[1][:n+width], l.sw[0][:n+width], l.sw[1][:n+width]
	zero.Store(sx0)
	zero.Store(sx1)
	zero.Store(sw0)
	zero.Store(sw1)
	before := simd.LoadFloat32s(xs)
	odd := before.Less(before)
	group := simd.BroadcastInt32s(8)
	for i := 0; i <= n-width; i += width {
		x, w := simd.LoadFloat32s(xs[i:i+width]), simd.LoadFloat32s(ws[i:i+width])
		odd = odd.Or(x.Less(before)).Or(w.Less(zero))
		before = x
		second := simd.LoadInt32s(keys[i : i+width]).And(group).Equal(group)
		wx := w.Mul(x)
		x0, x1 = x0.Add(zero.IfElse(second, wx)), x1.Add(wx.Masked(second))
		w0, w1 = w0.Add(zero.IfElse(second, w)), w1.Add(w.Masked(second))
		large = large.Max(x0.Abs()).Max(x1.Abs())
		x0.Store(sx0[i+width : i+2*width])
		x1.Store(sx1[i+width : i+2*width])
		w0.Store(sw0[i+width : i+2*width])
		w1.Store(sw1[i+width : i+2*width])
	}
	odd.ToInt32s().Store(l.odd[:])
	large.Store(l.large[:])
	w0.Add(w1).Store(l.total[:])
}

// tablesIQ1_M sets first, second and consts.
func tablesIQ1_M(l *iq1Lanes) {
	width := (simd.Float32s{}).Len()
	n := 16 * width
	sx0, sx1, sw0, sw1 := l.sx[0][:n+width], l.sx[1][:n+width], l.sw[0][:n+width], l.sw[1][:n+width]
	x0, x1, w0, w1 := simd.LoadFloat32s(sx0[n:]), simd.LoadFloat32s(sx1[n:]), simd.LoadFloat32s(sw0[n:]),
		simd.LoadFloat32s(sw1[n:])
	up, down := splatBits(bits1_125), splatBits(bits0_875)
	x0.Mul(up).Add(x1.Mul(up)).Store(l.consts[:])
	x0.Mul(up).Add(x1.Mul(down)).Store(l.consts[width:])
	x0.Mul(down).Add(x1.Mul(up)).Store(l.consts[2*width:])
	x0.Mul(down).Add(x1.Mul(down)).Store(l.consts[3*width:])
	b00, b01 := w0.Mul(splatBits(bits1_265625)), w0.Mul(splatBits(bits0_765625))
	b10, b11 := w1.Mul(splatBits(bits1_265625)), w1.Mul(splatBits(bits0_765625))
	c75, c125 := splatBits(bits0_75), splatBits(bits1_25)
	for i, o := 0, 0; i <= n; i, o = i+width, o+5*width {
		x := simd.LoadFloat32s(sx0[i : i+width]).Add(simd.LoadFloat32s(sx1[i : i+width]))
		v0, v1 := simd.LoadFloat32s(sw0[i:i+width]), simd.LoadFloat32s(sw1[i:i+width])
		s0, l0, s1, l1 := v0.Mul(c75), v0.Mul(c125), v1.Mul(c75), v1.Mul(c125)
		f, s := l.first[o:o+5*width], l.second[o:o+5*width]
		x.Store(f[:width])
		b00.Add(s0).Add(b10.Add(s1)).Store(f[width : 2*width])
		b00.Add(s0).Add(b11.Add(l1)).Store(f[2*width : 3*width])
		b01.Add(l0).Add(b10.Add(s1)).Store(f[3*width : 4*width])
		b01.Add(l0).Add(b11.Add(l1)).Store(f[4*width : 5*width])
		x.Store(s[:width])
		l0.Add(l1).Store(s[width : 2*width])
		l0.Add(s1).Store(s[2*width : 3*width])
		s0.Add(l1).Store(s[3*width : 4*width])
		s0.Add(s1).Store(s[4*width : 5*width])
	}
}

// scanIQ1_M sets tops to the largest a*a/b by first cut.
func scanIQ1_M(l *iq1Lanes) {
	var zero simd.Float32s
	width := zero.Len()
	consts := l.consts[:4*width]
	k0, k1, k2, k3 := simd.LoadFloat32s(consts[:width]), simd.LoadFloat32s(consts[width:2*width]),
		simd.LoadFloat32s(consts[2*width:3*width]), simd.LoadFloat32s(consts[3*width:])
	n := 5 * 17 * width
	firsts, seconds, tops, ends := l.first[:n], l.second[:n:n], l.tops[0][:], l.tops[1][:n/5:n/5]
	for i := 0; i <= len(ends)-width; i += width {
		zero.Store(ends[i : i+width])
	}
	for len(firsts) >= 5*width {
		x := simd.LoadFloat32s(firsts[:width])
		e0, e1, e2, e3 := simd.LoadFloat32s(firsts[width:2*width]), simd.LoadFloat32s(firsts[2*width:3*width]),
			simd.LoadFloat32s(firsts[3*width:4*width]), simd.LoadFloat32s(firsts[4*width:5*width])
		var top simd.Float32s
		for s, t := seconds, ends; len(s) >= 5*width; s, t = s[5*width:], t[width:] {
			v := x.Add(simd.LoadFloat32s(s[:width]))
			a0, a1, a2, a3 := k0.Sub(v), k1.Sub(v), k2.Sub(v), k3.Sub(v)
			m := a0.Mul(a0).Div(e0.Sub(simd.LoadFloat32s(s[width : 2*width])))
			m = m.Max(a1.Mul(a1).Div(e1.Sub(simd.LoadFloat32s(s[2*width : 3*width]))))
			m = m.Max(a2.Mul(a2).Div(e2.Sub(simd.LoadFloat32s(s[3*width : 4*width]))))
			m = m.Max(a3.Mul(a3).Div(e3.Sub(simd.LoadFloat32s(s[4*width : 5*width]))))
			top = top.Max(m)
			simd.LoadFloat32s(t[:width]).Max(m).Store(t[:width])
		}
		top.Store(tops)
		firsts, seconds, tops, ends = firsts[5*width:], seconds[5*width:], tops[width:], ends[width:]
	}
}

// bestIQ1_S returns the result of the search of lane k, which is sure. It is not ok if it is in doubt.
func (l *iq1Lanes) bestIQ1_S(k, width int) (f scalar.CutFit, ok bool) {
	c := &l.s
	rows, columns := l.cutsToTry(k, pack.QK)
	for m := rows | columns | 1<<pack.QK; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		c.Sx[i], c.Sw[i] = l.sx[0][i*width+k], l.sw[0][i*width+k]
	}
	c.Tables(columns)
	f = scalar.FitFrom(l.start[k])
	for ; rows != 0; rows &= rows - 1 {
		c.Row(&f, bits.TrailingZeros64(rows), columns)
	}
	return f, !f.Bounded && !f.Doubtful
}

func (l *iq1Lanes) bestIQ1_M(k, width int) (f scalar.CutFit, ok bool) {
	c := &l.m
	rows, columns := l.cutsToTry(k, 16)
	for m := rows | columns | 1<<16; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		for h := range 2 {
			c.Sx[h][i], c.Sw[h][i] = l.sx[h][i*width+k], l.sw[h][i*width+k]
		}
	}
	c.Tables(rows | columns)
	f = scalar.FitFrom(l.start[k])
	for ; rows != 0; rows &= rows - 1 {
		c.Row(&f, bits.TrailingZeros64(rows), columns)
	}
	return f, !f.Bounded && !f.Doubtful
}

// cutsToTry returns the first and second cuts that fits as good as start have, as bits.
func (l *iq1Lanes) cutsToTry(k, n int) (rows, columns uint64) {
	rows = uint64(uint32(l.flags[0][k])) | uint64(-l.last[0][k])<<n
	columns = uint64(uint32(l.flags[1][k])) | uint64(-l.last[1][k])<<n
	return rows, columns
}

// keep stores the facts about the cuts of lane k that the rest of the fit needs.
func (l *iq1Lanes) keep(k int, f *scalar.CutFit, n, kinds, width int) {
	scale, kind, mirrored := f.Upright(kinds)
	l.scale[k] = scale
	l.mirrored[k] = 0
	if mirrored {
		l.mirrored[k] = -1
	}
	for i, cut := range [2]int{f.Cut1, f.Cut2} {
		l.cuts[i][k] = math.MaxInt32
		if cut < n {
			l.cuts[i][k] = l.sorted[cut*width+k] - 1
		}
	}
	if kinds == 2 {
		kind *= 3
	}
	l.shift[0][k], l.shift[1][k] = -int32(kind>>1), -int32(kind&1)
}

func (l *iq1Lanes) fitIQ1_S(x, w []float32, sub, width int) {
	const n = pack.QK
	l.load(x, w, n, width)
	sumsIQ1_S(l)
	tablesIQ1_S(l)
	cutsIQ1_S(l)
	boundsIQ1(l, n, l.sw[0][n*width:], 0x41800000)
	lanes := len(x) / n
	clearUpper()
	var open uint32 // lanes that are not done
	for k := range lanes {
		fit, j := &l.fits[(sub+k)/8], (sub+k)%8
		codes := fit.Codes[4*j:][:4]
		if max(arith.Abs(l.xs[k]), arith.Abs(l.xs[(n-1)*width+k])) < scalar.LimitIQ1_S {
			clear(codes)
			fit.Scales[j], fit.Shifts[j] = 0, 0
			continue
		}
		if l.sure[k] != 0 {
			if f, ok := l.bestIQ1_S(k, width); ok {
				l.keep(k, &f, n, 2, width)
				open |= 1 << k
				continue
			}
		}
		fit.Scales[j], fit.Shifts[j] = scalar.SearchIQ1_S(x[n*k:][:n], w[n*k:][:n], codes)
	}
	l.finish(x, w, 4, width, open)
	for k := range lanes {
		if open>>k&1 == 0 {
			continue
		}
		fit, j := &l.fits[(sub+k)/8], (sub+k)%8
		codes := fit.Codes[4*j:][:4]
		if l.failed[k] {
			fit.Scales[j], fit.Shifts[j] = scalar.SearchIQ1_S(x[n*k:][:n], w[n*k:][:n], codes)
			continue
		}
		fit.Scales[j], fit.Shifts[j] = l.scale[k], uint8(-l.shift[0][k])
		for g := range codes {
			codes[g] = uint16(l.codes[g][k])
		}
	}
}

func (l *iq1Lanes) fitIQ1_M(x, w []float32, sub, width int) {
	const n = 16
	l.load(x, w, n, width)
	sumsIQ1_M(l)
	tablesIQ1_M(l)
	cutsIQ1_M(l)
	boundsIQ1(l, n, l.total[:], 0x40800000)
	lanes := len(x) / n
	clearUpper()
	var open uint32 // lanes that are not done
	for k := range lanes {
		fit, j := &l.fits[(sub+k)/16], (sub+k)%16
		codes, shifts := fit.Codes[2*j:][:2], fit.Shifts[2*j:][:2]
		if max(arith.Abs(l.xs[k]), arith.Abs(l.xs[(n-1)*width+k])) < scalar.LimitIQ1_M {
			clear(codes)
			clear(shifts)
			fit.Scales[j] = 0
			continue
		}
		if l.sure[k] != 0 {
			if f, ok := l.bestIQ1_M(k, width); ok {
				l.keep(k, &f, n, 4, width)
				open |= 1 << k
				continue
			}
		}
		fit.Scales[j] = scalar.SearchIQ1_M(x[n*k:][:n], w[n*k:][:n], codes, shifts)
	}
	l.finish(x, w, 2, width, open)
	for k := range lanes {
		if open>>k&1 == 0 {
			continue
		}
		fit, j := &l.fits[(sub+k)/16], (sub+k)%16
		codes, shifts := fit.Codes[2*j:][:2], fit.Shifts[2*j:][:2]
		if l.failed[k] {
			fit.Scales[j] = scalar.SearchIQ1_M(x[n*k:][:n], w[n*k:][:n], codes, shifts)
			continue
		}
		fit.Scales[j] = l.scale[k]
		for g := range codes {
			codes[g], shifts[g] = uint16(l.codes[g][k]), uint8(-l.shift[g][k])
		}
	}
}

// finish turns cuts into codes, replaces those that are no points by neighbours, and then fits the scale again.
func (l *iq1Lanes) finish(x, w []float32, groups, width int, open uint32) {
	l.failed = [maxLanes]bool{}
	codesIQ1(l, groups)
	clearUpper()
	spans := l.lists.spans
	items := 0
	for g := range groups {
		for k := range len(x) / (8 * groups) {
			if open>>k&1 == 0 {
				l.snapped[k] = 0
				continue
			}
			if g == 0 {
				l.snapped[k] = 0
			}
			l.items[items&(len(l.items)-1)] = uint16(g<<8 | k)
			if spans[l.ranks[g][k]].n > 0 {
				items++
				l.snapped[k] = -1
			}
		}
	}
	if items == 0 {
		return
	}
	valuesIQ1(l)
	l.neighbours(l.items[:items], x, w, groups)
	refitIQ1(l, groups)
	clearUpper()
}

// codesIQ1 sets codes and ranks from keys and cuts.
func codesIQ1(l *iq1Lanes, groups int) {
	var zero simd.Int32s
	width := zero.Len()
	c1, c2, mirrored := simd.LoadInt32s(l.cuts[0][:]), simd.LoadInt32s(l.cuts[1][:]),
		simd.LoadInt32s(l.mirrored[:]).Less(zero)
	twos, most := simd.BroadcastInt32s(0xAAAA), simd.BroadcastInt32s(6560)
	for g := range groups {
		keys := l.keys[8*g*width:][:8*width]
		var code, rank simd.Int32s
		for i := 7 * width; i >= 0; i -= width {
			k := simd.LoadInt32s(keys[i : i+width])
			level := k.Greater(c1).ToInt32s().Add(k.Greater(c2).ToInt32s())
			code = code.ShiftAllLeft(2).Sub(level)
			rank = rank.Add(rank).Add(rank).Sub(level)
		}
		twos.Sub(code).IfElse(mirrored, code).ToBits().Store(l.codes[g][:])
		most.Sub(rank).IfElse(mirrored, rank).ToBits().Store(l.ranks[g][:])
	}
}

// valuesIQ1 sets values.
func valuesIQ1(l *iq1Lanes) {
	scale := simd.LoadFloat32s(l.scale[:])
	for s := range 2 {
		for q := range 3 {
			scale.Mul(splatBits(valueBitsIQ1[s][q])).ToBits().Store(l.values[s][q][:])
		}
	}
}

// valueBitsIQ1 are the bits of scalar.ValuesIQ1.
var valueBitsIQ1 = func() (b [2][3]uint32) {
	for s, values := range scalar.ValuesIQ1 {
		for q, v := range values {
			b[s][q] = math.Float32bits(v)
		}
	}
	return b
}()

// refitIQ1 is scalar.RefitIQ1 for the lanes that are snapped.
func refitIQ1(l *iq1Lanes, groups int) {
	var a, b, zero simd.Float32s
	var none simd.Int32s
	width := zero.Len()
	three := simd.BroadcastUint32s(3)
	up, down := splatBits(bits0_875), splatBits(bits1_125)
	for g := range groups {
		first := down.IfElse(simd.LoadInt32s(l.shift[g&(groups/2&1)][:]).Less(none), up)
		code := simd.LoadUint32s(l.codes[g][:])
		xs, ws := l.x[8*g*width:][:8*width], l.w1[8*g*width:][:8*width]
		for i := 0; i <= 7*width; i += width {
			q := code.And(three).BitsToInt32().ConvertToFloat32().Sub(first)
			code = code.ShiftAllRight(2)
			wq := simd.LoadFloat32s(ws[i : i+width]).Mul(q)
			a, b = a.Add(wq.Mul(simd.LoadFloat32s(xs[i:i+width]))), b.Add(wq.Mul(q))
		}
	}
	scale := simd.LoadFloat32s(l.scale[:])
	fit := simd.LoadInt32s(l.snapped[:]).Less(none).And(a.Greater(zero)).And(b.Greater(zero))
	a.Div(b).IfElse(fit, scale).Store(l.scale[:])
}

// neighbours sets the codes of the items to neighbours, and failed where one had no finite error.
func (l *iq1Lanes) neighbours(items []uint16, x, w []float32, groups int) {
	byTable := neighboursIQ1(l, items, x, w, groups)
	clearUpper()
	if byTable {
		return
	}
	cb := &codebook.IQ1
	for _, item := range items {
		g, k := int(item>>8), int(item&(maxLanes-1))
		at := 8 * (groups*k + g)
		shift := -l.shift[g&(groups/2&1)][k] & 1
		var values [3]float32
		for q := range values {
			values[q] = math.Float32frombits(l.values[shift][q][k])
		}
		var c codebook.Costs
		c.Set(x[at:][:8], w[at:][:8], values[:])
		code, ok := cb.Nearest(cb.List(uint16(l.codes[g][k])), &c)
		if !ok {
			l.failed[k] = true
		}
		l.codes[g][k] = uint32(code)
	}
}
