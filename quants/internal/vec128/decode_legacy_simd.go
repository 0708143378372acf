//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of types with blocks of 32 or 64: 4 or 5 operations for 4 elements, and some ten for a block's scale. A
// block whose scale or minimum is not finite is left to the scalar code.

func DequantizeQ8_0(dst []float32, src []byte) {
	clearUpper()
	t, s, first := loadTops(), loadHalves(), archsimd.LoadUint8x16Array(&firstHalf)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ8_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ8_0]byte)(src)
		if finite(b[:]) {
			d := s.get(loadBytes(b[:]), first, s.k24)
			mul16(y[:16], loadBytes(b[2:]), t, d)
			mul16(y[16:], loadBytes(b[18:]), t, d)
		} else {
			scalar.DequantizeQ8_0(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesQ8_0:]
	}
}

func DequantizeQ4_0(dst []float32, src []byte) {
	clearUpper()
	t, s, first := loadTops(), loadHalves(), archsimd.LoadUint8x16Array(&firstHalf)
	low, eight := bytes16(15), bytes16(8)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ4_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ4_0]byte)(src)
		if finite(b[:]) {
			d, v := s.get(loadBytes(b[:]), first, s.k24), loadBytes(b[2:])
			mul16(y[:16], v.And(low).Sub(eight), t, d)
			mul16(y[16:], shr8(v, 4).And(low).Sub(eight), t, d)
		} else {
			scalar.DequantizeQ4_0(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesQ4_0:]
	}
}

func DequantizeQ4_1(dst []float32, src []byte) {
	clearUpper()
	t, s, low := loadTops(), loadHalves(), bytes16(15)
	first, second := archsimd.LoadUint8x16Array(&firstHalf), archsimd.LoadUint8x16Array(&secondHalf)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ4_1 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ4_1]byte)(src)
		if finite(b[:]) && finite(b[2:]) {
			w, v := loadBytes(b[:]), loadBytes(b[4:])
			d, m := s.get(w, first, s.k24), s.get(w, second, s.k0)
			mulAdd16(y[:16], v.And(low), t, d, m)
			mulAdd16(y[16:], shr8(v, 4).And(low), t, d, m)
		} else {
			scalar.DequantizeQ4_1(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesQ4_1:]
	}
}

// Byte i of 16 gets the byte of a block that has bit i of the fifth bits' first or second half, and that bit.
var (
	bitBytes = [4][16]byte{
		{2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3}, {4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5},
		{4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5}, {6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7},
	}
	bitMasks = [16]byte{1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128}
)

// spreadBits returns v in each byte whose bit is set, 0 elsewhere; bytes is one of bitBytes, masks bitMasks.
func spreadBits(word, bytes, masks, v u8x16) u8x16 {
	return lookup(word, bytes).And(masks).Equal(masks).ToInt8x16().ToBits().And(v)
}

func DequantizeQ5_0(dst []float32, src []byte) {
	clearUpper()
	t, s, first := loadTops(), loadHalves(), archsimd.LoadUint8x16Array(&firstHalf)
	low, sixteen, masks := bytes16(15), bytes16(16), archsimd.LoadUint8x16Array(&bitMasks)
	bits0, bits1 := archsimd.LoadUint8x16Array(&bitBytes[0]), archsimd.LoadUint8x16Array(&bitBytes[1])
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ5_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ5_0]byte)(src)
		if finite(b[:]) {
			w, v := loadBytes(b[:]), loadBytes(b[6:])
			d := s.get(w, first, s.k24)
			mul16(y[:16], v.And(low).Or(spreadBits(w, bits0, masks, sixteen)).Sub(sixteen), t, d)
			mul16(y[16:], shr8(v, 4).And(low).Or(spreadBits(w, bits1, masks, sixteen)).Sub(sixteen), t, d)
		} else {
			scalar.DequantizeQ5_0(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesQ5_0:]
	}
}

