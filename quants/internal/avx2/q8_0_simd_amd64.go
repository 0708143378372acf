//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Q8_0, tiles of 8 blocks.
//
// Levels pack by saturation to 16 bits and one byte shuffle: simd/archsimd has no
// packing to 8 bits below AVX-512.

func QuantizeQ8_0(dst []byte, src, _ []float32) {
	encodeTiles32(dst, src, scalar.BytesQ8_0, encodeQ8_0AVX2)
}

// encodeTiles32 calls encode for tiles of 8 blocks of src. The last is filled up with zeros.
func encodeTiles32(dst []byte, src []float32, size int, encode func(dst []byte, x *tile32)) {
	for len(src) >= 8*pack.QK {
		encode(dst, (*tile32)(src))
		dst, src = dst[8*size:], src[8*pack.QK:]
	}
	if len(src) > 0 {
		var x tile32
		var q [8 * scalar.BytesQ8_0]byte // the largest size
		copy(x[:], src)
		encode(q[:], &x)
		copy(dst[:len(src)/pack.QK*size], q[:])
	}
}

// orderQ8 puts the bytes of 4 vectors of 8 elements in order, which are packed to
// 16 bits by twos, the first two in the low bytes: first within 128 bits, then 4
// bytes at a time.
var (
	orderQ8 = [32]int8{0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7,
		9, 11, 13, 15}
	orderQ8Words = [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}
)

func encodeQ8_0AVX2(dst []byte, x *tile32) {
	var s scales32
	maxAbs32(&s, x)
	{
		d := load8(s.max[:]).Div(ints8(0x42FE0000).AsFloat32x8()) // 127
		inverse8(d, ints8(0x3F800000).AsFloat32x8()).AsUint32x8().StoreArray(&s.inverse)
		storeF16(&s.d, d)
	}
	order, words := archsimd.LoadInt8x32Array(&orderQ8), archsimd.LoadUint32x8Array(&orderQ8Words)
	sign, half, low := ints8(1<<31), ints8(0x3EFFFFFF), ints8(0x00FF00FF)
	tile := (*[8 * scalar.BytesQ8_0]byte)(dst)
	for b := range 8 {
		x, q := block32(x, b), (*[scalar.BytesQ8_0]byte)(tile[scalar.BytesQ8_0*b:])
		id := ints8(s.inverse[b]).AsFloat32x8()
		binary.LittleEndian.PutUint16(q[:], uint16(s.d[b]))
		a := roundAway8(load8(x[0:]).Mul(id), sign,
			half).SaturateToInt16ConcatGrouped(roundAway8(load8(x[8:]).Mul(id), sign, half))
		c := roundAway8(load8(x[16:]).Mul(id), sign,
			half).SaturateToInt16ConcatGrouped(roundAway8(load8(x[24:]).Mul(id), sign, half))
		// -2^31 has become -2^15, whose low byte is 0 as well.
		lowBytes(a.AsInt32x8().And(low).AsUint16x16(), c.AsUint16x16(), order, words).StoreArray((*[32]byte)(q[2:]))
	}
	archsimd.ClearAVXUpperBits()
}

// lowBytes puts in order the low bytes of the 16 elements of a and c, each packed from two vectors; the high bytes of a
// are 0. order and words are orderQ8 and orderQ8Words.
func lowBytes(a, c u16x16, order archsimd.Int8x32, words u32x8) u8x32 {
	return a.Or(c.ShiftAllLeft(8)).AsUint8x32().PermuteOrZeroGrouped(order).AsUint32x8().Permute(words).AsUint8x32()
}

// roundAway8 is arith.RoundAway of 8 elements, exact below 2^22, and -2^31 for values outside of int32. Adding the
// float32 below 0.5 in the direction of v and truncating rounds half away: the sum reaches the next integer from
// exactly one half on.
func roundAway8(v f32x8, sign, half i32x8) i32x8 {
	h := v.AsInt32x8().And(sign).Or(half).AsFloat32x8()
	return v.Add(h).ConvertToInt32()
}
