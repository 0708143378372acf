package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// Q8_0: 32 elements in 34 bytes, 8.5 bpw.
//
//	0  2  d   float16   scale
//	2 32  qs  int8      x = d*q
//
// d is the largest magnitude / 127; levels are rounded half away from zero with
// the scale before it is stored. Importance is ignored.
const BytesQ8_0 = 34

func QuantizeQ8_0(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		x, b := src[:pack.QK:pack.QK], dst[:BytesQ8_0:BytesQ8_0]
		src, dst = src[pack.QK:], dst[BytesQ8_0:]
		d := arith.Abs(arith.Largest(x)) / 127
		id := arith.Inverse(d)
		pack.PutF16(b, d)
		qs := b[2:][:pack.QK]
		for i, v := range x {
			// When d is so small that id is infinite, this gives -2^31 and
			// the byte is 0.
			qs[i] = uint8(arith.RoundAway(float32(v * id)))
		}
	}
}

func DequantizeQ8_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesQ8_0:BytesQ8_0]
		dst, src = dst[pack.QK:], src[BytesQ8_0:]
		d := pack.F16(b)
		for i, q := range b[2:][:pack.QK] {
			y[i] = d * float32(int8(q))
		}
	}
}
