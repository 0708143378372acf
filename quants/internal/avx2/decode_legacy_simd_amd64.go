//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of the Q4_0 family, and what all decoders share: codes become bytes of
// their value, 8 bytes are widened to 8 integers, converted and multiplied.
//
// go1.27.4, AMD EPYC (Zen 3), float32 output in cache: against the scalar code,
// best of several runs of both:
//
//	Q8_0     x6.4   36400 MB/s
//	Q4_0     x4.5   30400 MB/s
//	Q4_1     x4.3   25600 MB/s
//	Q5_0     x6.5   25700 MB/s
//	Q5_1     x5.4   22400 MB/s
//	IQ4_NL   x3.5   30200 MB/s
//	MXFP4    x4.2   31400 MB/s
//	NVFP4    x5.8   25100 MB/s
//
// 3 or 4 operations and a store for 8 elements, and 3 per block for the scale, whose
// bits are shifted as integers. Widening to 16 bits on the way to 32 needs two
// extractions more for 16 elements, and a scale all in vectors 7 operations more: a
// third of the speed. (To take the low half of a vector is an operation, too:
// go1.27.4 emits VEXTRACTI128 $0.) Writing the output to memory limits all of them.

type (
	i8x16 = archsimd.Int8x16
	i8x32 = archsimd.Int8x32
)

// f16Bits is the constant of getF16x8, 8 times: 2^112.
var f16Bits = func() (c [8]uint32) {
	for i := range c {
		c[i] = 0x77800000
	}
	return c
}()

func loadInts(v *[8]uint32) i32x8 { return archsimd.LoadUint32x8Array(v).AsInt32x8() }

// getF16x8 returns 8 times pack.F16, see fromF16x8. k is f16Bits. All but the
// multiplication is done on integers outside the vectors, which have enough to do.
func getF16x8(b []byte, k *[8]uint32) f32x8 {
	h := uint32(binary.LittleEndian.Uint16(b))
	u := h << 13 & (0x7FFF << 13)
	if u >= 0x7C00<<13 {
		u |= 0x7F800000
	}
	return ints8(u | h<<16&(1<<31)).AsFloat32x8().Mul(loadInts(k).AsFloat32x8())
}

// wide8 returns the first 8 and the last 8 elements of v.
func wide8(v i8x16) (lo, hi f32x8) {
	u := v.ToBits()
	return v.ExtendLo8ToInt32().ConvertToFloat32(), u.ConcatShiftBytesRight(u, 8).BitsToInt8().ExtendLo8ToInt32().ConvertToFloat32()
}

// mul16 sets y to d*v.
func mul16(y []float32, v i8x16, d f32x8) {
	lo, hi := wide8(v)
	store8(y, lo.Mul(d))
	store8(y[8:], hi.Mul(d))
}

// mulAdd16 sets y to d*v + m, rounded twice.
func mulAdd16(y []float32, v i8x16, d, m f32x8) {
	lo, hi := wide8(v)
	store8(y, lo.Mul(d).Add(m))
	store8(y[8:], hi.Mul(d).Add(m))
}

func bytes32(v uint32) i8x32 { return archsimd.BroadcastUint32x8(v * 0x01010101).AsInt8x32() }

// nibbles32 returns the low halves of 16 bytes, then the high halves. low is 15.
func nibbles32(b []byte, low i8x32) i8x32 {
	v := archsimd.LoadUint8x16Array((*[16]byte)(b)).AsUint16x8()
	var w archsimd.Uint16x16
	return w.SetLo(v).SetHi(v.ShiftAllRight(4)).AsInt8x32().And(low)
}

func DequantizeQ8_0(dst []float32, src []byte) {
	k := &f16Bits
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ8_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ8_0]byte)(src)
		d := getF16x8(b[:], k)
		mul16(y[:16], archsimd.LoadUint8x16Array((*[16]byte)(b[2:])).AsInt8x16(), d)
		mul16(y[16:], archsimd.LoadUint8x16Array((*[16]byte)(b[18:])).AsInt8x16(), d)
		dst, src = dst[pack.QK:], src[scalar.BytesQ8_0:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ4_0(dst []float32, src []byte) {
	k := &f16Bits
	low, eight := bytes32(15), bytes32(8)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ4_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ4_0]byte)(src)
		d, v := getF16x8(b[:], k), nibbles32(b[2:], low).Sub(eight)
		mul16(y[:16], v.GetLo(), d)
		mul16(y[16:], v.GetHi(), d)
		dst, src = dst[pack.QK:], src[scalar.BytesQ4_0:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ4_1(dst []float32, src []byte) {
	k := &f16Bits
	low := bytes32(15)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ4_1 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ4_1]byte)(src)
		d, m, v := getF16x8(b[:], k), getF16x8(b[2:], k), nibbles32(b[4:], low)
		mulAdd16(y[:16], v.GetLo(), d, m)
		mulAdd16(y[16:], v.GetHi(), d, m)
		dst, src = dst[pack.QK:], src[scalar.BytesQ4_1:]
	}
	archsimd.ClearAVXUpperBits()
}

