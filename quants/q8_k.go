package quants

import (
	"encoding/binary"
	"math"
)

// Q8_K: superblock of 256 elements in 292 bytes, 9.125 bpw. Only decoded: it is
// the form in which kernels hold activations, no tool writes tensors of it.
//
//	  0   4  d      float32   scale
//	  4 256  qs     int8      x = d*q
//	260  32  bsums  16 x int16, sums of 16 quants, not needed for decoding
const q8_KBytes = 292

func dequantizeQ8_K(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qkK:qkK], src[:q8_KBytes:q8_KBytes]
		dst, src = dst[qkK:], src[q8_KBytes:]
		d := math.Float32frombits(binary.LittleEndian.Uint32(b))
		for i, q := range b[4:][:qkK] {
			y[i] = d * float32(int8(q))
		}
	}
}
