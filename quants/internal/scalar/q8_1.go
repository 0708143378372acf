package scalar

import (
	"ggforge/quants/internal/pack"
)

// Q8_1: 32 elements in 36 bytes, 9 bpw. Only decoded: it is the form in which
// kernels hold activations, no tool writes tensors of it.
//
//	0  2  d   float16   scale
//	2  2  s   float16   d * sum of the quants, not needed for decoding
//	4 32  qs  int8      x = d*q
const bytesQ8_1 = 36

func DequantizeQ8_1(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:bytesQ8_1:bytesQ8_1]
		dst, src = dst[pack.QK:], src[bytesQ8_1:]
		d := pack.F16(b)
		for i, q := range b[4:][:pack.QK] {
			y[i] = d * float32(int8(q))
		}
	}
}
