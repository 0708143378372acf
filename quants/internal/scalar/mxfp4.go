package scalar

import (
	"math"
	"math/bits"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
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
const BytesMXFP4 = 17

func QuantizeMXFP4(dst []byte, src, _ []float32) {
	var codes [pack.QK]uint8
	for len(src) > 0 {
		x, b := src[:pack.QK:pack.QK], dst[:BytesMXFP4:BytesMXFP4]
		src, dst = src[pack.QK:], dst[BytesMXFP4:]
		b[0] = 0
		if a := arith.Abs(arith.Largest(x)); a != 0 {
			b[0] = uint8(FloorLog2(a) - 2 + 127)
		}
		EncodeFP4(scaleMXFP4(b[0]), x, codes[:])
		pack.Nibbles(b[1:][:16], codes[:16], codes[16:])
	}
}

// FloorLog2 returns floor(l), l the float32 nearest to log2(a), for finite a > 0.
//
// Rounding l takes the float32 values just below a power of two 2^k to k: all
// a = 2^k*(1 - r) with r/ln(2) less than half the distance from k to its
// neighbour below. That distance is 2^(n-24) for k in (2^(n-1), 2^n], and for k
// in (-2^n, -2^(n-1)]; a lies 2^(k-24) below 2^k, or more where a is subnormal.
// So k belongs to the nearest 2^n*ln(2)/2 values, 44 for n = 7.
func FloorLog2(a float32) int {
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

func DequantizeMXFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:pack.QK:pack.QK], src[:BytesMXFP4:BytesMXFP4]
		dst, src = dst[pack.QK:], src[BytesMXFP4:]
		decodeFP4(y[:16], y[16:], scaleMXFP4(b[0]), b[1:])
	}
}
