package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// Q2_0: 64 elements in 18 bytes, 2.25 bpw.
//
//	0  2  d   float16   scale
//	2 16  qs  2 bits    element j is bits 2*(j mod 4) of byte j/4; x = d*(q - 1)
//
// d is the largest magnitude; levels are -1, 0 and 1, rounded half away from
// zero with the scale before it is stored. Level 2 decodes but is never
// written. Importance is ignored.
const (
	QK_Q2_0   = 64
	BytesQ2_0 = 18
)

func QuantizeQ2_0(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		x, b := src[:QK_Q2_0:QK_Q2_0], dst[:BytesQ2_0:BytesQ2_0]
		src, dst = src[QK_Q2_0:], dst[BytesQ2_0:]
		id := ternaryScale(b, x)
		for j := range b[2:] {
			var q uint8
			for i, v := range x[4*j:][:4] {
				q |= uint8(min(max(arith.RoundAway(float32(v*id))+1, 0), 3)) << (2 * i)
			}
			b[2+j] = q
		}
	}
}

// ternaryScale stores the largest magnitude of x as the scale of levels -1, 0
// and 1 and returns its inverse, before it was rounded.
func ternaryScale(b []byte, x []float32) float32 {
	d := arith.Abs(arith.Largest(x))
	pack.PutF16(b, d)
	return arith.Inverse(d)
}

func DequantizeQ2_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:QK_Q2_0:QK_Q2_0], src[:BytesQ2_0:BytesQ2_0]
		dst, src = dst[QK_Q2_0:], src[BytesQ2_0:]
		d := pack.F16(b)
		for j, q := range b[2:] {
			for i := range 4 {
				y[4*j+i] = float32(int32(q>>(2*i)&3)-1) * d
			}
		}
	}
}
