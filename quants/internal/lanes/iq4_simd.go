//go:build goexperiment.simd && go1.27

package lanes

import (
	"encoding/binary"
	"simd"

	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// IQ4_NL and IQ4_XS on tiles of sub-blocks of 32. Replaces their encoders, with and
// without importance.
//
// There is no table lookup across lanes in package simd. The nearest entry is found
// by 15 comparisons with the middles, in ascending order, each of which selects the
// next entry: 30 operations. The scales of candidates 2 to 16 lie within 6% of each
// other, and no element meets more than one middle on the way from the smallest to the
// largest of them. Hence that middle and the entries below and above it are found once
// per element, for the largest product, and a candidate takes one comparison and one
// selection, next to a multiplication and 6 operations for the sums.
//
// MB/s of float32 input on one core of a Zen 3 EPYC, go1.27.4, rows of 4096, best of
// several runs, all four cases alike: scalar 57, simd-128 250, simd-256 475 to 530.
//
// Tried and lost: 15 comparisons for every candidate (a third of the speed).

// iq4Steps turn the comparisons into a table lookup: below middle i the entries up to i remain, from it on entry i+1 is
// nearer.
var iq4Steps = func() (steps [15]struct {
	middle, value row
	index         [lane.MaxWidth]int32
}) {
	for i := range steps {
		steps[i].middle, steps[i].value = splat(scalar.MiddlesIQ4[i]), splat(codebook.ValuesIQ4[i+1])
		for j := range steps[i].index {
			steps[i].index[j] = int32(i + 1)
		}
	}
	return steps
}()

var iq4Const = struct {
	lowest, one, eps row
	numerators       [15]row // of candidates -7..7
}{
	lowest: splat(codebook.ValuesIQ4[0]), one: splat(1), eps: splat(search.GroupMaxEps),
	numerators: func() (n [15]row) {
		for i := range n {
			n[i] = splat(float32(i-7) + codebook.ValuesIQ4[0])
		}
		return n
	}(),
}

// fitIQ4Tile is scalar.fitIQ4 on a tile x with weights w; it stores one scale per lane.
// middle, below and above are scratch. All but scales have one length.
func fitIQ4Tile(x, w, middle, below, above, scales []float32) {
	var zero simd.Float32s
	c := &iq4Const
	m := largestTile(x)
	a0, b0 := firstIQ4Tile(simd.LoadFloat32s(c.one[:]).Div(m.Neg().Div(simd.LoadFloat32s(c.lowest[:]))), x, w)
	d := a0.Div(b0).Masked(b0.Greater(zero))
	best := d.Mul(a0)
	last := len(c.numerators) - 1
	s0, s1 := simd.LoadFloat32s(c.numerators[0][:]).Div(m), simd.LoadFloat32s(c.numerators[last][:]).Div(m)
	nearIQ4Tile(s0, s1, x, middle, below, above)
	for k := 0; k <= last; k += 2 {
		// The number of candidates is odd: the last is tried twice. With a*a > best*b
		// once more, it wins over itself and gives the same scale.
		s0, s1 = simd.LoadFloat32s(c.numerators[k][:]).Div(m), simd.LoadFloat32s(c.numerators[min(k+1, last)][:]).Div(m)
		a0, b0, a1, b1 := sumsIQ4Tile(s0, s1, x, w, middle, below, above)

		win := b0.Greater(zero).And(a0.Mul(a0).Greater(best.Mul(b0)))
		d1 := a0.Div(b0)
		d, best = d1.IfElse(win, d), d1.Mul(a0).IfElse(win, best)

		win = b1.Greater(zero).And(a1.Mul(a1).Greater(best.Mul(b1)))
		d1 = a1.Div(b1)
		d, best = d1.IfElse(win, d), d1.Mul(a1).IfElse(win, best)
	}
	flat := m.Abs().Less(simd.LoadFloat32s(c.eps[:]))
	zero.IfElse(flat, d).Store(scales)
}

// firstIQ4Tile is scalar.sumsIQ4. The number of rows is even.
//
//go:noinline
func firstIQ4Tile(id simd.Float32s, x, w []float32) (a, b simd.Float32s) {
	w = w[:len(x)]
	width := id.Len()
	lowest := simd.LoadFloat32s(iq4Const.lowest[:])
	for i := 0; i <= len(x)-2*width; i += 2 * width {
		v0, v1 := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(x[i+width:i+2*width])
		t0, t1 := id.Mul(v0), id.Mul(v1)
		q0, q1 := lowest, lowest
		for k := range iq4Steps {
			step := &iq4Steps[k]
			middle, value := simd.LoadFloat32s(step.middle[:]), simd.LoadFloat32s(step.value[:])
			q0 = q0.IfElse(t0.Less(middle), value)
			q1 = q1.IfElse(t1.Less(middle), value)
		}
		wq := simd.LoadFloat32s(w[i : i+width]).Mul(q0)
		a, b = a.Add(wq.Mul(v0)), b.Add(wq.Mul(q0))
		wq = simd.LoadFloat32s(w[i+width : i+2*width]).Mul(q1)
		a, b = a.Add(wq.Mul(v1)), b.Add(wq.Mul(q1))
	}
	return a, b
}

// nearIQ4Tile finds, for scales between s0 and s1, the only middle that products with
// x can meet, and the table entries below and above it. Rounding is monotonic, so all
// products lie between those with s0 and s1. Where no middle is met, the one below
// the larger product will do, and for the lowest entry an infinite one. The number of
// rows is even.
//
//go:noinline
func nearIQ4Tile(s0, s1 simd.Float32s, x, middle, below, above []float32) {
	middle, below, above = middle[:len(x)], below[:len(x)], above[:len(x)]
	width := s0.Len()
	lowest := simd.LoadFloat32s(iq4Const.lowest[:])
	infinite := simd.BroadcastUint32s(0x7F800000).BitsToFloat32()
	for i := 0; i <= len(x)-2*width; i += 2 * width {
		v0, v1 := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(x[i+width:i+2*width])
		t0, t1 := s0.Mul(v0).Max(s1.Mul(v0)), s0.Mul(v1).Max(s1.Mul(v1))
		m0, lo0, hi0 := infinite, lowest, lowest
		m1, lo1, hi1 := infinite, lowest, lowest
		for k := range iq4Steps {
			step := &iq4Steps[k]
			m, value := simd.LoadFloat32s(step.middle[:]), simd.LoadFloat32s(step.value[:])
			less0, less1 := t0.Less(m), t1.Less(m)
			m0, m1 = m0.IfElse(less0, m), m1.IfElse(less1, m)
			lo0, lo1 = lo0.IfElse(less0, hi0), lo1.IfElse(less1, hi1)
			hi0, hi1 = hi0.IfElse(less0, value), hi1.IfElse(less1, value)
		}
		m0.Store(middle[i : i+width])
		m1.Store(middle[i+width : i+2*width])
		lo0.Store(below[i : i+width])
		lo1.Store(below[i+width : i+2*width])
		hi0.Store(above[i : i+width])
		hi1.Store(above[i+width : i+2*width])
	}
}

// sumsIQ4Tile returns the results of scalar.sumsIQ4 for s0 and for s1.
//
//go:noinline
func sumsIQ4Tile(s0, s1 simd.Float32s, x, w, middle, below, above []float32) (a0, b0, a1, b1 simd.Float32s) {
	n := len(x)
	x, w, middle, below, above = x[:n:n], w[:n:n], middle[:n:n], below[:n:n], above[:n:n]
	width := s0.Len()
	for i := 0; i <= n-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		less0, less1 := s0.Mul(v).Less(simd.LoadFloat32s(middle[i:i+width])),
			s1.Mul(v).Less(simd.LoadFloat32s(middle[i:i+width]))
		q0, q1 := simd.LoadFloat32s(below[i:i+width]).IfElse(less0, simd.LoadFloat32s(above[i:i+width])),
			simd.LoadFloat32s(below[i:i+width]).IfElse(less1, simd.LoadFloat32s(above[i:i+width]))
		a0, b0, a1, b1 = a0.Add(simd.LoadFloat32s(w[i:i+width]).Mul(q0).Mul(v)),
			b0.Add(simd.LoadFloat32s(w[i:i+width]).Mul(q0).Mul(q0)),
			a1.Add(simd.LoadFloat32s(w[i:i+width]).Mul(q1).Mul(v)),
			b1.Add(simd.LoadFloat32s(w[i:i+width]).Mul(q1).Mul(q1))
	}
	return a0, b0, a1, b1
}

