//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"encoding/binary"
	"math"

	"ggforge/internal/kernel/half"
	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/search"
)

// Encoders of Q8_0, and of Q4_0, Q4_1, Q5_0 and Q5_1 without importance. Vectors find the largest elements of 8 blocks,
// scalar code makes their scales in the way of package scalar, and vectors make the codes.
//
// A block whose elements are not finite, or whose scale is so small that its inverse is infinite, is left to the scalar
// encoder: no other has a quotient that does not fit an int32, which arm64 and amd64 convert differently.
//
// The element of largest magnitude is the larger of maximum and minus minimum. Where they are equal its sign is that
// of the first one, found by the scalar code; so are the signs of zeros that are the minimum.

// tile has the facts about 8 blocks, float32 as bits.
type tile struct {
	lo, hi  [8][4]uint32 // four candidates for each block's minimum and maximum, or magnitude
	first   [8]uint32    // the minimum that is subtracted, or the largest magnitude
	inverse [8]uint32
	d, m    [8]uint16 // float16
	left    uint8     // bit i: block i is left to the scalar encoder
}

// forTiles calls encode for 8 blocks of src, or fewer for the last, and the scalar encoder for those that it leaves.
func forTiles(dst []byte, src []float32, size, length int, encode func(dst []byte, x []float32, n int) (left uint8),
	plain func(dst []byte, src, _ []float32)) {
	for len(src) > 0 {
		n := min(8, len(src)/length)
		left := encode(dst[:n*size], src[:n*length], n)
		for i := range n {
			if left>>i&1 != 0 {
				plain(dst[i*size:][:size:size], src[i*length:][:length:length], nil)
			}
		}
		dst, src = dst[n*size:], src[n*length:]
	}
}

// magnitudes sets t.hi to the largest magnitudes of n blocks of some elements, a multiple of 16.
func (t *tile) magnitudes(x []float32, length, n int) {
	clearUpper()
	abs := broadcast(0x7FFFFFFF)
	for b := range n {
		var m i32x4
		for s := x[b*length:][:length]; len(s) >= 16; s = s[16:] {
			p := (*[16]float32)(s)
			v := bits(load4(p[0:])).And(abs).Max(bits(load4(p[4:])).And(abs))
			m = m.Max(v).Max(bits(load4(p[8:])).And(abs).Max(bits(load4(p[12:])).And(abs)))
		}
		m.ToBits().StoreArray(&t.hi[b&7])
	}
}

// magnitude returns the largest magnitude of block b, as bits.
func (t *tile) magnitude(b int) uint32 {
	p := &t.hi[b&7]
	return max(p[0], p[1], p[2], p[3])
}

// setInverse keeps d and its inverse for block b, and leaves the block if they are not finite.
func (t *tile) setInverse(b int, d float32) {
	u := math.Float32bits(arith.Inverse(d))
	if math.Float32bits(d)&(1<<31-1) >= 0x7F800000 || u&(1<<31-1) >= 0x7F800000 {
		t.left |= 1 << b
		u = 0
	}
	t.d[b&7], t.inverse[b&7] = half.ToF16(d), u
}

// ranges sets t.lo and t.hi to the ranges of n blocks of 32 elements; zeros may have either sign.
func (t *tile) ranges(x []float32, n int) {
	clearUpper()
	for b := range n {
		p := (*[pack.QK]float32)(x[pack.QK*b:])
		v0, v1, v2, v3 := load4(p[0:]), load4(p[4:]), load4(p[8:]), load4(p[12:])
		w0, w1, w2, w3 := load4(p[16:]), load4(p[20:]), load4(p[24:]), load4(p[28:])
		v0.Max(v1).Max(v2.Max(v3)).Max(w0.Max(w1).Max(w2.Max(w3))).ToBits().StoreArray(&t.hi[b&7])
		v0.Min(v1).Min(v2.Min(v3)).Min(w0.Min(w1).Min(w2.Min(w3))).ToBits().StoreArray(&t.lo[b&7])
	}
}

// limits returns the minimum and the maximum of block b.
func (t *tile) limits(b int) (lo, hi float32) {
	p, q := &t.lo[b&7], &t.hi[b&7]
	lo, hi = math.Float32frombits(p[0]), math.Float32frombits(q[0])
	for i := 1; i < 4; i++ {
		if v := math.Float32frombits(p[i]); v < lo {
			lo = v
		}
		if v := math.Float32frombits(q[i]); v > hi {
			hi = v
		}
	}
	return lo, hi
}

// scaleSym sets the scales of the types without a minimum; their largest element is d times divisor.
func (t *tile) scaleSym(x []float32, n int, divisor float32) {
	t.ranges(x, n)
	for b := range n {
		lo, hi := t.limits(b)
		m := lo
		switch {
		case hi > -lo:
			m = hi
		case hi == -lo:
			m = arith.Largest(x[pack.QK*b:][:pack.QK])
		}
		t.setInverse(b, m/divisor)
	}
}

// scaleAsym sets the scales of the types with a minimum.
func (t *tile) scaleAsym(x []float32, n int, levels float32) {
	t.ranges(x, n)
	for b := range n {
		lo, hi := t.limits(b)
		if lo == 0 {
			lo, hi = search.BlockRange(x[pack.QK*b:][:pack.QK])
		}
		t.first[b&7], t.m[b&7] = math.Float32bits(lo), half.ToF16(lo)
		t.setInverse(b, (hi-lo)/levels)
	}
}

func QuantizeQ8_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ8_0, pack.QK, encodeQ8_0, scalar.QuantizeQ8_0)
}

func encodeQ8_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.magnitudes(x, pack.QK, n)
	for b := range n {
		t.setInverse(b, math.Float32frombits(t.magnitude(b))/127)
	}
	levelsQ8_0(&t, dst, x, n)
	return t.left
}

