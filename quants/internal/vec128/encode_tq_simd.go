//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"encoding/binary"
	"math"
	"simd/archsimd"

	"ggforge/internal/kernel/half"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Encoders of TQ1_0, TQ2_0, Q2_0 and Q1_0, in the way of Q8_0. The sum of Q1_0 has an order: there a lane is a block,
// and 4 elements of 4 blocks are transposed in registers.

// ternaryScales sets the scales of n blocks, those of scalar.ternaryScale.
func (t *tile) ternaryScales(x []float32, length, n int) {
	t.magnitudes(x, length, n)
	for b := range n {
		t.setInverse(b, math.Float32frombits(t.magnitude(b)))
	}
}

// ternary returns the levels of 16 elements, 0 to 2.
func ternary(x []float32, id f32x4, sign, half u32x4, one u8x16) u8x16 {
	p := (*[16]float32)(x)
	return narrow4(roundAway(load4(p[0:]), id, sign, half), roundAway(load4(p[4:]), id, sign, half),
		roundAway(load4(p[8:]), id, sign, half), roundAway(load4(p[12:]), id, sign, half)).Add(one)
}

func QuantizeTQ2_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesTQ2_0, pack.QK_K, encodeTQ2_0, scalar.QuantizeTQ2_0)
}

func encodeTQ2_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.ternaryScales(x, pack.QK_K, n)
	levelsTQ2_0(&t, dst, x, n)
	return t.left
}

func levelsTQ2_0(t *tile, dst []byte, x []float32, n int) {
	sign, half, one := ints4(1<<31), ints4(0x3EFFFFFF), bytes16(1)
	for b := range n {
		p, q := (*[pack.QK_K]float32)(x[pack.QK_K*b:]), (*[scalar.BytesTQ2_0]byte)(dst[scalar.BytesTQ2_0*b:])
		id := float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[64:], t.d[b&7])
		for i := range 4 {
			p := (*[112]float32)(p[i>>1*128+i&1*16:])
			v := ternary(p[0:], id, sign, half, one).Or(shl8(ternary(p[32:], id, sign, half, one), 2))
			w := ternary(p[64:], id, sign, half, one).Or(shl8(ternary(p[96:], id, sign, half, one), 2))
			storeBytes(q[16*i:], v.Or(shl8(w, 4)))
		}
	}
}

func QuantizeTQ1_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesTQ1_0, pack.QK_K, encodeTQ1_0, scalar.QuantizeTQ1_0)
}

func encodeTQ1_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.ternaryScales(x, pack.QK_K, n)
	levelsTQ1_0(&t, dst, x, n)
	return t.left
}

func levelsTQ1_0(t *tile, dst []byte, x []float32, n int) {
	sign, half, one := ints4(1<<31), ints4(0x3EFFFFFF), bytes16(1)
	lows := loadLows()
	for b := range n {
		p, q := (*[pack.QK_K]float32)(x[pack.QK_K*b:]), (*[scalar.BytesTQ1_0]byte)(dst[scalar.BytesTQ1_0*b:])
		id := float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[52:], t.d[b&7])
		for i := range 3 {
			first, step := 16*i, 32
			if i == 2 {
				first, step = 160, 16
			}
			v := ternary(p[first:], id, sign, half, one)
			for k := 1; k < 5; k++ {
				v = v.Add(v).Add(v).Add(ternary(p[first+step*k:], id, sign, half, one))
			}
			storeBytes(q[16*i:], fractions(v, lows))
		}
		// Word k has trit k of 4 bytes, which multiplying by 3 and adding do not carry out of.
		w := ternary(p[240:], id, sign, half, one).ReshapeToUint64s()
		lo, hi := w.GetElem(0), w.GetElem(1)
		v := ((uint32(lo)*3+uint32(lo>>32))*3+uint32(hi))*3 + uint32(hi>>32)
		binary.LittleEndian.PutUint32(q[48:], uint32(fractions(low8(uint64(v*3)), lows).ReshapeToUint64s().GetElem(0)))
	}
}

// fractions returns v/243 as fractions of 256, rounded up: (v*256 + 242)/243 is (v*8631 + 8100) >> 13 for v < 243.
func fractions(v u8x16, t tops) u8x16 {
	factor, add, by13 := broadcast(8631), broadcast(8100), broadcast(1<<32-13)
	return narrow4(fraction(v, t.a, factor, add, by13), fraction(v, t.b, factor, add, by13),
		fraction(v, t.c, factor, add, by13), fraction(v, t.d, factor, add, by13))
}

func fraction(v, low u8x16, factor, add, by13 i32x4) i32x4 {
	return shiftRight(lookup(v, low).ReshapeToUint32s().BitsToInt32().Mul(factor).Add(add), 13, by13)
}

func QuantizeQ2_0(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesQ2_0, scalar.QK_Q2_0, encodeQ2_0, scalar.QuantizeQ2_0)
}

func encodeQ2_0(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.ternaryScales(x, scalar.QK_Q2_0, n)
	levelsQ2_0(&t, dst, x, n)
	return t.left
}

