package quants

import "encoding/binary"

// IQ3_XXS: superblock of 256 elements, 8 sub-blocks of 8 groups of 4, in 98
// bytes, 3.0625 bpw.
//
//	 0  2  d      float16, scale of the scale codes
//	 2 64  qs     byte g: index of group g in gridIQ3_XXS
//	66 32  signs  a sub-block takes a uint32 of 4 x 7 sign bits, from bit 0, each
//	              for 8 elements, and the scale code in bits 28-31
//
// x = d*(scale + 0.5)/2*level, negative where the sign bit is set; the eighth
// sign makes their number even. The search is gridSearch, around the largest
// magnitude, with weights importance*sqrt(twice the mean square of the superblock
// + x*x), or x*x without importance. Scales are coded against the largest; d is
// stored 1.25% larger than that.
const iq3_XXSBytes = 98

var searchIQ3_XXS = gridSearch{
	cb: &codebookIQ3_XXS, size: 32, sumFactor: 2, evenSigns: true, limit: 1e-8,
	top: 15, step: 0.2, steps: 15, refit: refitOffGrid,
}

func quantizeIQ3_XXS(dst []byte, src, importance []float32) {
	encodeIQ3_XXS(dst, src, importance, (*gridSearch).superblock)
}

func encodeIQ3_XXS(dst []byte, src, importance []float32, superblock gridFitter) {
	fit := gridFits.Get().(*gridFit)
	defer gridFits.Put(fit)
	p := &searchIQ3_XXS
	p.cb.load()
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq3_XXSBytes:iq3_XXSBytes]
		dst = dst[iq3_XXSBytes:]
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
		putF16(b, d*1.0125)
		id := 1 / d
		for g, c := range fit.codes {
			b[2+g] = uint8(p.cb.point(c))
		}
		for j, s := range fit.scales[:8] {
			word := uint32(scaleCode(15, id, s)) << 28
			for g := range 4 {
				word |= uint32(fit.signs[4*j+g]&127) << (7 * g)
			}
			binary.LittleEndian.PutUint32(b[66+4*j:], word)
		}
	}
}

func dequantizeIQ3_XXS(dst []float32, src []byte) {
	var values [8]float32
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq3_XXSBytes:iq3_XXSBytes]
		dst, src = dst[qkK:], src[iq3_XXSBytes:]
		d := getF16(b)
		for j := range 8 {
			word := binary.LittleEndian.Uint32(b[66+4*j:])
			ds := d * (0.5 + float32(word>>28)) * 0.5
			for l, q := range levelsIQ3_XXS {
				values[l] = ds * q
			}
			for g := range 4 {
				y, q, signs := y[32*j+8*g:], b[2+8*j+2*g:], signs7[word>>(7*g)&127]
				decodeGroup4(y, gridIQ3_XXS[q[0]], signs, &values)
				decodeGroup4(y[4:], gridIQ3_XXS[q[1]], signs>>4, &values)
			}
		}
	}
}
