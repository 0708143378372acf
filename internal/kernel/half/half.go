// Package half converts between float32 and the 16-bit floating-point formats
// of model files, one value at a time. It is the scalar definition: vector
// conversions must give the same bits.
package half

import "math"

// FromF16 widens an IEEE binary16 value, exactly. A NaN keeps its payload and
// becomes quiet.
func FromF16(b uint16) float32 {
	// Shifted so that the mantissas line up, a finite half is a float32 2^112
	// times too small. The product is exact, for subnormal halves too.
	u := uint32(b&0x7FFF) << 13
	f := math.Float32bits(math.Float32frombits(u) * 0x1p112)
	if u >= 0x7C00<<13 {
		f = u | 0x7F800000
		if f != 0x7F800000 {
			f |= 1 << 22
		}
	}
	return math.Float32frombits(f | uint32(b&0x8000)<<16)
}

// ToF16 rounds v to IEEE binary16, to nearest even: subnormal halves are kept,
// overflow gives infinity, and every NaN becomes sign|0x7E00 (as ggml's
// ggml_compute_fp32_to_fp16 does).
func ToF16(v float32) uint16 {
	u := math.Float32bits(v)
	sign, u := u>>16&0x8000, u&0x7FFFFFFF
	h := uint32(0x7E00)
	if u < 0x38800000 { // below 2^-14, the least normal half
		// A float32 in [0.5, 1) has the step of subnormal halves, 2^-24: the sum
		// rounds as wanted and counts the steps in its low bits.
		h = math.Float32bits(math.Float32frombits(u)+0.5) - 0x3F000000
	} else if u < 0x47800000 { // below 2^16
		// A carry out of the mantissa raises the exponent, up to infinity.
		h = (u - 112<<23 + 0xFFF + u>>13&1) >> 13
	} else if u <= 0x7F800000 {
		h = 0x7C00
	}
	return uint16(sign | h)
}

// RoundF16 returns v rounded to binary16 and widened again.
func RoundF16(v float32) float32 {
	u := math.Float32bits(v)
	// a normal half below the largest one: 13 bits of the mantissa go
	if u&0x7FFFFFFF-0x38800000 < 0x477FE000-0x38800000 {
		return math.Float32frombits((u + 0xFFF + u>>13&1) &^ 0x1FFF)
	}
	return FromF16(ToF16(v))
}

// FromBF16 widens a bfloat16 value, exactly.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBF16 rounds v to bfloat16, to nearest even; a NaN is truncated and made
// quiet. Subnormals are kept.
func ToBF16(v float32) uint16 {
	u := math.Float32bits(v)
	if u&0x7FFFFFFF > 0x7F800000 {
		return uint16(u>>16) | 64
	}
	return uint16((u + 0x7FFF + u>>16&1) >> 16)
}
