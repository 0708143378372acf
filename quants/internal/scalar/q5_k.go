package scalar

import (
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// Q5_K: superblock of 256 elements, 8 sub-blocks of 32, in 176 bytes, 5.5 bpw.
//
//	 0   2  d       float16, scale of the scale codes
//	 2   2  dmin    float16, scale of the min codes
//	 4  12  scales  8 scale and 8 min codes of 6 bits, see pack.ScaleMin
//	16  32  qh      fifth bits: element 32*j + l is bit j of byte l
//	48 128  qs      low 4 bits, placed as in Q4_K
//
// x = d*scale*q - dmin*min; for the choice of codes see fitScaleMin.
const BytesQ5_K = 176

var FitQ5_K = ScaleMinFit{
	Plain:    search.AsymParams{Levels: 31, R0: -0.5, Dr: 0.1, Steps: 15},
	Weighted: search.AsymParams{Levels: 31, R0: -0.9, Dr: 0.05, Steps: 36},
	Clamp:    true,
}

func QuantizeQ5_K(dst []byte, src, importance []float32) {
	var codes [pack.QK_K]uint8
	for off := 0; len(dst) > 0; off += pack.QK_K {
		x, b := src[off:][:pack.QK_K:pack.QK_K], dst[:BytesQ5_K:BytesQ5_K]
		dst = dst[BytesQ5_K:]
		var qw []float32
		if importance != nil {
			qw = importance[off:][:pack.QK_K]
		}
		fitScaleMin(&FitQ5_K, b[:16], x, qw, &codes)
		qh := b[16:48]
		clear(qh)
		for i, c := range codes {
			qh[i&31] |= c >> 4 & 1 << (i >> 5)
		}
		for g := range 4 {
			pack.Nibbles(b[48+32*g:][:32], codes[64*g:][:32], codes[64*g+32:][:32])
		}
	}
}

func DequantizeQ5_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesQ5_K:BytesQ5_K]
		dst, src = dst[pack.QK_K:], src[BytesQ5_K:]
		d, dmin, qh := pack.F16(b), pack.F16(b[2:]), b[16:48]
		for g := range 4 {
			s0, m0 := pack.UnpackScaleMin(b[4:16], 2*g)
			s1, m1 := pack.UnpackScaleMin(b[4:16], 2*g+1)
			d0, min0 := d*float32(s0), float32(dmin*float32(m0))
			d1, min1 := d*float32(s1), float32(dmin*float32(m1))
			lo, hi := y[64*g:][:32], y[64*g+32:][:32]
			for l, q := range b[48+32*g:][:32] {
				h := qh[l] >> (2 * g)
				lo[l] = float32(d0*float32(q&15|h&1<<4)) - min0
				hi[l] = float32(d1*float32(q>>4|h>>1&1<<4)) - min1
			}
		}
	}
}
