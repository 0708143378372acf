//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"math"
	"simd/archsimd"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// Q4_0, Q4_1, Q5_0 and Q5_1 without importance, tiles of 8 blocks. With constant counts of blocks
// there are no bounds to check and few addresses to compute; these were a third of all instructions.
//
// The element of largest magnitude is the larger of maximum and minus minimum.
// Where they are equal its sign is that of the first one, found by the scalar
// code; so are the signs of zeros that are the minimum.

func QuantizeQ4_0(dst []byte, src, _ []float32) {
	encodeTiles32(dst, src, scalar.BytesQ4_0, encodeQ4_0AVX2)
}

func QuantizeQ4_1(dst []byte, src, _ []float32) {
	encodeTiles32(dst, src, scalar.BytesQ4_1, encodeQ4_1AVX2)
}

func QuantizeQ5_0(dst []byte, src, _ []float32) {
	encodeTiles32(dst, src, scalar.BytesQ5_0, encodeQ5_0AVX2)
}

func QuantizeQ5_1(dst []byte, src, _ []float32) {
	encodeTiles32(dst, src, scalar.BytesQ5_1, encodeQ5_1AVX2)
}

// scaleSym sets the scales of the types without a minimum: factor is the bits of
// -1/8 or -1/16, by which multiplying is the same as dividing by -8 or -16.
func scaleSym(s *scales32, x *tile32, factor uint32) {
	range32(s, x)
	signedLargest(s, x)
	d := archsimd.LoadUint32x8Array(&s.first).AsFloat32x8().Mul(ints8(factor).AsFloat32x8())
	inverse8(d, ints8(0x3F800000).AsFloat32x8()).AsUint32x8().StoreArray(&s.inverse)
	storeF16(&s.d, d)
}

// signedLargest sets s.first to the element of largest magnitude of each block, from its range.
func signedLargest(s *scales32, x *tile32) {
	var zero f32x8
	lo, hi := load8(s.min[:]), load8(s.max[:])
	neg := lo.AsInt32x8().Xor(ints8(1 << 31)).AsFloat32x8()
	hi.IfElse(hi.Greater(neg), lo).Add(zero).AsUint32x8().StoreArray(&s.first) // -0 + 0 is 0
	// Both signs have the largest magnitude: the first one counts.
	tie := hi.Equal(neg).And(hi.NotEqual(zero)).ToBits()
	if tie != 0 {
		archsimd.ClearAVXUpperBits()
		firstLargest(s, x, tie)
	}
}

//go:noinline
func firstLargest(s *scales32, x *tile32, blocks uint8) {
	for b := range s.first {
		if blocks>>b&1 != 0 {
			s.first[b] = math.Float32bits(arith.Largest(x[pack.QK*b:][:pack.QK]))
		}
	}
}

// scaleAsym sets the scales of the types with a minimum; levels is the bits of
// the largest level.
func scaleAsym(s *scales32, x *tile32, levels uint32) {
	range32(s, x)
	var zero f32x8
	// Zeros differ in their sign, which is stored: that of the first counts.
	if zeros := load8(s.min[:]).Equal(zero).ToBits(); zeros != 0 {
		archsimd.ClearAVXUpperBits()
		firstRange(s, x, zeros)
	}
	lo := load8(s.min[:])
	d := load8(s.max[:]).Sub(lo).Div(ints8(levels).AsFloat32x8())
	inverse8(d, ints8(0x3F800000).AsFloat32x8()).AsUint32x8().StoreArray(&s.inverse)
	lo.AsUint32x8().StoreArray(&s.first)
	storeF16(&s.d, d)
	storeF16(&s.m, lo)
}

//go:noinline
func firstRange(s *scales32, x *tile32, blocks uint8) {
	for b := range s.min {
		if blocks>>b&1 != 0 {
			s.min[b], s.max[b] = search.BlockRange(x[pack.QK*b:][:pack.QK])
		}
	}
}

// orderNibbles puts the bytes of two vectors of 8, packed to 16 bits, in order.
var orderNibbles = [32]int8{
	0, 2, 4, 6, -1, -1, -1, -1, 8, 10, 12, 14, -1, -1, -1, -1,
	-1, -1, -1, -1, 0, 2, 4, 6, -1, -1, -1, -1, 8, 10, 12, 14,
}

// storeNibbles is pack.Nibbles of codes below 16, 8 per vector.
func storeNibbles(dst *[16]byte, c0, c1, c2, c3 i32x8, order archsimd.Int8x32) {
	a, b := c0.Or(c2.ShiftAllLeft(4)), c1.Or(c3.ShiftAllLeft(4))
	inOrder(a.SaturateToUint16ConcatGrouped(b), order).StoreArray(dst)
}

// inOrder packs two vectors of 8 bytes, packed to 16 bits; order is orderNibbles.
func inOrder(v u16x16, order archsimd.Int8x32) archsimd.Uint8x16 {
	p := v.AsUint8x32().PermuteOrZeroGrouped(order)
	return p.GetLo().Or(p.GetHi())
}

// codes16 rounds two vectors by adding and truncating and packs them to 16 bits. Values that do not fit an int32
// give 0; no others can be below 0.
func codes16(v, w, add f32x8, top u16x16) u16x16 {
	return v.Add(add).ConvertToInt32().SaturateToUint16ConcatGrouped(w.Add(add).ConvertToInt32()).Min(top)
}

