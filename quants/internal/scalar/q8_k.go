package scalar

import (
	"encoding/binary"
	"math"

	"ggforge/quants/internal/pack"
)

// Q8_K: superblock of 256 elements in 292 bytes, 9.125 bpw. Only decoded: it is
// the form in which kernels hold activations, no tool writes tensors of it.
//
//	  0   4  d      float32   scale
//	  4 256  qs     int8      x = d*q
//	260  32  bsums  16 x int16, sums of 16 quants, not needed for decoding
const bytesQ8_K = 292

func DequantizeQ8_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK_K:pack.QK_K], src[:bytesQ8_K:bytesQ8_K]
		dst, src = dst[pack.QK_K:], src[bytesQ8_K:]
		d := math.Float32frombits(binary.LittleEndian.Uint32(b))
		for i, q := range b[4:][:pack.QK_K] {
			y[i] = d * float32(int8(q))
		}
	}
}
