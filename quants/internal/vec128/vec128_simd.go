//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

// Package vec128 has kernels of 128 bits for arm64, and for amd64 where package avx2 does not run. They look bytes
// up in vectors, which package simd cannot do: hence simd/archsimd, of which amd64 and arm64 have the same operations
// but for those in the files of the two. QuantizeX and DequantizeX are those of package scalar; the encoders of Q4_0,
// Q4_1, Q5_0 and Q5_1 ignore importance.
//
// Common to all:
//
//   - A kernel takes as much as it can in whole steps; a scalar function does the rest.
//   - A function that holds vectors has no scalar float32 (golang/go#80835): constants and scales are broadcast as
//     integers. Nor are there shifts by a variable.
//   - Bytes are loaded as such and reinterpreted: both are little-endian.
//   - Products and sums are two operations, neither of which is fused with the other.
//   - An operation that amd64 lacks without AVX2 is not used.
//   - A kernel begins with clearUpper: on amd64 a preemption leaves vectors of 256 bits, and as long as they are in use
//     moves of the compiler's, which are not those of AVX, take a hundred cycles. There is no other cure than to begin
//     anew at the next call.
//
// The instructions that a weight takes on arm64, in scalar code and here, are in BENCHMARKS.md.
package vec128

import (
	"encoding/binary"
	"simd/archsimd"
)

type (
	f32x4 = archsimd.Float32x4
	i32x4 = archsimd.Int32x4
	u32x4 = archsimd.Uint32x4
	u8x16 = archsimd.Uint8x16
)

// float4 returns 4 times the float32 of those bits.
func float4(bits uint32) f32x4 { return ints4(bits).BitsToFloat32() }

// bytes16 returns 16 times v.
func bytes16(v uint32) u8x16 { return ints4(v * 0x01010101).ReshapeToUint8s() }

// pair returns lo and hi as 16 bytes.
func pair(lo, hi uint64) u8x16 {
	var v archsimd.Uint64x2
	return v.SetElem(0, lo).SetElem(1, hi).ReshapeToUint8s()
}

// low8 returns v and 8 bytes of 0.
func low8(v uint64) u8x16 {
	var w archsimd.Uint64x2
	return w.SetElem(0, v).ReshapeToUint8s()
}

func loadBytes(b []byte) u8x16 { return archsimd.LoadUint8x16Array((*[16]byte)(b)) }

func load4(x []float32) f32x4 { return archsimd.LoadFloat32x4Array((*[4]float32)(x)) }

func storeBytes(b []byte, v u8x16) { v.StoreArray((*[16]byte)(b)) }

func loadInts(v *[4]uint32) u32x4 { return archsimd.LoadUint32x4Array(v) }

func store4(y []float32, v f32x4) { v.StoreArray((*[4]float32)(y)) }

// Codes become signed bytes of their value. Looking such a byte up into the top byte of 32 bits is widening it,
// times 2^24: the scale that it is multiplied with is smaller by that, both without rounding.
const (
	scaled0  = 0x77800000 // 2^112
	scaled24 = 0x6B800000 // 2^88
	scaled48 = 0x5F800000 // 2^64
)

// getF16 returns 4 times pack.F16 times a power of two, which k is 2^112 times: scaled24 is for 2^-24. All but the
// multiplication is done on integers outside the vectors; see half.FromF16.
func getF16(b []byte, k uint32) f32x4 {
	h := uint32(binary.LittleEndian.Uint16(b))
	u := h << 13 & (0x7FFF << 13)
	if u >= 0x7C00<<13 {
		u |= 0x7F800000
	}
	return float4(u | h<<16&(1<<31)).Mul(float4(k))
}

// halves turns finite float16 into float32 without leaving the vectors. The arithmetic shift puts the sign and
// the others in their places, with copies of the sign in between.
type halves struct {
	by3     i32x4 // shift count
	parts   u32x4
	k0, k24 f32x4 // scaled0 and scaled24
}

var halfConstants = [4][4]uint32{
	{1<<32 - 3, 1<<32 - 3, 1<<32 - 3, 1<<32 - 3}, {0x8FFFE000, 0x8FFFE000, 0x8FFFE000, 0x8FFFE000},
	{scaled0, scaled0, scaled0, scaled0}, {scaled24, scaled24, scaled24, scaled24},
}

func loadHalves() halves {
	c := &halfConstants
	return halves{loadInts(&c[0]).BitsToInt32(), loadInts(&c[1]), loadInts(&c[2]).BitsToFloat32(),
		loadInts(&c[3]).BitsToFloat32()}
}

// firstHalf and secondHalf are the indices that bring bytes 0 and 1, or 2 and 3, to the top of 4 words.
var (
	firstHalf  = [16]byte{z, z, 0, 1, z, z, 0, 1, z, z, 0, 1, z, z, 0, 1}
	secondHalf = [16]byte{z, z, 2, 3, z, z, 2, 3, z, z, 2, 3, z, z, 2, 3}
)

// get returns 4 times the float16 in the bytes of v at the indices, times 2^-112 times k.
func (h halves) get(v, indices u8x16, k f32x4) f32x4 {
	w := shiftRight(lookup(v, indices).ReshapeToUint32s().BitsToInt32(), 3, h.by3)
	return w.ToBits().And(h.parts).BitsToFloat32().Mul(k)
}

// finite reports whether the float16 is neither infinite nor NaN.
func finite(b []byte) bool { return binary.LittleEndian.Uint16(b)&0x7C00 != 0x7C00 }

// tops are the indices that bring 4 of 16 bytes each to the top bytes of 4 words.
type tops struct{ a, b, c, d u8x16 }

var topBytes = [4][16]byte{
	{z, z, z, 0, z, z, z, 1, z, z, z, 2, z, z, z, 3},
	{z, z, z, 4, z, z, z, 5, z, z, z, 6, z, z, z, 7},
	{z, z, z, 8, z, z, z, 9, z, z, z, 10, z, z, z, 11},
	{z, z, z, 12, z, z, z, 13, z, z, z, 14, z, z, z, 15},
}

// z is an index for which lookup returns 0.
const z = 0x80

func loadTops() tops {
	return tops{archsimd.LoadUint8x16Array(&topBytes[0]), archsimd.LoadUint8x16Array(&topBytes[1]),
		archsimd.LoadUint8x16Array(&topBytes[2]), archsimd.LoadUint8x16Array(&topBytes[3])}
}

// words returns 4 of the bytes of v in the top bytes of 4 words, as floats.
func words(v, top u8x16) f32x4 {
	return lookup(v, top).ReshapeToUint32s().BitsToInt32().ConvertToFloat32()
}

// mul16 sets y to 2^24*d*v, v being signed.
func mul16(y []float32, v u8x16, t tops, d f32x4) {
	p := (*[16]float32)(y)
	store4(p[0:], words(v, t.a).Mul(d))
	store4(p[4:], words(v, t.b).Mul(d))
	store4(p[8:], words(v, t.c).Mul(d))
	store4(p[12:], words(v, t.d).Mul(d))
}

// mulAdd16 sets y to 2^24*d*v + m, rounded twice, v being signed.
func mulAdd16(y []float32, v u8x16, t tops, d, m f32x4) {
	p := (*[16]float32)(y)
	store4(p[0:], words(v, t.a).Mul(d).Add(m))
	store4(p[4:], words(v, t.b).Mul(d).Add(m))
	store4(p[8:], words(v, t.c).Mul(d).Add(m))
	store4(p[12:], words(v, t.d).Mul(d).Add(m))
}
