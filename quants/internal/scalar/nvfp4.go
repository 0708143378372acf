package scalar

import (
	"math"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
)

// NVFP4: 64 elements, 4 sub-blocks of 16, in 36 bytes, 4.5 bpw.
//
//	0  4  d   scales, 8-bit floats of 4 exponent and 3 mantissa bits (E4M3); bit
//	          7 is without meaning, except in 0xFF: 0x7F decodes as 0, that as 480
//	4 32  qs  E2M1 codes; a sub-block takes 8 bytes, byte j: low element j, high
//	          element j+8
//
// The scale is the largest magnitude / 6, 6 being the codes' largest. Importance
// is ignored.
const (
	QK_NVFP4   = 64
	BytesNVFP4 = 36
)

func QuantizeNVFP4(dst []byte, src, _ []float32) {
	var codes [16]uint8
	for len(src) > 0 {
		x, b := src[:QK_NVFP4:QK_NVFP4], dst[:BytesNVFP4:BytesNVFP4]
		src, dst = src[QK_NVFP4:], dst[BytesNVFP4:]
		for j := range 4 {
			sub := x[16*j:][:16]
			b[j] = ToUE4M3(arith.Abs(arith.Largest(sub)) / 6)
			EncodeFP4(scaleNVFP4(b[j]), sub, codes[:])
			pack.Nibbles(b[4+8*j:][:8], codes[:8], codes[8:])
		}
	}
}

// ToUE4M3 rounds v to 4 exponent and 3 mantissa bits, halves up; 0 if v is not positive. From 256 on it returns the
// largest value, 448.
func ToUE4M3(v float32) uint8 {
	if !(v > 0) {
		return 0
	}
	v = min(v, 448)
	u := math.Float32bits(v)
	exp := int(u>>23) - 127 + 7
	if exp <= 0 {
		return uint8(min(arith.Truncate(float32(v*512)+0.5), 7))
	}
	// A mantissa that rounds up to 8 carries into the exponent.
	r := exp<<3 + int(u>>20&7) + int(u>>19&1)
	if r >= 15<<3 {
		return 0x7E
	}
	return uint8(r)
}

func DequantizeNVFP4(dst []float32, src []byte) {
	for len(dst) > 0 {
		y, b := dst[:QK_NVFP4:QK_NVFP4], src[:BytesNVFP4:BytesNVFP4]
		dst, src = dst[QK_NVFP4:], src[BytesNVFP4:]
		for j := range 4 {
			sub := y[16*j:][:16]
			decodeFP4(sub[:8], sub[8:], scaleNVFP4(b[j]), b[4+8*j:][:8])
		}
	}
}
