//go:build goexperiment.simd && go1.27

// Package avx2 has kernels of 256 bits for amd64. They widen, narrow and shuffle
// elements, which package simd cannot do: hence simd/archsimd, and the scalar code
// elsewhere. cpu.Machine decides where they run. QuantizeX and DequantizeX are those of
// package scalar; the encoders of Q4_0, Q4_1, Q5_0 and Q5_1 ignore importance.
//
// Common to all:
//
//   - A kernel takes as much as it can in whole steps and returns how much that was;
//     a scalar function does the rest.
//   - A function that holds vectors has no scalar float32 (golang/go#80835):
//     constants and scales are broadcast as integers.
//   - A kernel ends with ClearAVXUpperBits.
//   - Bytes are loaded as such and reinterpreted: amd64 is little-endian.
package avx2

import (
	"simd/archsimd"

	"ggforge/quants/internal/pack"
)

type (
	f32x8  = archsimd.Float32x8
	i32x8  = archsimd.Int32x8
	u32x8  = archsimd.Uint32x8
	u8x32  = archsimd.Uint8x32
	u16x16 = archsimd.Uint16x16
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

// A tile is 8 blocks of 32 elements: their scales are computed together, one
// block per lane.
type tile32 = [8 * pack.QK]float32

// scales32 are numbers of the 8 blocks of a tile: those of the search, the bits
// of the inverse scale to multiply with, and the float16 bits that are stored.
type scales32 struct {
	min, max [8]float32
	first    [8]uint32 // bits of the largest element, or of the minimum that is subtracted
	inverse  [8]uint32
	d, m     [8]uint32
}

func load8(x []float32) f32x8 { return archsimd.LoadFloat32x8Array((*[8]float32)(x)) }

// max32, max64 and max128 take the pairwise maximum of two vectors whose groups
// of 1, 2 or 4 lanes stand for one block each: the groups of the result stand for
// the blocks of a, then b, twice as often. Three levels of them turn 8 vectors
// into one whose lane i is the maximum of vector i.
func max32(a, b f32x8) f32x8 {
	x, y := a.AsInt32x8(), b.AsInt32x8()
	return x.InterleaveLoGrouped(y).AsFloat32x8().Max(x.InterleaveHiGrouped(y).AsFloat32x8())
}

func max64(a, b f32x8) f32x8 {
	x, y := a.AsUint64x4(), b.AsUint64x4()
	return x.InterleaveLoGrouped(y).AsFloat32x8().Max(x.InterleaveHiGrouped(y).AsFloat32x8())
}

func max128(a, b f32x8) f32x8 {
	return a.ConcatPermute128Scalars(0, 2, b).Max(a.ConcatPermute128Scalars(1, 3, b))
}

// reduceMax sets m[i] to the maximum of p[i].
func reduceMax(m *[8]float32, p *[8][8]float32) {
	a := max64(max32(load8(p[0][:]), load8(p[1][:])), max32(load8(p[2][:]), load8(p[3][:])))
	b := max64(max32(load8(p[4][:]), load8(p[5][:])), max32(load8(p[6][:]), load8(p[7][:])))
	max128(a, b).StoreArray(m)
}

// block32 is block b of a tile; where b is a constant, it costs nothing.
func block32(x *tile32, b int) *[pack.QK]float32 { return (*[pack.QK]float32)(x[pack.QK*b:]) }

// maxAbs32 sets s.max to the largest magnitude of each block.
func maxAbs32(s *scales32, x *tile32) {
	abs := ints8(absBits)
	a := max64(max32(maxAbs(block32(x, 0), abs), maxAbs(block32(x, 1), abs)),
		max32(maxAbs(block32(x, 2), abs), maxAbs(block32(x, 3), abs)))
	b := max64(max32(maxAbs(block32(x, 4), abs), maxAbs(block32(x, 5), abs)),
		max32(maxAbs(block32(x, 6), abs), maxAbs(block32(x, 7), abs)))
	max128(a, b).StoreArray(&s.max)
}

// maxAbs is the largest magnitudes of elements 8 apart.
func maxAbs(x *[pack.QK]float32, abs i32x8) f32x8 {
	v := load8(x[0:]).AsInt32x8().And(abs).Max(load8(x[8:]).AsInt32x8().And(abs))
	w := load8(x[16:]).AsInt32x8().And(abs).Max(load8(x[24:]).AsInt32x8().And(abs))
	return v.Max(w).AsFloat32x8()
}

// range32 sets s.min and s.max to the range of each block; the sign of a zero is
// any.
func range32(s *scales32, x *tile32) {
	sign := ints8(1 << 31)
	lo0, hi0 := rangeOf(block32(x, 0), block32(x, 1), sign)
	lo1, hi1 := rangeOf(block32(x, 2), block32(x, 3), sign)
	lo2, hi2 := rangeOf(block32(x, 4), block32(x, 5), sign)
	lo3, hi3 := rangeOf(block32(x, 6), block32(x, 7), sign)
	max128(max64(hi0, hi1), max64(hi2, hi3)).StoreArray(&s.max)
	max128(max64(lo0, lo1), max64(lo2, lo3)).AsInt32x8().Xor(sign).AsFloat32x8().StoreArray(&s.min)
}

// rangeOf is max32 of two blocks, of minus their minima and of their maxima.
func rangeOf(x, y *[pack.QK]float32, sign i32x8) (lo, hi f32x8) {
	x0, x1, x2, x3 := load8(x[0:]), load8(x[8:]), load8(x[16:]), load8(x[24:])
	y0, y1, y2, y3 := load8(y[0:]), load8(y[8:]), load8(y[16:]), load8(y[24:])
	xLo := x0.Min(x1).Min(x2.Min(x3)).AsInt32x8().Xor(sign).AsFloat32x8()
	yLo := y0.Min(y1).Min(y2.Min(y3)).AsInt32x8().Xor(sign).AsFloat32x8()
	return max32(xLo, yLo), max32(x0.Max(x1).Max(x2.Max(x3)), y0.Max(y1).Max(y2.Max(y3)))
}

// inverse8 is inverse of 8 elements.
func inverse8(d f32x8, one f32x8) i32x8 {
	var zero f32x8
	return one.Div(d).AsInt32x8().Masked(d.NotEqual(zero))
}

// storeF16 sets bits to the float16 bits of v, one per element.
func storeF16(bits *[8]uint32, v f32x8) {
	h := toF16x8(v, ints8(absBits), ints8(halfBits), ints8(biasF16), ints8(infF16), ints8(quietF16), ints8(normalF16))
	h.AsUint32x8().StoreArray(bits)
}

func loadInts(v *[8]uint32) i32x8 { return archsimd.LoadUint32x8Array(v).AsInt32x8() }

func load16(b []byte) archsimd.Uint8x16 { return archsimd.LoadUint8x16Array((*[16]byte)(b)) }

func store8(x []float32, v f32x8) { v.StoreArray((*[8]float32)(x)) }
