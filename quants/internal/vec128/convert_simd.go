//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"simd/archsimd"

	"ggforge/quants/internal/scalar"
)

// Conversions between F32, F16, BF16 and float32, and the search for values that are not finite. An F16 takes 14
// operations for 4 elements to encode, 13 to decode; BF16 takes 9 and 1.

func QuantizeF32(dst []byte, src, _ []float32) {
	n := encodeF32(dst, src)
	scalar.QuantizeF32(dst[4*n:], src[n:], nil)
}

func encodeF32(dst []byte, src []float32) (n int) {
	clearUpper()
	for len(src) >= 32 && len(dst) >= 128 {
		d, s := (*[128]byte)(dst), (*[32]float32)(src)
		storeBytes(d[0:], load4(s[0:]).ToBits().ReshapeToUint8s())
		storeBytes(d[16:], load4(s[4:]).ToBits().ReshapeToUint8s())
		storeBytes(d[32:], load4(s[8:]).ToBits().ReshapeToUint8s())
		storeBytes(d[48:], load4(s[12:]).ToBits().ReshapeToUint8s())
		storeBytes(d[64:], load4(s[16:]).ToBits().ReshapeToUint8s())
		storeBytes(d[80:], load4(s[20:]).ToBits().ReshapeToUint8s())
		storeBytes(d[96:], load4(s[24:]).ToBits().ReshapeToUint8s())
		storeBytes(d[112:], load4(s[28:]).ToBits().ReshapeToUint8s())
		dst, src = dst[128:], src[32:]
		n += 32
	}
	return n
}

func DequantizeF32(dst []float32, src []byte) {
	n := decodeF32(dst, src)
	scalar.DequantizeF32(dst[n:], src[4*n:])
}

