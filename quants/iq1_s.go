package quants

import "encoding/binary"

// IQ1_S: superblock of 256 elements, 8 sub-blocks of 4 groups of 8, in 50 bytes,
// 1.5625 bpw.
//
//	 0  2  d   float16, scale of the scale codes
//	 2 32  qs  byte g: low 8 bits of the index of group g in gridIQ1
//	34 16  qh  a sub-block takes a uint16: high 3 bits of the indices of its groups
//	           from bit 0, scale code in bits 12-14, shift in bit 15
//
// x = d*(2*scale + 1)*value, the value of the level being moved by the shift. The
// weights are importance*sqrt(twice the mean square of the superblock + x*x). The
// elements of a sub-block are sorted and cut in three, each part getting a level:
// all cuts and both shifts are tried. Levels that form no point of the codebook
// then move to a near one. Scales are coded against the largest; d is stored
// 12.5% larger than that. There is no search without importance.
const iq1_SBytes = 50

func quantizeIQ1_S(dst []byte, src, importance []float32) {
	encodeIQ1_S(dst, src, importance, searchIQ1_S)
}

func encodeIQ1_S(dst []byte, src, importance []float32, search func(x, w []float32, codes []uint16) (scale float32, shift uint8)) {
	fit := iq1Fits.Get().(*iq1Fit)
	defer iq1Fits.Put(fit)
	w, scales, codes, shifts := fit.w[:qk], fit.scales[:8], fit.codes[:], fit.shifts[:8]
	cb := &codebookIQ1
	cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq1_SBytes:iq1_SBytes]
		dst = dst[iq1_SBytes:]
		s := float32(float32(2*sumSquares(x)) / qkK)
		for j := range scales {
			sub := x[qk*j:][:qk]
			importanceWeights(w, sub, importance[off+qk*j:][:qk], s)
			scales[j], shifts[j] = search(sub, w, codes[4*j:][:4])
		}
		clear(b)
		m := maxOf(scales)
		d := m / 15
		putF16(b, d*1.125)
		id := 1 / d
		for j, s := range scales {
			// Without any scale, indices are stored all the same.
			var word uint16
			if m != 0 {
				word = uint16(scaleCode(7, id, s))<<12 | uint16(shifts[j])<<15
			}
			for g := range 4 {
				i := cb.point(codes[4*j+g])
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
	if abs32(largest(x)) < 1e-12 {
		return 0, 0
	}
	var order [qk]uint8
	var c cutsIQ1_S
	sortOrder(order[:], x)
	for k, i := range order {
		c.sx[k+1] = c.sx[k] + float32(w[i]*x[i])
		c.sw[k+1] = c.sw[k] + w[i]
	}
	for s := range valuesIQ1 {
		q := valuesIQ1[s][2]
		for i := range qk + 1 {
			c.a2[s][i] = float32((c.sx[qk] - c.sx[i]) * q)
			c.b2[s][i] = float32(float32((c.sw[qk]-c.sw[i])*q) * q)
		}
	}
	f := noCuts
	for i1 := range qk + 1 {
		c.row(&f, i1, nil)
	}
	if f.cut1 < 0 {
		return 0, 0
	}
	scale, shift = f.codesIQ1_S(order[:], codes)
	shifts := [4]uint8{shift, shift, shift, shift}
	return snapIQ1(codes, x, w, scale, shifts[:]), shift
}

// cutsIQ1_S are the tables of the search for cuts, by cut.
type cutsIQ1_S struct {
	sx, sw [cutsLen]float32 // sums of w*x and w over the elements before the cut
	// By shift: what the part behind the cut adds to a and b.
	a2, b2 [2][cutsLen]float32
}

// row tries all second cuts for the first cut i1. What the first part adds to a and
// b depends on i1 only. The middle level is 1/8 or its negative, which differ in
// the sign of one term. For hits see cutFit.skips.
func (c *cutsIQ1_S) row(f *cutFit, i1 int, hits []int32) {
	start := f.best
	x0, w0 := c.sx[i1]-c.sx[0], c.sw[i1]-c.sw[0]
	var a0, b0 [2]float32
	for s := range valuesIQ1 {
		q := valuesIQ1[s][0]
		a0[s], b0[s] = float32(x0*q), float32(float32(w0*q)*q)
	}
	for i2 := i1; i2 <= qk; i2++ {
		if f.skips(hits, i2-i1, start) {
			continue
		}
		const q = 0.125
		x1 := float32((c.sx[i2] - c.sx[i1]) * q)
		w1 := float32(float32((c.sw[i2]-c.sw[i1])*q) * q)
		if a, b := a0[0]+x1+c.a2[0][i2], b0[0]+w1+c.b2[0][i2]; b > 0 && a*a > f.best*b {
			f.take(a, b, i1, i2, 0)
		}
		if a, b := a0[1]-x1+c.a2[1][i2], b0[1]+w1+c.b2[1][i2]; b > 0 && a*a > f.best*b {
			f.take(a, b, i1, i2, 1)
		}
	}
}

// codesIQ1_S sets codes to the levels of the fit and returns its scale and shift.
func (f *cutFit) codesIQ1_S(order []uint8, codes []uint16) (scale float32, shift uint8) {
	scale, shift = f.scale, uint8(f.kind)
	mirrored := scale < 0
	if mirrored {
		scale, shift = -scale, 1-shift
	}
	levelCodes(codes, order, f.cut1, f.cut2, mirrored)
	return scale, shift
}

func dequantizeIQ1_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq1_SBytes:iq1_SBytes]
		dst, src = dst[qkK:], src[iq1_SBytes:]
		d := getF16(b)
		for j := range 8 {
			word := binary.LittleEndian.Uint16(b[34+2*j:])
			ds := d * float32(2*(word>>12&7)+1)
			for g, q := range b[2+4*j:][:4] {
				i := uint(q) | uint(word)>>(3*g)&7<<8
				decodeIQ1(y[32*j+8*g:], ds, gridIQ1[i], uint8(word>>15))
			}
		}
	}
}
