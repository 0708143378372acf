package quants

// IQ2_S: superblock of 256 elements, 16 sub-blocks of 2 groups of 8, in 82 bytes,
// 2.5625 bpw.
//
//	 0  2  d       float16, scale of the scale codes
//	 2 32  qs      low 8 bits of the index of group g in gridIQ2_S
//	34 32  signs   byte g: sign bits of group g
//	66  8  qh      high 2 bits of the index: byte g/4, bit 2*(g mod 4)
//	74  8  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set. The search is
// gridSearch, around the largest magnitude, with weights importance*sqrt(twice
// the mean square of the superblock + x*x), or half the mean square + x*x. Scales
// are coded against the largest; d is stored 1.25% smaller than that.
const iq2_SBytes = 82

var searchIQ2_S = gridSearch{
	cb: &codebookIQ2_S, size: 16, sumFactor: 2, plainFactor: 0.25, limit: 1e-8,
	top: 5, step: 0.1, steps: 9, refit: refitOffGrid,
}

func quantizeIQ2_S(dst []byte, src, importance []float32) {
	encodeIQ2_S(dst, src, importance, (*gridSearch).superblock)
}

func encodeIQ2_S(dst []byte, src, importance []float32, superblock gridFitter) {
	fit := gridFits.Get().(*gridFit)
	defer gridFits.Put(fit)
	p := &searchIQ2_S
	p.cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq2_SBytes:iq2_SBytes]
		dst = dst[iq2_SBytes:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:qkK]
		}
		clear(b)
		m := superblock(p, fit, x, qw)
		if m == 0 {
			continue
		}
		d := m / 31
		putF16(b, d*0.9875)
		copy(b[34:66], fit.signs[:])
		packScaleCodes(b[74:], 1/d, fit.scales[:])
		for g := range 32 {
			i := p.cb.point(fit.codes[g])
			b[2+g] = uint8(i)
			b[66+g/4] |= uint8(i >> 8 << (2 * (g & 3)))
		}
	}
}

func dequantizeIQ2_S(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq2_SBytes:iq2_SBytes]
		dst, src = dst[qkK:], src[iq2_SBytes:]
		d := getF16(b)
		for j := range 16 {
			values := valuesIQ2(d, b[74+j/2]>>(j&1*4)&15)
			for g := 2 * j; g < 2*j+2; g++ {
				i := uint(b[2+g]) | uint(b[66+g/4])>>(2*(g&3))&3<<8
				decodeGroup8(y[8*g:], gridIQ2_S[i], b[34+g], &values)
			}
		}
	}
}
