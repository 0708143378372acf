//go:build goexperiment.simd && go1.27

package quants

import (
	"simd"
	"simd/archsimd"

	"ggforge/gguf"
)

// Kernels of 256 bits for amd64. They widen, narrow and shuffle elements, which
// package simd cannot: hence simd/archsimd, and the scalar code elsewhere. They
// are installed where simd works with at least 256 bits, and so can be switched
// off with GODEBUG=simd=128 or 0.
//
// Common to all:
//
//   - A kernel takes as much as it can in whole steps and says how much that was;
//     a scalar function does the rest.
//   - No scalar float32 stands in a function that holds vectors (golang/go#80835):
//     constants and scales are broadcast as integers.
//   - A kernel ends with ClearAVXUpperBits.
//   - Bytes are loaded as such and reinterpreted: amd64 is little-endian.

// useAVX2 reports whether these kernels are to be installed.
func useAVX2() bool {
	return !simd.Emulated() && simd.VectorBitSize() >= 256 && archsimd.X86.AVX2()
}

// installEncoder and installDecoder replace the functions of a type in init.
func installEncoder(t gguf.Type, f func(dst []byte, src, importance []float32)) {
	registry[t].quantize, registry[t].impl = f, "avx2"
}

func installDecoder(t gguf.Type, f func(dst []float32, src []byte)) {
	registry[t].dequantize, registry[t].decodeImpl = f, "avx2"
}

type (
	f32x8 = archsimd.Float32x8
	i32x8 = archsimd.Int32x8
	u32x8 = archsimd.Uint32x8
	u8x32 = archsimd.Uint8x32
)

// ints8 returns 8 times v.
func ints8(v uint32) i32x8 { return archsimd.BroadcastUint32x8(v).AsInt32x8() }

// Constants of toF16x8.
const (
	absBits   = 0x7FFFFFFF
	halfBits  = 0x3F000000                   // 0.5
	biasF16   = 0x1000 - 1 - 112<<23 + 1<<32 // rounding, and the exponent's other bias
	infF16    = 0x7C00
	quietF16  = 0x200
	normalF16 = 0x38800000 // 2^-14
)

// toF16x8 is half.ToF16 of 8 elements: the result is in the low half of each
// lane, the high half is 0. abs, half, bias, inf, quiet and normal are absBits,
// halfBits, biasF16, infF16, quietF16 and normalF16 in each lane.
func toF16x8(v f32x8, abs, half, bias, inf, quiet, normal i32x8) i32x8 {
	x := v.AsInt32x8()
	a := x.And(abs)
	small := a.AsFloat32x8().Add(half.AsFloat32x8()).AsInt32x8().Sub(half)
	odd := a.ShiftAllLeft(18).AsUint32x8().ShiftAllRight(31).AsInt32x8()
	h := a.Add(bias).Add(odd).ShiftAllRight(13).Min(inf) // NaN becomes infinity, and then NaN
	h = h.Or(v.IsNaN().ToInt32x8().And(quiet))
	h = small.IfElse(normal.Greater(a), h)
	return h.Or(x.Xor(a).AsUint32x8().ShiftAllRight(16).AsInt32x8())
}
