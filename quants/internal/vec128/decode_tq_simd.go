//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of TQ1_0, TQ2_0, Q1_0 and Q2_0.

func DequantizeTQ2_0(dst []float32, src []byte) {
	clearUpper()
	t, crumb, one := loadTops(), bytes16(3), bytes16(1)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesTQ2_0 {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesTQ2_0]byte)(src)
		d := getF16(b[64:], scaled24)
		for h := range 4 {
			v, y := loadBytes(b[16*h:]), (*[112]float32)(y[h>>1*128+h&1*16:])
			mul16(y[0:], v.And(crumb).Sub(one), t, d)
			mul16(y[32:], shr8(v, 2).And(crumb).Sub(one), t, d)
			mul16(y[64:], shr8(v, 4).And(crumb).Sub(one), t, d)
			mul16(y[96:], shr8(v, 6).And(crumb).Sub(one), t, d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesTQ2_0:]
	}
}

// trits returns trit - 1 for bytes that are fractions of 256: the whole part of 3 times the fraction is 1 from 86 on,
// 2 from 171 on.
func trits(q, t1, t2, minusOne u8x16) u8x16 {
	v := q.Max(t1).Equal(q).ToInt8x16().Add(q.Max(t2).Equal(q).ToInt8x16()) // minus the trit
	return minusOne.Sub(v.ToBits())
}

// times multiplies the bytes of q by n, modulo 256.
func times(q, n uint32) uint32 {
	const even = 0x00FF00FF
	return q&even*n&even | (q>>8&even*n&even)<<8
}

func DequantizeTQ1_0(dst []float32, src []byte) {
	clearUpper()
	t, t1, t2, minusOne := loadTops(), bytes16(86), bytes16(171), bytes16(0xFF)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesTQ1_0 {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesTQ1_0]byte)(src)
		d := getF16(b[52:], scaled24)
		u, v, w := loadBytes(b[0:]), loadBytes(b[16:]), loadBytes(b[32:])
		q := binary.LittleEndian.Uint32(b[48:])
		tail := pair(two(q, times(q, 3)), two(times(q, 9), times(q, 27)))
		mul16(y[240:], trits(tail, t1, t2, minusOne), t, d)
		for g := range 5 {
			z := (*[32]float32)(y[32*g:])
			mul16(z[:16], trits(u, t1, t2, minusOne), t, d)
			mul16(z[16:], trits(v, t1, t2, minusOne), t, d)
			mul16(y[160+16*g:], trits(w, t1, t2, minusOne), t, d)
			u, v, w = u.Add(u).Add(u), v.Add(v).Add(v), w.Add(w).Add(w)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesTQ1_0:]
	}
}

// bitRuns are the indices that bring bytes 2*i and 2*i+1 to 8 bytes each.
var bitRuns = func() (runs [8][16]byte) {
	for i := range runs {
		for k := range runs[i] {
			runs[i][k] = byte(2*i + k/8)
		}
	}
	return runs
}()

func DequantizeQ1_0(dst []float32, src []byte) {
	clearUpper()
	var none u8x16
	t, masks, sign := loadTops(), archsimd.LoadUint8x16Array(&bitMasks), bytes16(0x80)
	for len(dst) >= scalar.QK_Q1_0 && len(src) >= scalar.BytesQ1_0 {
		y, b := (*[scalar.QK_Q1_0]float32)(dst), (*[scalar.BytesQ1_0]byte)(src)
		d, v := getF16(b[:], scaled0).ToBits(), loadBytes(b[2:])
		for j := range 8 {
			clear := lookup(v, archsimd.LoadUint8x16Array(&bitRuns[j])).And(masks).Equal(
				none).ToInt8x16().ToBits().And(sign)
			y := (*[16]float32)(y[16*j:])
			store4(y[0:], lookup(clear, t.a).ReshapeToUint32s().Xor(d).BitsToFloat32())
			store4(y[4:], lookup(clear, t.b).ReshapeToUint32s().Xor(d).BitsToFloat32())
			store4(y[8:], lookup(clear, t.c).ReshapeToUint32s().Xor(d).BitsToFloat32())
			store4(y[12:], lookup(clear, t.d).ReshapeToUint32s().Xor(d).BitsToFloat32())
		}
		dst, src = dst[scalar.QK_Q1_0:], src[scalar.BytesQ1_0:]
	}
}

