package scalar

import (
	"encoding/binary"
	"math/bits"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ1_S: superblock of 256 elements, 8 sub-blocks of 4 groups of 8, in 50 bytes,
// 1.5625 bpw.
//
//	 0  2  d   float16, scale of the scale codes
//	 2 32  qs  byte g: low 8 bits of the index of group g in codebook.GridIQ1
//	34 16  qh  a sub-block takes a uint16: high 3 bits of the indices of its groups
//	           from bit 0, scale code in bits 12-14, shift in bit 15
//
// x = d*(2*scale + 1)*value, the value of the level being moved by the shift. The
// weights are importance*sqrt(twice the mean square of the superblock + x*x). The
// elements of a sub-block are sorted and cut in three, each part getting a level:
// all cuts and both shifts are tried. Levels that form no point of the codebook
// then move to a near one. Scales are coded against the largest; d is stored
// 12.5% larger than that. There is no search without importance.
const BytesIQ1_S = 50

func QuantizeIQ1_S(dst []byte, src, importance []float32) {
	var fit FitIQ1
	var w [pack.QK]float32
	codebook.IQ1.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x := src[off:][:pack.QK_K:pack.QK_K]
		s := float32(float32(2*arith.SumSquares(x)) / pack.QK_K)
		for j := range 8 {
			sub := x[pack.QK*j:][:pack.QK]
			arith.ImportanceWeights(w[:], sub, importance[off+pack.QK*j:][:pack.QK], s)
			fit.Scales[j], fit.Shifts[j] = SearchIQ1_S(sub, w[:], fit.Codes[4*j:][:4])
		}
		fit.PutIQ1_S(dst[:BytesIQ1_S:BytesIQ1_S])
		dst = dst[BytesIQ1_S:]
	}
}

// PutIQ1_S writes the block. The lists of the codebook must be loaded.
func (fit *FitIQ1) PutIQ1_S(b []byte) {
	cb := &codebook.IQ1
	scales := fit.Scales[:8]
	clear(b)
	m := codebook.Max(scales)
	d := m / 15
	pack.PutF16(b, d*1.125)
	id := 1 / d
	for j, s := range scales {
		// Without any scale, indices are stored anyway.
		var word uint16
		if m != 0 {
			word = uint16(codebook.ScaleCode(7, id, s))<<12 | uint16(fit.Shifts[j])<<15
		}
		for g := range 4 {
			i := cb.Point(fit.Codes[4*j+g])
			b[2+4*j+g] = uint8(i)
			word |= uint16(i>>8) << (3 * g)
		}
		binary.LittleEndian.PutUint16(b[34+2*j:], word)
	}
}

// SearchIQ1_S sets codes to those of the 4 groups of the sub-block x, and returns
// its scale and shift. If there is no fit all are 0.
func SearchIQ1_S(x, w []float32, codes []uint16) (scale float32, shift uint8) {
	clear(codes)
	if arith.Abs(arith.Largest(x)) < LimitIQ1_S {
		return 0, 0
	}
	var order [pack.QK]uint8
	var c CutsIQ1_S
	sortOrder(order[:], x)
	for k, i := range order {
		c.Sx[k+1] = c.Sx[k] + float32(w[i]*x[i])
		c.Sw[k+1] = c.Sw[k] + w[i]
	}
	const all = 1<<(pack.QK+1) - 1
	c.Tables(all)
	f := NoCuts
	for i1 := range pack.QK + 1 {
		c.Row(&f, i1, all)
	}
	if f.Cut1 < 0 {
		return 0, 0
	}
	scale, kind, mirrored := f.Upright(2)
	shift = uint8(kind)
	levelCodes(codes, order[:], f.Cut1, f.Cut2, mirrored)
	shifts := [4]uint8{shift, shift, shift, shift}
	return SnapIQ1(codes, x, w, scale, shifts[:]), shift
}

// LimitIQ1_S: sub-blocks whose largest element is smaller get scale 0.
const LimitIQ1_S = 1e-12

// CutsIQ1_S are the tables of the search for cuts, by cut.
type CutsIQ1_S struct {
	Sx, Sw [pack.QK + 1]float32 // sums of w*x and w over the elements before the cut
	// By shift: the terms in a and b of the part after the cut.
	A2, B2 [2][pack.QK + 1]float32
}

// Tables sets A2 and B2 for the cuts that are bits of cuts.
func (c *CutsIQ1_S) Tables(cuts uint64) {
	for ; cuts != 0; cuts &= cuts - 1 {
		i := bits.TrailingZeros64(cuts)
		x, w := c.Sx[pack.QK]-c.Sx[i], c.Sw[pack.QK]-c.Sw[i]
		for s := range ValuesIQ1 {
			q := ValuesIQ1[s][2]
			c.A2[s][i] = float32(x * q)
			c.B2[s][i] = float32(float32(w*q) * q)
		}
	}
}

// Row tries the second cuts that are bits of cuts for the first cut i1. The terms of the first part in a and b depend
// on i1 only. The middle level is 1/8 or its negative, which differ in the sign of one term.
func (c *CutsIQ1_S) Row(f *CutFit, i1 int, cuts uint64) {
	x0, w0 := c.Sx[i1]-c.Sx[0], c.Sw[i1]-c.Sw[0]
	var a0, b0 [2]float32
	for s := range ValuesIQ1 {
		q := ValuesIQ1[s][0]
		a0[s], b0[s] = float32(x0*q), float32(float32(w0*q)*q)
	}
	for cuts = cuts >> i1 << i1; cuts != 0; cuts &= cuts - 1 {
		i2 := bits.TrailingZeros64(cuts)
		const q = 0.125
		x1 := float32((c.Sx[i2] - c.Sx[i1]) * q)
		w1 := float32(float32((c.Sw[i2]-c.Sw[i1])*q) * q)
		if a, b := a0[0]+x1+c.A2[0][i2], b0[0]+w1+c.B2[0][i2]; b > 0 && a*a > f.Best*b {
			f.take(a, b, i1, i2, 0)
		}
		if a, b := a0[1]-x1+c.A2[1][i2], b0[1]+w1+c.B2[1][i2]; b > 0 && a*a > f.Best*b {
			f.take(a, b, i1, i2, 1)
		}
	}
}

func DequantizeIQ1_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ1_S:BytesIQ1_S]
		dst, src = dst[pack.QK_K:], src[BytesIQ1_S:]
		d := pack.F16(b)
		for j := range 8 {
			word := binary.LittleEndian.Uint16(b[34+2*j:])
			ds := d * float32(2*(word>>12&7)+1)
			for g, q := range b[2+4*j:][:4] {
				i := uint(q) | uint(word)>>(3*g)&7<<8
				decodeIQ1(y[32*j+8*g:], ds, codebook.GridIQ1[i], uint8(word>>15))
			}
		}
	}
}
