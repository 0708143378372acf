package scalar

import (
	"encoding/binary"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// IQ4_XS: superblock of 256 elements, 8 sub-blocks of 32, in 136 bytes, 4.25 bpw.
//
//	0   2  d         float16, scale of the scale codes
//	2   2  scales_h  high 2 bits of scale code j at bit 2*j
//	4   4  scales_l  low 4 bits of scale code j: byte j/2, low for even j
//	8 128  qs        nibbles; a sub-block takes 16 bytes, placed as in IQ4_NL
//
// x = d*(scale - 32)*codebook.ValuesIQ4[q]. Sub-block scales are those of fitIQ4, with
// weights importance*sqrt(twice the mean square of the superblock + x*x), or x*x
// without importance. They are coded against the one of largest magnitude, which
// gets code 0. Codes are the nearest for the coded scale, before d is stored.
const BytesIQ4_XS = 136

func QuantizeIQ4_XS(dst []byte, src, importance []float32) {
	var (
		w      [pack.QK]float32
		codes  [pack.QK]uint8
		scales [8]float32
	)
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesIQ4_XS:BytesIQ4_XS]
		dst = dst[BytesIQ4_XS:]
		s := float32(arith.SumSquares(x) * (2.0 / pack.QK_K))
		for j := range scales {
			sub := x[pack.QK*j:][:pack.QK]
			if importance != nil {
				arith.ImportanceWeights(w[:], sub, importance[off+pack.QK*j:][:pack.QK], s)
			} else {
				arith.SquareWeights(w[:], sub)
			}
			scales[j] = fitIQ4(sub, w[:])
		}
		d := -arith.Largest(scales[:]) / 32
		pack.PutF16(b, d)
		id := arith.Inverse(d)
		var high uint16
		clear(b[4:8])
		for j, s := range scales {
			l := search.LevelSym(32, float32(id*s))
			encodeIQ4(arith.Inverse(d*float32(l)), x[pack.QK*j:][:pack.QK], codes[:])
			pack.Nibbles(b[8+16*j:][:16], codes[:16], codes[16:])
			b[4+j/2] |= uint8(l+32) & 15 << (j & 1 * 4)
			high |= uint16(l+32) >> 4 << (2 * j)
		}
		binary.LittleEndian.PutUint16(b[2:], high)
	}
}

func DequantizeIQ4_XS(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesIQ4_XS:BytesIQ4_XS]
		dst, src = dst[pack.QK_K:], src[BytesIQ4_XS:]
		d, high := pack.F16(b), binary.LittleEndian.Uint16(b[2:])
		for j := range 8 {
			s := int32(b[4+j/2]>>(j&1*4)&15) | int32(high>>(2*j)&3)<<4
			decodeIQ4(y[pack.QK*j:], d*float32(s-32), b[8+16*j:])
		}
	}
}