// crumbRuns are the indices that bring bytes 4*i to 4*i+3 to 4 bytes each.
var crumbRuns = func() (runs [4][16]byte) {
	for i := range runs {
		for k := range runs[i] {
			runs[i][k] = byte(4*i + k/4)
		}
	}
	return runs
}()

// crumbPlaces are the bits of the crumb that byte k of 4 keeps.
var crumbPlaces = [16]byte{3, 12, 48, 192, 3, 12, 48, 192, 3, 12, 48, 192, 3, 12, 48, 192}

// DequantizeQ2_0 leaves the crumbs where they are in their bytes: byte k of 4 has 4^k times its level, and lane k a
// scale that is smaller by as much.
func DequantizeQ2_0(dst []float32, src []byte) {
	clearUpper()
	t, places := loadLows(), archsimd.LoadUint8x16Array(&crumbPlaces)
	ones, shares := loadInts(&crumbOnes).BitsToInt32(), loadInts(&crumbShares).BitsToFloat32()
	for len(dst) >= scalar.QK_Q2_0 && len(src) >= scalar.BytesQ2_0 {
		y, b := (*[scalar.QK_Q2_0]float32)(dst), (*[scalar.BytesQ2_0]byte)(src)
		d, v := getF16(b[:], scaled0).Mul(shares), loadBytes(b[2:])
		for j := range 4 {
			q, y := lookup(v, archsimd.LoadUint8x16Array(&crumbRuns[j])).And(places), (*[16]float32)(y[16*j:])
			store4(y[0:], lookup(q, t.a).ReshapeToUint32s().BitsToInt32().Sub(ones).ConvertToFloat32().Mul(d))
			store4(y[4:], lookup(q, t.b).ReshapeToUint32s().BitsToInt32().Sub(ones).ConvertToFloat32().Mul(d))
			store4(y[8:], lookup(q, t.c).ReshapeToUint32s().BitsToInt32().Sub(ones).ConvertToFloat32().Mul(d))
			store4(y[12:], lookup(q, t.d).ReshapeToUint32s().BitsToInt32().Sub(ones).ConvertToFloat32().Mul(d))
		}
		dst, src = dst[scalar.QK_Q2_0:], src[scalar.BytesQ2_0:]
	}
}

// crumbOnes is level 1 in each lane, crumbShares the factor of the scale in each lane.
var (
	crumbOnes   = [4]uint32{1, 4, 16, 64}
	crumbShares = [4]uint32{0x3F800000, 0x3E800000, 0x3D800000, 0x3C800000}
)

// lowBytes are the indices that bring 4 of 16 bytes each to the lowest bytes of 4 words.
var lowBytes = [4][16]byte{
	{0, z, z, z, 1, z, z, z, 2, z, z, z, 3, z, z, z},
	{4, z, z, z, 5, z, z, z, 6, z, z, z, 7, z, z, z},
	{8, z, z, z, 9, z, z, z, 10, z, z, z, 11, z, z, z},
	{12, z, z, z, 13, z, z, z, 14, z, z, z, 15, z, z, z},
}

// loadLows returns lowBytes in the four fields of tops.
func loadLows() tops {
	return tops{archsimd.LoadUint8x16Array(&lowBytes[0]), archsimd.LoadUint8x16Array(&lowBytes[1]),
		archsimd.LoadUint8x16Array(&lowBytes[2]), archsimd.LoadUint8x16Array(&lowBytes[3])}
}