func levelsQ2_0(t *tile, dst []byte, x []float32, n int) {
	sign, half, one := ints4(1<<31), ints4(0x3EFFFFFF), bytes16(1)
	// The product brings levels 0 to 3 of a word to bits 24, 26, 28 and 30.
	gather, by24 := ints4(1<<24|1<<18|1<<12|1<<6), broadcast(1<<32-24)
	for b := range n {
		p, q := (*[scalar.QK_Q2_0]float32)(x[scalar.QK_Q2_0*b:]), (*[scalar.BytesQ2_0]byte)(dst[scalar.BytesQ2_0*b:])
		id := float4(t.inverse[b&7])
		binary.LittleEndian.PutUint16(q[:], t.d[b&7])
		c0 := ternary(p[0:], id, sign, half, one).ReshapeToUint32s().Mul(gather).BitsToInt32()
		c1 := ternary(p[16:], id, sign, half, one).ReshapeToUint32s().Mul(gather).BitsToInt32()
		c2 := ternary(p[32:], id, sign, half, one).ReshapeToUint32s().Mul(gather).BitsToInt32()
		c3 := ternary(p[48:], id, sign, half, one).ReshapeToUint32s().Mul(gather).BitsToInt32()
		storeBytes(q[2:], narrow4(shiftRight(c0, 24, by24), shiftRight(c1, 24, by24), shiftRight(c2, 24, by24),
			shiftRight(c3, 24, by24)))
	}
}

func QuantizeQ1_0(dst []byte, src, _ []float32) {
	for len(src) >= 4*scalar.QK_Q1_0 {
		var sums [4]uint32
		sumsQ1_0(&sums, (*[4 * scalar.QK_Q1_0]float32)(src))
		for b, s := range sums {
			binary.LittleEndian.PutUint16(dst[b*scalar.BytesQ1_0:], half.ToF16(math.Float32frombits(s)/scalar.QK_Q1_0))
		}
		bitsQ1_0(dst, (*[4 * scalar.QK_Q1_0]float32)(src))
		dst, src = dst[4*scalar.BytesQ1_0:], src[4*scalar.QK_Q1_0:]
	}
	scalar.QuantizeQ1_0(dst, src, nil)
}

// sumsQ1_0 sets sums to the sums of magnitudes of 4 blocks.
func sumsQ1_0(sums *[4]uint32, x *[4 * scalar.QK_Q1_0]float32) {
	clearUpper()
	var s f32x4
	abs := ints4(0x7FFFFFFF)
	for k := 0; k < scalar.QK_Q1_0; k += 4 {
		p := (*[3*scalar.QK_Q1_0 + 4]float32)(x[k:])
		a, b := load4(p[0:]).ToBits().And(abs), load4(p[scalar.QK_Q1_0:]).ToBits().And(abs)
		c, d := load4(p[2*scalar.QK_Q1_0:]).ToBits().And(abs), load4(p[3*scalar.QK_Q1_0:]).ToBits().And(abs)
		ab, cd := a.InterleaveLo(b).ReshapeToUint64s(), c.InterleaveLo(d).ReshapeToUint64s()
		s = s.Add(ab.InterleaveLo(cd).ReshapeToUint32s().BitsToFloat32()).Add(
			ab.InterleaveHi(cd).ReshapeToUint32s().BitsToFloat32())
		ab, cd = a.InterleaveHi(b).ReshapeToUint64s(), c.InterleaveHi(d).ReshapeToUint64s()
		s = s.Add(ab.InterleaveLo(cd).ReshapeToUint32s().BitsToFloat32()).Add(
			ab.InterleaveHi(cd).ReshapeToUint32s().BitsToFloat32())
	}
	s.ToBits().StoreArray(sums)
}

// bitsQ1_0 stores which elements of 4 blocks are not negative.
func bitsQ1_0(dst []byte, x *[4 * scalar.QK_Q1_0]float32) {
	var zero f32x4
	masks := archsimd.LoadUint8x16Array(&bitMasks)
	for b := range 4 {
		x, q := (*[scalar.QK_Q1_0]float32)(x[scalar.QK_Q1_0*b:]), (*[scalar.BytesQ1_0]byte)(dst[scalar.BytesQ1_0*b:])
		for j := range 8 {
			p := (*[16]float32)(x[16*j:])
			v := narrow4(load4(p[0:]).GreaterEqual(zero).ToInt32x4(), load4(p[4:]).GreaterEqual(zero).ToInt32x4(),
				load4(p[8:]).GreaterEqual(zero).ToInt32x4(), load4(p[12:]).GreaterEqual(zero).ToInt32x4())
			w := v.And(masks).ReshapeToUint64s() // bit k of byte k: the product adds up all bytes
			const add = 0x0101010101010101
			q[2+2*j], q[3+2*j] = uint8(w.GetElem(0)*add>>56), uint8(w.GetElem(1)*add>>56)
		}
	}
}