func DequantizeQ5_1(dst []float32, src []byte) {
	clearUpper()
	t, s := loadTops(), loadHalves()
	first, second := archsimd.LoadUint8x16Array(&firstHalf), archsimd.LoadUint8x16Array(&secondHalf)
	low, sixteen, masks := bytes16(15), bytes16(16), archsimd.LoadUint8x16Array(&bitMasks)
	bits0, bits1 := archsimd.LoadUint8x16Array(&bitBytes[2]), archsimd.LoadUint8x16Array(&bitBytes[3])
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ5_1 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ5_1]byte)(src)
		if finite(b[:]) && finite(b[2:]) {
			w, v := loadBytes(b[:]), loadBytes(b[8:])
			d, m := s.get(w, first, s.k24), s.get(w, second, s.k0)
			mulAdd16(y[:16], v.And(low).Or(spreadBits(w, bits0, masks, sixteen)), t, d, m)
			mulAdd16(y[16:], shr8(v, 4).And(low).Or(spreadBits(w, bits1, masks, sixteen)), t, d, m)
		} else {
			scalar.DequantizeQ5_1(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesQ5_1:]
	}
}

// Values of 4-bit codes as bytes.
var (
	bytesIQ4 = byteValues(&codebook.ValuesIQ4)
	bytesFP4 = byteValues(&codebook.ValuesFP4)
)

func byteValues(values *[16]float32) (b [16]byte) {
	for i, v := range values {
		b[i] = byte(int8(v))
	}
	return b
}

func DequantizeIQ4_NL(dst []float32, src []byte) {
	clearUpper()
	t, s, first := loadTops(), loadHalves(), archsimd.LoadUint8x16Array(&firstHalf)
	low, values := bytes16(15), archsimd.LoadUint8x16Array(&bytesIQ4)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesIQ4_NL {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesIQ4_NL]byte)(src)
		if finite(b[:]) {
			d, v := s.get(loadBytes(b[:]), first, s.k24), loadBytes(b[2:])
			mul16(y[:16], lookup(values, v.And(low)), t, d)
			mul16(y[16:], lookup(values, shr8(v, 4).And(low)), t, d)
		} else {
			scalar.DequantizeIQ4_NL(y[:], b[:])
		}
		dst, src = dst[pack.QK:], src[scalar.BytesIQ4_NL:]
	}
}

// leastMXFP4 is the least scale code whose scale is a normal float32 even 2^24 times smaller.
const leastMXFP4 = 1 + 24 + 1

func DequantizeMXFP4(dst []float32, src []byte) {
	clearUpper()
	t, low, values := loadTops(), bytes16(15), archsimd.LoadUint8x16Array(&bytesFP4)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesMXFP4 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesMXFP4]byte)(src)
		if b[0] < leastMXFP4 {
			scalar.DequantizeMXFP4(y[:], b[:])
		} else {
			d, v := float4(codebook.E8M0Half[b[0]]-24<<23), loadBytes(b[1:])
			mul16(y[:16], lookup(values, v.And(low)), t, d)
			mul16(y[16:], lookup(values, shr8(v, 4).And(low)), t, d)
		}
		dst, src = dst[pack.QK:], src[scalar.BytesMXFP4:]
	}
}

func DequantizeNVFP4(dst []float32, src []byte) {
	clearUpper()
	t, low, values := loadTops(), bytes16(15), archsimd.LoadUint8x16Array(&bytesFP4)
	by24 := float4(0x33800000) // 2^-24; a scale that is not 0 is 2^-10 or more
	for len(dst) >= scalar.QK_NVFP4 && len(src) >= scalar.BytesNVFP4 {
		y, b := (*[scalar.QK_NVFP4]float32)(dst), (*[scalar.BytesNVFP4]byte)(src)
		for p := range 2 {
			// Bytes 0-7 are one sub-block, 8-15 the next; each has its low codes first.
			v, y := loadBytes(b[4+16*p:]), (*[32]float32)(y[32*p:])
			lo := lookup(values, v.And(low)).ReshapeToUint64s()
			hi := lookup(values, shr8(v, 4).And(low)).ReshapeToUint64s()
			mul16(y[:16], lo.InterleaveLo(hi).ReshapeToUint8s(), t, float4(codebook.UE4M3Half[b[2*p]]).Mul(by24))
			mul16(y[16:], lo.InterleaveHi(hi).ReshapeToUint8s(), t, float4(codebook.UE4M3Half[b[2*p+1]]).Mul(by24))
		}
		dst, src = dst[scalar.QK_NVFP4:], src[scalar.BytesNVFP4:]
	}
}
