package quants

import (
	"math"
	"math/bits"
)

// MXFP4: 32 elements in 17 bytes, 4.25 bpw.
//
//	0  1  e   scale 2^(e-127) (E8M0); 255 is not a number
//	1 16  qs  E2M1 codes, byte j: low element j, high element j+16
//
// The scale is the power of two that puts the largest magnitude between 4 and 8,
// the codes' largest being 6. Its exponent is computed as a byte that wraps
// around: a block of subnormal or nearly subnormal elements (below 2^-125) gets
// e = 255, or a huge scale and codes 0. Importance is ignored.
const mxfp4Bytes = 17

func quantizeMXFP4(dst []byte, src, _ []float32) {
	var codes [qk]uint8
	for len(src) > 0 {
		x, b := src[:qk:qk], dst[:mxfp4Bytes:mxfp4Bytes]
		src, dst = src[qk:], dst[mxfp4Bytes:]
		b[0] = 0
		if a := abs32(largest(x)); a != 0 {
			b[0] = uint8(floorLog2(a) - 2 + 127)
		}
		encodeFP4(scaleMXFP4(b[0]), x, codes[:])
		packNibbles(b[1:][:16], codes[:16], codes[16:])
	}
}

// floorLog2 returns floor(l), l the float32 nearest to log2(a), for finite a > 0.
//
// Rounding l takes the float32 values just below a power of two 2^k to k: all
// a = 2^k*(1 - r) with r/ln(2) less than half the distance from k to its
// neighbour below. That distance is 2^(n-24) for k in (2^(n-1), 2^n], and for k
// in (-2^n, -2^(n-1)]; a lies 2^(k-24) below 2^k, or more where a is subnormal.
// So k belongs to the nearest 2^n*ln(2)/2 values, 44 for n = 7.
func floorLog2(a float32) int {
	u := math.Float32bits(a)
	exp, ulps := int(u>>23), 0 // ulps counts up to the next power of two
	var k, wide int            // that power, and how much wider than normal its distances below are
	if exp > 0 {
		k, ulps = exp-126, 1<<23-int(u&0x7FFFFF)
	} else {
		n := bits.Len32(u)
		k, ulps = n-149, 1<<n-int(u)
		wide = 24 - n
	}
	n := bits.Len(uint(-k))
	if k > 0 {
		n = bits.Len(uint(k - 1))
	}
	if ulps <= 88<<n>>(8+wide) { // 88 = floor(2^8*ln(2)/2)
		return k
	}
	return k - 1
}

func dequantizeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:qk:qk], src[:mxfp4Bytes:mxfp4Bytes]
		dst, src = dst[qk:], src[mxfp4Bytes:]
		decodeFP4(y[:16], y[16:], scaleMXFP4(b[0]), b[1:])
	}
}
