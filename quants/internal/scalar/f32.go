package scalar

import (
	"encoding/binary"
	"math"

	"ggforge/internal/kernel/half"
)

// F32, F16 and BF16 are plain elements, little-endian:
//
//	F32   4 bytes   IEEE binary32
//	F16   2 bytes   IEEE binary16, rounded to nearest even, overflow to infinity
//	BF16  2 bytes   high half of binary32, rounded to nearest even
//
// Importance is ignored.

func QuantizeF32(dst []byte, src, _ []float32) {
	dst = dst[:4*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}

func DequantizeF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func QuantizeF16(dst []byte, src, _ []float32) {
	dst = dst[:2*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], half.ToF16(v))
	}
}

func DequantizeF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = half.FromF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func QuantizeBF16(dst []byte, src, _ []float32) {
	dst = dst[:2*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], half.ToBF16(v))
	}
}

func DequantizeBF16(dst []float32, src []byte) {
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = half.FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// FiniteChunk is the number of bytes of plain elements that a kernel searches at a time for values that are not finite.
const FiniteChunk = 1 << 10
