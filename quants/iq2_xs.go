package quants

import "encoding/binary"

// IQ2_XS: superblock of 256 elements, 16 sub-blocks of 2 groups of 8, in 74
// bytes, 2.3125 bpw.
//
//	 0  2  d       float16, scale of the scale codes
//	 2 64  qs      a group takes a uint16: index in gridIQ2_XS (9 bits), 7 sign bits
//	66  8  scales  4 bits each: byte j/2, low for even sub-blocks j
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is gridSearch, around the largest
// magnitude, with weights importance*sqrt(mean square of the superblock + x*x).
// Scales are coded against the largest before d is stored. There is no search
// without importance.
const iq2_XSBytes = 74

var searchIQ2_XS = gridSearch{
	cb: &codebookIQ2_XS, size: 16, sumFactor: 1, evenSigns: true, limit: groupMaxEps,
	top: 5, step: 0.1, steps: 9, refit: refitOffGrid,
}

func quantizeIQ2_XS(dst []byte, src, importance []float32) {
	encodeIQ2_XS(dst, src, importance, (*gridSearch).superblock)
}

func encodeIQ2_XS(dst []byte, src, importance []float32, superblock gridFitter) {
	fit := gridFits.Get().(*gridFit)
	defer gridFits.Put(fit)
	p := &searchIQ2_XS
	p.cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq2_XSBytes:iq2_XSBytes]
		dst = dst[iq2_XSBytes:]
		clear(b)
		m := superblock(p, fit, x, importance[off:][:qkK])
		if m == 0 {
			continue
		}
		d := m / 31
		putF16(b, d)
		packScaleCodes(b[66:], 1/d, fit.scales[:])
		for g, signs := range fit.signs {
			binary.LittleEndian.PutUint16(b[2+2*g:], uint16(p.cb.point(fit.codes[g]))|uint16(signs&127)<<9)
		}
	}
}

func dequantizeIQ2_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq2_XSBytes:iq2_XSBytes]
		dst, src = dst[qkK:], src[iq2_XSBytes:]
		d := getF16(b)
		for j := range 16 {
			values := valuesIQ2(d, b[66+j/2]>>(j&1*4)&15)
			for g := 2 * j; g < 2*j+2; g++ {
				q := binary.LittleEndian.Uint16(b[2+2*g:])
				decodeGroup8(y[8*g:], gridIQ2_XS[q&511], signs7[q>>9], &values)
			}
		}
	}
}