func encodeQ4_0AVX2(dst []byte, x *tile32) {
	var s scales32
	scaleSym(&s, x, 0xBE000000) // -1/8
	order := archsimd.LoadInt8x32Array(&orderNibbles)
	add, top := ints8(0x41080000).AsFloat32x8(), archsimd.BroadcastUint16x16(15) // 8.5
	tile := (*[8 * scalar.BytesQ4_0]byte)(dst)
	for b := range 8 {
		x, q := block32(x, b), (*[scalar.BytesQ4_0]byte)(tile[scalar.BytesQ4_0*b:])
		id := ints8(s.inverse[b]).AsFloat32x8()
		binary.LittleEndian.PutUint16(q[:], uint16(s.d[b]))
		lo := codes16(load8(x[0:]).Mul(id), load8(x[8:]).Mul(id), add, top)
		hi := codes16(load8(x[16:]).Mul(id), load8(x[24:]).Mul(id), add, top)
		inOrder(lo.Or(hi.ShiftAllLeft(4)), order).StoreArray((*[16]byte)(q[2:]))
	}
	archsimd.ClearAVXUpperBits()
}

func encodeQ4_1AVX2(dst []byte, x *tile32) {
	var s scales32
	scaleAsym(&s, x, 0x41700000) // 15
	order := archsimd.LoadInt8x32Array(&orderNibbles)
	add, top := ints8(halfBits).AsFloat32x8(), archsimd.BroadcastUint16x16(15)
	tile := (*[8 * scalar.BytesQ4_1]byte)(dst)
	for b := range 8 {
		x, q := block32(x, b), (*[scalar.BytesQ4_1]byte)(tile[scalar.BytesQ4_1*b:])
		id, min := ints8(s.inverse[b]).AsFloat32x8(), ints8(s.first[b]).AsFloat32x8()
		binary.LittleEndian.PutUint16(q[:], uint16(s.d[b]))
		binary.LittleEndian.PutUint16(q[2:], uint16(s.m[b]))
		low := codes16(load8(x[0:]).Sub(min).Mul(id), load8(x[8:]).Sub(min).Mul(id), add, top)
		high := codes16(load8(x[16:]).Sub(min).Mul(id), load8(x[24:]).Sub(min).Mul(id), add, top)
		inOrder(low.Or(high.ShiftAllLeft(4)), order).StoreArray((*[16]byte)(q[4:]))
	}
	archsimd.ClearAVXUpperBits()
}

func encodeQ5_0AVX2(dst []byte, x *tile32) {
	var s scales32
	scaleSym(&s, x, 0xBD800000) // -1/16
	order, words, low := archsimd.LoadInt8x32Array(&orderQ8), archsimd.LoadUint32x8Array(&orderQ8Words),
		archsimd.BroadcastInt8x32(15)
	add, top := ints8(0x41840000).AsFloat32x8(), archsimd.BroadcastUint16x16(31) // 16.5
	tile := (*[8 * scalar.BytesQ5_0]byte)(dst)
	for b := range 8 {
		x, q := block32(x, b), (*[scalar.BytesQ5_0]byte)(tile[scalar.BytesQ5_0*b:])
		id := ints8(s.inverse[b]).AsFloat32x8()
		binary.LittleEndian.PutUint16(q[:], uint16(s.d[b]))
		storeFives((*[20]byte)(q[2:]), codes16(load8(x[0:]).Mul(id), load8(x[8:]).Mul(id), add, top),
			codes16(load8(x[16:]).Mul(id), load8(x[24:]).Mul(id), add, top), order, words, low)
	}
	archsimd.ClearAVXUpperBits()
}

func encodeQ5_1AVX2(dst []byte, x *tile32) {
	var s scales32
	scaleAsym(&s, x, 0x41F80000) // 31
	order, words, low := archsimd.LoadInt8x32Array(&orderQ8), archsimd.LoadUint32x8Array(&orderQ8Words),
		archsimd.BroadcastInt8x32(15)
	add, top := ints8(halfBits).AsFloat32x8(), archsimd.BroadcastUint16x16(31)
	tile := (*[8 * scalar.BytesQ5_1]byte)(dst)
	for b := range 8 {
		x, q := block32(x, b), (*[scalar.BytesQ5_1]byte)(tile[scalar.BytesQ5_1*b:])
		id, min := ints8(s.inverse[b]).AsFloat32x8(), ints8(s.first[b]).AsFloat32x8()
		binary.LittleEndian.PutUint16(q[:], uint16(s.d[b]))
		binary.LittleEndian.PutUint16(q[2:], uint16(s.m[b]))
		storeFives((*[20]byte)(q[4:]), codes16(load8(x[0:]).Sub(min).Mul(id), load8(x[8:]).Sub(min).Mul(id), add, top),
			codes16(load8(x[16:]).Sub(min).Mul(id), load8(x[24:]).Sub(min).Mul(id), add, top), order, words, low)
	}
	archsimd.ClearAVXUpperBits()
}

// storeFives is pack.FifthBits and pack.Nibbles of codes below 32: a the first 16 and c the others, packed to 16 bits.
func storeFives(dst *[20]byte, a, c u16x16, order archsimd.Int8x32, words u32x8, low archsimd.Int8x32) {
	v := lowBytes(a, c, order, words).AsInt8x32()
	binary.LittleEndian.PutUint32(dst[:], v.Greater(low).ToBits())
	v = v.And(low)
	v.GetLo().AsUint16x8().Or(v.GetHi().AsUint16x8().ShiftAllLeft(4)).AsUint8x16().StoreArray((*[16]byte)(dst[4:]))
}
