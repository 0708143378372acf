package quants

import "encoding/binary"

// IQ2_XXS: superblock of 256 elements, 8 sub-blocks of 4 groups of 8, in 66
// bytes, 2.0625 bpw.
//
//	0  2  d   float16, scale of the scale codes
//	2 64  qs  a sub-block takes 8 bytes: 4 x uint8 index in gridIQ2_XXS, then a
//	          uint32 of 4 x 7 sign bits, from bit 0, and the scale code in bits
//	          28-31
//
// x = d*(scale + 0.5)/4*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is gridSearch, around the scale of a
// fit by levels 0..4 without codebook, with weights importance*sqrt(mean square
// of the superblock + x*x). Scales are coded against the largest before d is
// stored. There is no search without importance.
const iq2_XXSBytes = 66

var searchIQ2_XXS = gridSearch{
	cb: &codebookIQ2_XXS, size: 32, sumFactor: 1, evenSigns: true, limit: groupMaxEps,
	fitFirst: true, top: 5, step: 0.1, steps: 6, refit: refitAlways,
}

func quantizeIQ2_XXS(dst []byte, src, importance []float32) {
	encodeIQ2_XXS(dst, src, importance, (*gridSearch).superblock)
}

func encodeIQ2_XXS(dst []byte, src, importance []float32, superblock gridFitter) {
	fit := gridFits.Get().(*gridFit)
	defer gridFits.Put(fit)
	p := &searchIQ2_XXS
	p.cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq2_XXSBytes:iq2_XXSBytes]
		dst = dst[iq2_XXSBytes:]
		clear(b)
		m := superblock(p, fit, x, importance[off:][:qkK])
		if m == 0 {
			continue
		}
		d := m / 31
		putF16(b, d)
		id := 1 / d
		for j, s := range fit.scales[:8] {
			q := b[2+8*j:][:8]
			word := uint32(scaleCode(15, id, s)) << 28
			for g := range 4 {
				q[g] = uint8(p.cb.point(fit.codes[4*j+g]))
				word |= uint32(fit.signs[4*j+g]&127) << (7 * g)
			}
			binary.LittleEndian.PutUint32(q[4:], word)
		}
	}
}

func dequantizeIQ2_XXS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq2_XXSBytes:iq2_XXSBytes]
		dst, src = dst[qkK:], src[iq2_XXSBytes:]
		d := getF16(b)
		for j := range 8 {
			q := b[2+8*j:][:8]
			word := binary.LittleEndian.Uint32(q[4:])
			values := valuesIQ2(d, uint8(word>>28))
			for g := range 4 {
				decodeGroup8(y[32*j+8*g:], gridIQ2_XXS[q[g]], signs7[word>>(7*g)&127], &values)
			}
		}
	}
}
