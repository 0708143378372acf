//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of TQ1_0, TQ2_0, Q1_0 and Q2_0.
//
// go1.27.4, AMD EPYC (Zen 3), float32 output in cache: against the scalar code,
// best of several runs of both:
//
//	TQ1_0    x12.0   30400 MB/s
//	TQ2_0    x14.8   40200 MB/s
//	Q1_0     x6.9   36300 MB/s
//	Q2_0     x7.9   28300 MB/s

func DequantizeTQ2_0(dst []float32, src []byte) {
	k := float8(mantissaBits)
	crumb, one := bytes32(3), bytes32(1)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesTQ2_0 {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesTQ2_0]byte)(src)
		d := getF16x8(b[64:], k)
		for h := range 2 {
			v := archsimd.LoadUint8x32Array((*[32]byte)(b[32*h:])).AsUint16x16()
			for g := range 4 {
				y, c := (*[32]float32)(y[128*h+32*g:]), v.AsInt8x32().And(crumb).Sub(one)
				v = v.ShiftAllRight(2)
				mul16(y[:16], c.GetLo(), d)
				mul16(y[16:], c.GetHi(), d)
			}
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesTQ2_0:]
	}
	archsimd.ClearAVXUpperBits()
}

// trits returns trit - 1 for bytes that are fractions of 256: the whole part of 3
// times the fraction is 1 from 86 on, 2 from 171 on.
func trits(q, t1, t2 u8x32, one i8x32) i8x32 {
	v := q.Max(t1).Equal(q).ToInt8x32().Add(q.Max(t2).Equal(q).ToInt8x32()) // minus the trit
	var zero i8x32
	return zero.Sub(v).Sub(one)
}

func DequantizeTQ1_0(dst []float32, src []byte) {
	k := float8(mantissaBits)
	one, t1, t2 := bytes32(1), archsimd.BroadcastUint8x32(86), archsimd.BroadcastUint8x32(171)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesTQ1_0 {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesTQ1_0]byte)(src)
		d := getF16x8(b[52:], k)
		q := archsimd.LoadUint8x32Array((*[32]byte)(b[:]))
		// 16 bytes of five trits, then 4 of four: 16 bytes further on, of which the
		// last 12 are not used.
		r := q.SetLo(archsimd.LoadUint8x16Array((*[16]byte)(b[32:])))
		r = r.SetHi(archsimd.BroadcastUint32x4(binary.LittleEndian.Uint32(b[48:])).AsUint8x16())
		var tail [4]archsimd.Float32x4
		for g := range 5 {
			y, v := (*[pack.QK_K]float32)(y[:]), trits(q, t1, t2, one)
			mul16(y[32*g:], v.GetLo(), d)
			mul16(y[32*g+16:], v.GetHi(), d)
			v = trits(r, t1, t2, one)
			mul16(y[160+16*g:], v.GetLo(), d)
			if g < 4 {
				tail[g] = v.GetHi().ExtendLo4ToInt32().ConvertToFloat32().Mul(d.GetLo())
			}
			q, r = q.Add(q).Add(q), r.Add(r).Add(r)
		}
		for g := range tail {
			tail[g].StoreArray((*[4]float32)(y[240+4*g:]))
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesTQ1_0:]
	}
	archsimd.ClearAVXUpperBits()
}

// bitLanes has bit i in lane i.
var bitLanes = [8]uint32{1, 2, 4, 8, 16, 32, 64, 128}

func DequantizeQ1_0(dst []float32, src []byte) {
	k := float8(mantissaBits)
	var zero i32x8
	lanes, sign := loadInts(&bitLanes), ints8(1<<31)
	for len(dst) >= scalar.QK_Q1_0 && len(src) >= scalar.BytesQ1_0 {
		y, b := (*[scalar.QK_Q1_0]float32)(dst), (*[scalar.BytesQ1_0]byte)(src)
		d := getF16x8(b[:], k).AsInt32x8()
		for j := range 16 {
			clear := ints8(uint32(b[2+j])).And(lanes).Equal(zero).ToInt32x8()
			d.Xor(clear.And(sign)).AsFloat32x8().StoreArray((*[8]float32)(y[8*j:]))
		}
		dst, src = dst[scalar.QK_Q1_0:], src[scalar.BytesQ1_0:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ2_0(dst []float32, src []byte) {
	k := float8(mantissaBits)
	by2, low, one := archsimd.LoadUint32x8Array(&shifts2), ints8(3), ints8(1)
	for len(dst) >= scalar.QK_Q2_0 && len(src) >= scalar.BytesQ2_0 {
		y, b := (*[scalar.QK_Q2_0]float32)(dst), (*[scalar.BytesQ2_0]byte)(src)
		d := getF16x8(b[:], k)
		for j := range 8 {
			v := ints8(uint32(binary.LittleEndian.Uint16(b[2+2*j:]))).AsUint32x8().ShiftRight(
				by2).AsInt32x8().And(low).Sub(one)
			v.ConvertToFloat32().Mul(d).StoreArray((*[8]float32)(y[8*j:]))
		}
		dst, src = dst[scalar.QK_Q2_0:], src[scalar.BytesQ2_0:]
	}
	archsimd.ClearAVXUpperBits()
}