// encodeIQ4Tile stores the indices of the entries nearest to x/d, or to 0 where d is
// 0, four rows in one, the first in the low byte.
func encodeIQ4Tile(x, d []float32, words []uint32) {
	var zero simd.Float32s
	width := zero.Len()
	words = words[:len(x)/4]
	dv := simd.LoadFloat32s(d)
	id := zero.IfElse(dv.Equal(zero), simd.LoadFloat32s(iq4Const.one[:]).Div(dv))
	for i, o := 0, 0; i <= len(x)-4*width; i, o = i+4*width, o+width {
		v0, v1 := simd.LoadFloat32s(x[i:i+width]), simd.LoadFloat32s(x[i+width:i+2*width])
		v2, v3 := simd.LoadFloat32s(x[i+2*width:i+3*width]), simd.LoadFloat32s(x[i+3*width:i+4*width])
		q0, q1, q2, q3 := nearestIQ4Lanes(id.Mul(v0), id.Mul(v1), id.Mul(v2), id.Mul(v3))
		q0.Or(q1.ShiftAllLeft(8)).Or(q2.ShiftAllLeft(16)).Or(q3.ShiftAllLeft(24)).ToBits().Store(words[o : o+width])
	}
}

// nearestIQ4Lanes is scalar.nearestIQ4, of four vectors.
//
//go:noinline
func nearestIQ4Lanes(v0, v1, v2, v3 simd.Float32s) (q0, q1, q2, q3 simd.Int32s) {
	for k := range iq4Steps {
		step := &iq4Steps[k]
		middle, index := simd.LoadFloat32s(step.middle[:]), simd.LoadInt32s(step.index[:])
		q0 = q0.IfElse(v0.Less(middle), index)
		q1 = q1.IfElse(v1.Less(middle), index)
		q2 = q2.IfElse(v2.Less(middle), index)
		q3 = q3.IfElse(v3.Less(middle), index)
	}
	return q0, q1, q2, q3
}