func decodeF32(dst []float32, src []byte) (n int) {
	clearUpper()
	for len(dst) >= 32 && len(src) >= 128 {
		d, s := (*[32]float32)(dst), (*[128]byte)(src)
		store4(d[0:], loadBytes(s[0:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[4:], loadBytes(s[16:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[8:], loadBytes(s[32:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[12:], loadBytes(s[48:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[16:], loadBytes(s[64:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[20:], loadBytes(s[80:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[24:], loadBytes(s[96:]).ReshapeToUint32s().BitsToFloat32())
		store4(d[28:], loadBytes(s[112:]).ReshapeToUint32s().BitsToFloat32())
		dst, src = dst[32:], src[128:]
		n += 32
	}
	return n
}

// Constants of toF16: masks, numbers and shift counts.
type (
	halfMasks struct{ abs, odd, quiet i32x4 } // all but the sign; the lowest bit; that of a quiet NaN
	// 0.5; the difference of the exponents and the rounding term; 2^-14; infinity
	halfLimits  struct{ half, bias, normal, infinite i32x4 }
	halfResults struct{ inf, by13, by16 i32x4 } // infinity of float16
)

func loadToHalf() (halfMasks, halfLimits, halfResults) {
	return halfMasks{broadcast(0x7FFFFFFF), broadcast(1), broadcast(0x200)},
		halfLimits{broadcast(0x3F000000), broadcast(0x1000 - 1 - 112<<23 + 1<<32), broadcast(0x38800000),
			broadcast(0x7F800000)},
		halfResults{broadcast(0x7C00), broadcast(1<<32 - 13), broadcast(1<<32 - 16)}
}

func broadcast(v uint32) i32x4 { return ints4(v).BitsToInt32() }

// toF16 is half.ToF16 of 4 elements: the result is in the low half of each lane, the high half is 0.
func toF16(v f32x4, m halfMasks, l halfLimits, r halfResults) i32x4 {
	x := bits(v)
	a := x.And(m.abs)
	small := bits(floats(a).Add(floats(l.half))).Sub(l.half)
	// NaN becomes infinity, and then NaN
	h := shiftRight(a.Add(l.bias).Add(shiftRight(a, 13, r.by13).And(m.odd)), 13, r.by13).Min(r.inf)
	h = h.Or(a.Greater(l.infinite).ToInt32x4().And(m.quiet))
	h = small.IfElse(l.normal.Greater(a), h)
	return h.Or(shiftRightBits(x.Xor(a), 16, r.by16))
}

func bits(v f32x4) i32x4 { return v.ToBits().BitsToInt32() }

func floats(v i32x4) f32x4 { return v.ToBits().BitsToFloat32() }

func QuantizeF16(dst []byte, src, _ []float32) {
	n := encodeF16(dst, src)
	scalar.QuantizeF16(dst[2*n:], src[n:], nil)
}

func encodeF16(dst []byte, src []float32) (n int) {
	clearUpper()
	m, l, r := loadToHalf()
	for len(src) >= 16 && len(dst) >= 32 {
		d, s := (*[32]byte)(dst), (*[16]float32)(src)
		storeBytes(d[0:], narrow2(toF16(load4(s[0:]), m, l, r), toF16(load4(s[4:]), m, l, r)))
		storeBytes(d[16:], narrow2(toF16(load4(s[8:]), m, l, r), toF16(load4(s[12:]), m, l, r)))
		dst, src = dst[32:], src[16:]
		n += 16
	}
	return n
}

func DequantizeF16(dst []float32, src []byte) {
	n := decodeF16(dst, src)
	scalar.DequantizeF16(dst[n:], src[2*n:])
}

// topHalves are the indices that bring 4 of 8 pairs of bytes to the top of 4 words.
var topHalves = [2][16]byte{
	{z, z, 0, 1, z, z, 2, 3, z, z, 4, 5, z, z, 6, 7},
	{z, z, 8, 9, z, z, 10, 11, z, z, 12, 13, z, z, 14, 15},
}

// Constants of fromF16: masks of all bits but the sign and of the sign, and a shift count; the largest finite value,
// the difference of the exponents, 2^-126 and 2^-14.
type (
	floatMasks  struct{ mag, sign, by3 i32x4 }
	floatLimits struct{ finite, bias, least, small i32x4 }
)

// fromF16 is half.FromF16 of 4 elements, which are in the high halves of the words. A value below the normal ones is
// put next to 2^-14, which is then subtracted: processors take more than a hundred cycles for a float32 that is not
// normal. Subtracting 0 makes a NaN quiet.
func fromF16(h i32x4, m floatMasks, c floatLimits) f32x4 {
	u := shiftRight(h, 3, m.by3).And(m.mag)
	low := c.least.Greater(u).ToInt32x4()
	f := u.Add(c.bias).Add(u.Greater(c.finite).ToInt32x4().And(c.bias)).Add(low.And(c.least))
	return floats(bits(floats(f).Sub(floats(low.And(c.small)))).Or(h.And(m.sign)))
}

func decodeF16(dst []float32, src []byte) (n int) {
	clearUpper()
	m := floatMasks{broadcast(0x7FFF << 13), broadcast(1 << 31), broadcast(1<<32 - 3)}
	c := floatLimits{broadcast(0x7C00<<13 - 1), broadcast(112 << 23), broadcast(1 << 23), broadcast(113 << 23)}
	lo, hi := archsimd.LoadUint8x16Array(&topHalves[0]), archsimd.LoadUint8x16Array(&topHalves[1])
	for len(dst) >= 16 && len(src) >= 32 {
		d, v, w := (*[16]float32)(dst), loadBytes(src), loadBytes(src[16:])
		store4(d[0:], fromF16(lookup(v, lo).ReshapeToUint32s().BitsToInt32(), m, c))
		store4(d[4:], fromF16(lookup(v, hi).ReshapeToUint32s().BitsToInt32(), m, c))
		store4(d[8:], fromF16(lookup(w, lo).ReshapeToUint32s().BitsToInt32(), m, c))
		store4(d[12:], fromF16(lookup(w, hi).ReshapeToUint32s().BitsToInt32(), m, c))
		dst, src = dst[16:], src[32:]
		n += 16
	}
	return n
}

func QuantizeBF16(dst []byte, src, _ []float32) {
	n := encodeBF16(dst, src)
	scalar.QuantizeBF16(dst[2*n:], src[n:], nil)
}

func encodeBF16(dst []byte, src []float32) (n int) {
	clearUpper()
	bias, quiet, odd, by16 := broadcast(0x7FFF), broadcast(0x400000), broadcast(1), broadcast(1<<32-16)
	for len(src) >= 16 && len(dst) >= 32 {
		d, s := (*[32]byte)(dst), (*[16]float32)(src)
		storeBytes(d[0:], narrowHigh2(toBF16(load4(s[0:]), bias, quiet, odd, by16),
			toBF16(load4(s[4:]), bias, quiet, odd, by16)))
		storeBytes(d[16:], narrowHigh2(toBF16(load4(s[8:]), bias, quiet, odd, by16),
			toBF16(load4(s[12:]), bias, quiet, odd, by16)))
		dst, src = dst[32:], src[16:]
		n += 16
	}
	return n
}

// toBF16 is half.ToBF16 of 4 elements, in the high halves of the lanes.
func toBF16(v f32x4, bias, quiet, odd, by16 i32x4) i32x4 {
	x := bits(v)
	return x.Add(bias).Add(shiftRight(x, 16, by16).And(odd)).IfElse(v.Equal(v), x.Or(quiet))
}

func DequantizeBF16(dst []float32, src []byte) {
	n := decodeBF16(dst, src)
	scalar.DequantizeBF16(dst[n:], src[2*n:])
}

func decodeBF16(dst []float32, src []byte) (n int) {
	clearUpper()
	lo, hi := archsimd.LoadUint8x16Array(&topHalves[0]), archsimd.LoadUint8x16Array(&topHalves[1])
	for len(dst) >= 32 && len(src) >= 64 {
		d, s := (*[32]float32)(dst), (*[64]byte)(src)
		for i := range 4 {
			v, d := loadBytes(s[16*i:]), (*[8]float32)(d[8*i:])
			store4(d[0:], lookup(v, lo).ReshapeToUint32s().BitsToFloat32())
			store4(d[4:], lookup(v, hi).ReshapeToUint32s().BitsToFloat32())
		}
		dst, src = dst[32:], src[64:]
		n += 32
	}
	return n
}

// FiniteChunks is that of package avx2, but takes the largest exponents: those of float32 are in the upper halves of
// words, so that pairs of bytes can be compared for all three.
func FiniteChunks(src []byte, exp, _ uint64) (n int) {
	clearUpper()
	e := words64(exp).ReshapeToUint16s()
	for len(src) >= scalar.FiniteChunk {
		var a, b archsimd.Uint16x8
		for c := src[:scalar.FiniteChunk]; len(c) >= 256; c = c[256:] {
			v := (*[256]byte)(c)
			a = largest(a, v[0:], e)
			b = largest(b, v[128:], e)
		}
		found := a.Max(b).Equal(e).ToInt16x8().ToBits().And(e).ReshapeToUint64s() // equal, too, where exp is 0
		if found.GetElem(0)|found.GetElem(1) != 0 {
			break
		}
		src = src[scalar.FiniteChunk:]
		n += scalar.FiniteChunk
	}
	return n
}

func words64(v uint64) archsimd.Uint64x2 {
	var w archsimd.Uint64x2
	return w.SetElem(0, v).SetElem(1, v)
}

// largest returns the largest of m and of the exponents in 128 bytes.
func largest(m archsimd.Uint16x8, b []byte, exp archsimd.Uint16x8) archsimd.Uint16x8 {
	v := (*[128]byte)(b)
	m = m.Max(exponents(v[0:], exp)).Max(exponents(v[16:], exp)).Max(exponents(v[32:], exp)).Max(exponents(v[48:], exp))
	return m.Max(exponents(v[64:], exp)).Max(exponents(v[80:], exp)).Max(exponents(v[96:],
		exp)).Max(exponents(v[112:], exp))
}

func exponents(b []byte, exp archsimd.Uint16x8) archsimd.Uint16x8 {
	return loadBytes(b).ReshapeToUint16s().And(exp)
}
