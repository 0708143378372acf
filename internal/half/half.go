// Package half converts between float32 and the 16-bit floating-point formats
// of model files, one value at a time. It is the scalar definition: vector
// conversions must give the same bits.
package half

import (
	"math"

	"github.com/x448/float16"
)

// FromF16 widens an IEEE binary16 value, exactly. A NaN keeps its payload and
// becomes quiet.
func FromF16(b uint16) float32 { return float16.Frombits(b).Float32() }

// ToF16 rounds v to IEEE binary16, to nearest even: subnormal halves are kept,
// overflow gives infinity, and every NaN becomes sign|0x7E00 (as ggml's
// ggml_compute_fp32_to_fp16 does; x448/float16 alone would keep payload bits).
func ToF16(v float32) uint16 {
	if v != v {
		return uint16(math.Float32bits(v)>>16)&0x8000 | 0x7E00
	}
	return float16.Fromfloat32(v).Bits()
}

// RoundF16 returns v rounded to binary16 and widened again.
func RoundF16(v float32) float32 { return FromF16(ToF16(v)) }

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
