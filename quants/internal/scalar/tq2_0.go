package scalar

import (
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// TQ2_0: superblock of 256 elements in 66 bytes, 2.0625 bpw.
//
//	 0 64  qs  2 bits, placed as the 2 bits of Q2_K; x = d*(q - 1)
//	64  2  d   float16, scale
//
// d is the largest magnitude; levels are -1, 0 and 1, rounded half away from
// zero with the scale before it is stored. Level 2 decodes but is never
// written. Importance is ignored.
const BytesTQ2_0 = 66

func QuantizeTQ2_0(dst []byte, src, _ []float32) {
	var codes [pack.QK_K]uint8
	for len(src) > 0 {
		x, b := src[:pack.QK_K:pack.QK_K], dst[:BytesTQ2_0:BytesTQ2_0]
		src, dst = src[pack.QK_K:], dst[BytesTQ2_0:]
		id := ternaryScale(b[64:], x)
		for i, v := range x {
			codes[i] = uint8(arith.RoundAway(float32(v*id)) + 1)
		}
		pack.Crumbs(b[:64], &codes)
	}
}

func DequantizeTQ2_0(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:BytesTQ2_0:BytesTQ2_0]
		dst, src = dst[pack.QK_K:], src[BytesTQ2_0:]
		d := pack.F16(b[64:])
		for h := range 2 {
			y := y[128*h:][:128]
			for l, q := range b[32*h:][:32] {
				for k := range 4 {
					y[32*k+l] = float32(int32(q>>(2*k)&3)-1) * d
				}
			}
		}
	}
}