// squareIQ4_NLTile sets square to twice the mean square of every block.
func squareIQ4_NLTile(x, square []float32) {
	var sum simd.Float32s
	width := sum.Len()
	for i := 0; i <= len(x)-width; i += width {
		v := simd.LoadFloat32s(x[i : i+width])
		sum = sum.Add(v.Mul(v))
	}
	const bits = 0x3D800000 // of 2.0/32
	sum.Mul(simd.BroadcastUint32s(bits).BitsToFloat32()).Store(square)
}

func QuantizeIQ4_NL(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := pack.QK * width
	for len(src) > 0 {
		clearUpper()
		n := min(tile, len(src))
		x, w := s.x[:tile], s.w[:tile]
		lane.Load(x, src[:n], pack.QK, width)
		src = src[n:]
		if importance != nil {
			lane.Load(s.imp[:tile], importance[:n], pack.QK, width)
			importance = importance[n:]
			squareIQ4_NLTile(x, s.square[:])
			importanceTile(w, x, s.imp[:tile], s.square[:], s.total[:])
		} else {
			squareTile(w, x)
		}
		fitIQ4Rows(x, w, s.lv[:tile], s.imp[:tile], s.above[:tile], s.scale[:])
		encodeIQ4Tile(x, s.scale[:], s.words[:tile/4])
		lane.Store(s.packed[:n/4], s.words[:tile/4], pack.QK/4, width)
		clearUpper()
		for i := range n / pack.QK {
			pack.PutF16(dst, s.scale[i])
			packBlockWords(dst[2:], s.packed[i*pack.QK/4:])
			dst = dst[scalar.BytesIQ4_NL:]
		}
	}
}

func QuantizeIQ4_XS(dst []byte, src, importance []float32) {
	s := kScratches.Get().(*kScratch)
	defer kScratches.Put(s)
	width := lane.Width()
	tile := pack.QK * width
	for len(src) > 0 {
		nb := min(width, len(src)/pack.QK_K)
		x := src[:nb*pack.QK_K]
		src = src[len(x):]
		if importance != nil {
			s.chunkSquares(x, 8, 1, 2.0/pack.QK_K)
		}
		for off, sub := 0, 0; off < len(x); off, sub = off+tile, sub+width {
			clearUpper()
			end := min(off+tile, len(x))
			xt, w := s.x[off:][:tile], s.w[:tile]
			lane.Load(xt, x[off:end], pack.QK, width)
			if importance != nil {
				lane.Load(s.imp[:tile], importance[off:end], pack.QK, width)
				importanceTile(w, xt, s.imp[:tile], s.square[sub:], s.total[sub:])
			} else {
				squareTile(w, xt)
			}
			fitIQ4Rows(xt, w, s.lv[:tile], s.imp[:tile], s.above[:tile], s.scale[sub:])
		}
		clearUpper()
		if importance != nil {
			importance = importance[len(x):]
		}
		for i := range nb {
			b := dst[i*scalar.BytesIQ4_XS:][:8]
			scales := s.scale[8*i:][:8]
			d := -arith.Largest(scales) / 32
			pack.PutF16(b, d)
			id := arith.Inverse(d)
			var high uint16
			clear(b[4:8])
			for j, v := range scales {
				l := search.LevelSym(32, float32(id*v))
				s.d[8*i+j] = d * float32(l)
				b[4+j/2] |= uint8(l+32) & 15 << (j & 1 * 4)
				high |= uint16(l+32) >> 4 << (2 * j)
			}
			binary.LittleEndian.PutUint16(b[2:], high)
		}
		for off, sub := 0, 0; off < len(x); off, sub = off+tile, sub+width {
			n := min(tile, len(x)-off)
			encodeIQ4Tile(s.x[off:][:tile], s.d[sub:], s.words[:tile/4])
			lane.Store(s.packed[off/4:][:n/4], s.words[:tile/4], pack.QK/4, width)
		}
		for i := range nb {
			for j := range 8 {
				packBlockWords(dst[8+16*j:], s.packed[i*pack.QK_K/4+8*j:])
			}
			dst = dst[scalar.BytesIQ4_XS:]
		}
	}
}
