package quants

import "encoding/binary"

// IQ4_XS: superblock of 256 elements, 8 sub-blocks of 32, in 136 bytes, 4.25 bpw.
//
//	0   2  d         float16, scale of the scale codes
//	2   2  scales_h  high 2 bits of scale code j at bit 2*j
//	4   4  scales_l  low 4 bits of scale code j: byte j/2, low for even j
//	8 128  qs        nibbles; a sub-block takes 16 bytes, placed as in IQ4_NL
//
// x = d*(scale - 32)*valuesIQ4[q]. Sub-block scales are those of fitIQ4, with
// weights importance*sqrt(twice the mean square of the superblock + x*x), or x*x
// without importance. They are coded against the one of largest magnitude, which
// gets code 0. Codes are the nearest for the coded scale, before d is stored.
const iq4_XSBytes = 136

func quantizeIQ4_XS(dst []byte, src, importance []float32) {
	var (
		w      [qk]float32
		codes  [qk]uint8
		scales [8]float32
	)
	for off := 0; len(dst) > 0; off += qkK {
		x, b := src[off:][:qkK:qkK], dst[:iq4_XSBytes:iq4_XSBytes]
		dst = dst[iq4_XSBytes:]
		s := float32(sumSquares(x) * (2.0 / qkK))
		for j := range scales {
			sub := x[qk*j:][:qk]
			if importance != nil {
				importanceWeights(w[:], sub, importance[off+qk*j:][:qk], s)
			} else {
				squareWeights(w[:], sub)
			}
			scales[j] = fitIQ4(sub, w[:])
		}
		d := -largest(scales[:]) / 32
		putF16(b, d)
		id := inverse(d)
		var high uint16
		clear(b[4:8])
		for j, s := range scales {
			l := levelSym(32, float32(id*s))
			encodeIQ4(inverse(d*float32(l)), x[qk*j:][:qk], codes[:])
			packNibbles(b[8+16*j:][:16], codes[:16], codes[16:])
			b[4+j/2] |= uint8(l+32) & 15 << (j & 1 * 4)
			high |= uint16(l+32) >> 4 << (2 * j)
		}
		binary.LittleEndian.PutUint16(b[2:], high)
	}
}

func dequantizeIQ4_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:iq4_XSBytes:iq4_XSBytes]
		dst, src = dst[qkK:], src[iq4_XSBytes:]
		d, high := getF16(b), binary.LittleEndian.Uint16(b[2:])
		for j := range 8 {
			s := int32(b[4+j/2]>>(j&1*4)&15) | int32(high>>(2*j)&3)<<4
			decodeIQ4(y[qk*j:], d*float32(s-32), b[8+16*j:])
		}
	}
}
