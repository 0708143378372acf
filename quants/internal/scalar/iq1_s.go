package scalar

import (
	"encoding/binary"

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
	EncodeIQ1_S(dst, src, importance, searchIQ1_S)
}

func EncodeIQ1_S(dst []byte, src, importance []float32, search func(x, w []float32, codes []uint16) (scale float32, shift uint8)) {
	fit := iq1Fits.Get().(*iq1Fit)
	defer iq1Fits.Put(fit)
	w, scales, codes, shifts := fit.w[:pack.QK], fit.scales[:8], fit.codes[:], fit.shifts[:8]
	cb := &codebook.IQ1
	cb.Load()
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ1_S:BytesIQ1_S]
		dst = dst[BytesIQ1_S:]
		s := float32(float32(2*arith.SumSquares(x)) / pack.QK_K)
		for j := range scales {
			sub := x[pack.QK*j:][:pack.QK]
			arith.ImportanceWeights(w, sub, importance[off+pack.QK*j:][:pack.QK], s)
			scales[j], shifts[j] = search(sub, w, codes[4*j:][:4])
		}
		clear(b)
		m := codebook.Max(scales)
		d := m / 15
		pack.PutF16(b, d*1.125)
		id := 1 / d
		for j, s := range scales {
			// Without any scale, indices are stored anyway.
			var word uint16
			if m != 0 {
				word = uint16(codebook.ScaleCode(7, id, s))<<12 | uint16(shifts[j])<<15
			}
			for g := range 4 {
				i := cb.Point(codes[4*j+g])
				b[2+4*j+g] = uint8(i)
				word |= uint16(i>>8) << (3 * g)
			}
			binary.LittleEndian.PutUint16(b[34+2*j:], word)
		}
	}
}

// searchIQ1_S sets codes to those of the 4 groups of the sub-block x, and returns
// its scale and shift. If there is no fit all are 0.
func searchIQ1_S(x, w []float32, codes []uint16) (scale float32, shift uint8) {
	clear(codes)
	if arith.Abs(arith.Largest(x)) < 1e-12 {
		return 0, 0
	}
	var order [pack.QK]uint8
	var c CutsIQ1_S
	sortOrder(order[:], x)
	for k, i := range order {
		c.Sx[k+1] = c.Sx[k] + float32(w[i]*x[i])
		c.Sw[k+1] = c.Sw[k] + w[i]
	}
	for s := range ValuesIQ1 {
		q := ValuesIQ1[s][2]
		for i := range pack.QK + 1 {
			c.A2[s][i] = float32((c.Sx[pack.QK] - c.Sx[i]) * q)
			c.B2[s][i] = float32(float32((c.Sw[pack.QK]-c.Sw[i])*q) * q)
		}
	}
	f := NoCuts
	for i1 := range pack.QK + 1 {
		c.Row(&f, i1, nil)
	}
	if f.Cut1 < 0 {
		return 0, 0
	}
	scale, shift = f.CodesIQ1_S(order[:], codes)
	shifts := [4]uint8{shift, shift, shift, shift}
	return SnapIQ1(codes, x, w, scale, shifts[:]), shift
}

// CutsIQ1_S are the tables of the search for cuts, by cut.
type CutsIQ1_S struct {
	Sx, Sw [CutsLen]float32 // sums of w*x and w over the elements before the cut
	// By shift: what the part after the cut adds to a and b.
	A2, B2 [2][CutsLen]float32
}

// Row tries all second cuts for the first cut i1. What the first part adds to a and
// b depends on i1 only. The middle level is 1/8 or its negative, which differ in
// the sign of one term. For hits see CutFit.skips.
func (c *CutsIQ1_S) Row(f *CutFit, i1 int, hits []int32) {
	start := f.Best
	x0, w0 := c.Sx[i1]-c.Sx[0], c.Sw[i1]-c.Sw[0]
	var a0, b0 [2]float32
	for s := range ValuesIQ1 {
		q := ValuesIQ1[s][0]
		a0[s], b0[s] = float32(x0*q), float32(float32(w0*q)*q)
	}
	for i2 := i1; i2 <= pack.QK; i2++ {
		if f.skips(hits, i2-i1, start) {
			continue
		}
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

// CodesIQ1_S sets codes to the levels of the fit and returns its scale and shift.
func (f *CutFit) CodesIQ1_S(order []uint8, codes []uint16) (scale float32, shift uint8) {
	scale, shift = f.scale, uint8(f.kind)
	mirrored := scale < 0
	if mirrored {
		scale, shift = -scale, 1-shift
	}
	levelCodes(codes, order, f.Cut1, f.cut2, mirrored)
	return scale, shift
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