func levelsQ8_0(t *tile, dst []byte, x []float32, n int) {
	sign, half := ints4(1<<31), ints4(0x3EFFFFFF)
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesQ8_0]byte)(dst[scalar.BytesQ8_0*b:])
		id := float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		storeBytes(q[2:], narrow4(roundAway(load4(p[0:]), id, sign, half), roundAway(load4(p[4:]), id, sign, half),
			roundAway(load4(p[8:]), id, sign, half), roundAway(load4(p[12:]), id, sign, half)))
		storeBytes(q[18:], narrow4(roundAway(load4(p[16:]), id, sign, half), roundAway(load4(p[20:]), id, sign, half),
			roundAway(load4(p[24:]), id, sign, half), roundAway(load4(p[28:]), id, sign, half)))
	}
}

// roundAway is arith.RoundAway of v*id, exact below 2^22. Adding the float32 below 0.5 in the direction of the product
// and truncating rounds half away: the sum reaches the next integer from exactly one half on.
func roundAway(v, id f32x4, sign, half u32x4) i32x4 {
	v = v.Mul(id)
	return v.Add(v.ToBits().And(sign).Or(half).BitsToFloat32()).ConvertToInt32()
}

// codes16 returns the codes of 16 elements less lo, times id: rounded by adding and truncating, no more than top.
func codes16(x []float32, lo, id, add f32x4, top u8x16) u8x16 {
	p := (*[16]float32)(x)
	return narrow4(load4(p[0:]).Sub(lo).Mul(id).Add(add).ConvertToInt32(),
		load4(p[4:]).Sub(lo).Mul(id).Add(add).ConvertToInt32(),
		load4(p[8:]).Sub(lo).Mul(id).Add(add).ConvertToInt32(),
		load4(p[12:]).Sub(lo).Mul(id).Add(add).ConvertToInt32()).Min(top)
}

func QuantizeQ4_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ4_0, pack.QK, encodeQ4_0, scalar.QuantizeQ4_0)
}

func encodeQ4_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.scaleSym(x, n, -8)
	levelsQ4_0(&t, dst, x, n)
	return t.left
}

func levelsQ4_0(t *tile, dst []byte, x []float32, n int) {
	var zero f32x4
	add, top := float4(0x41080000), bytes16(15) // 8.5
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesQ4_0]byte)(dst[scalar.BytesQ4_0*b:])
		id := float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		storeBytes(q[2:], codes16(p[:16], zero, id, add, top).Or(shl8(codes16(p[16:], zero, id, add, top), 4)))
	}
}

func QuantizeQ4_1(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ4_1, pack.QK, encodeQ4_1, scalar.QuantizeQ4_1)
}

func encodeQ4_1(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.scaleAsym(x, n, 15)
	levelsQ4_1(&t, dst, x, n)
	return t.left
}

func levelsQ4_1(t *tile, dst []byte, x []float32, n int) {
	add, top := float4(0x3F000000), bytes16(15)
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesQ4_1]byte)(dst[scalar.BytesQ4_1*b:])
		lo, id := float4(t.first[b&7]), float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		binary.LittleEndian.PutUint16(q[2:], t.m[b&7])
		storeBytes(q[4:], codes16(p[:16], lo, id, add, top).Or(shl8(codes16(p[16:], lo, id, add, top), 4)))
	}
}

func QuantizeQ5_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ5_0, pack.QK, encodeQ5_0, scalar.QuantizeQ5_0)
}

func encodeQ5_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.scaleSym(x, n, -16)
	levelsQ5_0(&t, dst, x, n)
	return t.left
}

func levelsQ5_0(t *tile, dst []byte, x []float32, n int) {
	var zero f32x4
	add, top, low := float4(0x41840000), bytes16(31), bytes16(15) // 16.5
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesQ5_0]byte)(dst[scalar.BytesQ5_0*b:])
		id := float4(t.inverse[b&7])
		u, v := codes16(p[:16], zero, id, add, top), codes16(p[16:], zero, id, add, top)
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		binary.LittleEndian.PutUint32(q[2:], fifthBits(u)|fifthBits(v)<<16)
		storeBytes(q[6:], u.And(low).Or(shl8(v.And(low), 4)))
	}
}

func QuantizeQ5_1(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ5_1, pack.QK, encodeQ5_1, scalar.QuantizeQ5_1)
}

func encodeQ5_1(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.scaleAsym(x, n, 31)
	levelsQ5_1(&t, dst, x, n)
	return t.left
}

func levelsQ5_1(t *tile, dst []byte, x []float32, n int) {
	add, top, low := float4(0x3F000000), bytes16(31), bytes16(15)
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesQ5_1]byte)(dst[scalar.BytesQ5_1*b:])
		lo, id := float4(t.first[b&7]), float4(t.inverse[b&7])
		u, v := codes16(p[:16], lo, id, add, top), codes16(p[16:], lo, id, add, top)
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		binary.LittleEndian.PutUint16(q[2:], t.m[b&7])
		binary.LittleEndian.PutUint32(q[4:], fifthBits(u)|fifthBits(v)<<16)
		storeBytes(q[8:], u.And(low).Or(shl8(v.And(low), 4)))
	}
}

// fifthBits returns bit 4 of 16 codes. The product brings bit 4 of byte k to bit 56+k.
func fifthBits(v u8x16) uint32 {
	const bit, gather = 0x1010101010101010, 0x0010204081020408
	w := v.ReshapeToUint64s()
	return uint32((w.GetElem(0)&bit)*gather>>56) | uint32((w.GetElem(1)&bit)*gather>>56)<<8
}
