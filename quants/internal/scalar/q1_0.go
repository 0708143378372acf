package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// Q1_0: 128 elements in 18 bytes, 1.125 bpw.
//
//	0  2  d   float16   scale
//	2 16  qs  bits      element j is bit j mod 8 of byte j/8; x = d, or -d if 0
//
// d is the mean magnitude; the bit says x >= 0, which holds for -0. Importance
// is ignored.
const (
	QK_Q1_0   = 128
	BytesQ1_0 = 18
)

func QuantizeQ1_0(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		x, b := src[:QK_Q1_0:QK_Q1_0], dst[:BytesQ1_0:BytesQ1_0]
		src, dst = src[QK_Q1_0:], dst[BytesQ1_0:]
		var s float32
		for _, v := range x {
			s += arith.Abs(v)
		}
		pack.PutF16(b, s/QK_Q1_0)
		for j := range b[2:] {
			var bits uint8
			for i, v := range x[8*j:][:8] {
				if v >= 0 {
					bits |= 1 << i
				}
			}
			b[2+j] = bits
		}
	}
}

func DequantizeQ1_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:QK_Q1_0:QK_Q1_0], src[:BytesQ1_0:BytesQ1_0]
		dst, src = dst[QK_Q1_0:], src[BytesQ1_0:]
		d := pack.F16(b)
		value := [2]float32{-d, d}
		for j, bits := range b[2:] {
			for i := range 8 {
				y[8*j+i] = value[bits>>i&1]
			}
		}
	}
}