// Byte i of 32 gets the byte of a word of 32 bits that has bit i, and that bit.
var (
	bitBytes = [32]int8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3}
	bitMasks = [4]uint64{0x8040201008040201, 0x8040201008040201, 0x8040201008040201, 0x8040201008040201}
)

// spreadBits returns v in byte i where bit i of word is set, 0 elsewhere.
func spreadBits(word uint32, bytes, masks, v i8x32) i8x32 {
	w := archsimd.BroadcastUint32x8(word).AsInt8x32().PermuteOrZeroGrouped(bytes).And(masks)
	return w.Equal(masks).ToInt8x32().And(v)
}

func DequantizeQ5_0(dst []float32, src []byte) {
	k := &f16Bits
	low, sixteen := bytes32(15), bytes32(16)
	bytes, masks := archsimd.LoadInt8x32Array(&bitBytes), archsimd.LoadUint64x4Array(&bitMasks).AsInt8x32()
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ5_0 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ5_0]byte)(src)
		d, h := getF16x8(b[:], k), spreadBits(binary.LittleEndian.Uint32(b[2:]), bytes, masks, sixteen)
		v := nibbles32(b[6:], low).Or(h).Sub(sixteen)
		mul16(y[:16], v.GetLo(), d)
		mul16(y[16:], v.GetHi(), d)
		dst, src = dst[pack.QK:], src[scalar.BytesQ5_0:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ5_1(dst []float32, src []byte) {
	k := &f16Bits
	low, sixteen := bytes32(15), bytes32(16)
	bytes, masks := archsimd.LoadInt8x32Array(&bitBytes), archsimd.LoadUint64x4Array(&bitMasks).AsInt8x32()
	for len(dst) >= pack.QK && len(src) >= scalar.BytesQ5_1 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesQ5_1]byte)(src)
		d, m := getF16x8(b[:], k), getF16x8(b[2:], k)
		v := nibbles32(b[8:], low).Or(spreadBits(binary.LittleEndian.Uint32(b[4:]), bytes, masks, sixteen))
		mulAdd16(y[:16], v.GetLo(), d, m)
		mulAdd16(y[16:], v.GetHi(), d, m)
		dst, src = dst[pack.QK:], src[scalar.BytesQ5_1:]
	}
	archsimd.ClearAVXUpperBits()
}

// Values of 4-bit codes as bytes, for both groups of 128 bits.
var (
	bytesIQ4 = byteValues(&codebook.ValuesIQ4)
	bytesFP4 = byteValues(&codebook.ValuesFP4)
)

func byteValues(values *[16]float32) (b [32]int8) {
	for i := range b {
		b[i] = int8(values[i&15])
	}
	return b
}

func DequantizeIQ4_NL(dst []float32, src []byte) {
	k := &f16Bits
	low, values := bytes32(15), archsimd.LoadInt8x32Array(&bytesIQ4)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesIQ4_NL {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesIQ4_NL]byte)(src)
		d, v := getF16x8(b[:], k), values.PermuteOrZeroGrouped(nibbles32(b[2:], low))
		mul16(y[:16], v.GetLo(), d)
		mul16(y[16:], v.GetHi(), d)
		dst, src = dst[pack.QK:], src[scalar.BytesIQ4_NL:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeMXFP4(dst []float32, src []byte) {
	low, values := bytes32(15), archsimd.LoadInt8x32Array(&bytesFP4)
	for len(dst) >= pack.QK && len(src) >= scalar.BytesMXFP4 {
		y, b := (*[pack.QK]float32)(dst), (*[scalar.BytesMXFP4]byte)(src)
		d, v := ints8(codebook.E8M0Half[b[0]]).AsFloat32x8(), values.PermuteOrZeroGrouped(nibbles32(b[1:], low))
		mul16(y[:16], v.GetLo(), d)
		mul16(y[16:], v.GetHi(), d)
		dst, src = dst[pack.QK:], src[scalar.BytesMXFP4:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeNVFP4(dst []float32, src []byte) {
	low, values := bytes32(15), archsimd.LoadInt8x32Array(&bytesFP4)
	for len(dst) >= scalar.QK_NVFP4 && len(src) >= scalar.BytesNVFP4 {
		y, b := (*[scalar.QK_NVFP4]float32)(dst), (*[scalar.BytesNVFP4]byte)(src)
		for p := range 2 {
			// Bytes 0-7 are one sub-block, 8-15 the next; each has its low codes first.
			v := values.PermuteOrZeroGrouped(nibbles32(b[4+16*p:], low)).AsInt64x4()
			lo, hi := v.GetLo(), v.GetHi()
			mul16(y[32*p:], lo.InterleaveLo(hi).AsInt8x16(), ints8(codebook.UE4M3Half[b[2*p]]).AsFloat32x8())
			mul16(y[32*p+16:], lo.InterleaveHi(hi).AsInt8x16(), ints8(codebook.UE4M3Half[b[2*p+1]]).AsFloat32x8())
		}
		dst, src = dst[scalar.QK_NVFP4:], src[scalar.BytesNVFP4:]
	}
	archsimd.ClearAVXUpperBits()
}
