//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of the Q4_0 family, and the method of all decoders: codes become bytes of
// their value, 8 bytes are widened to 8 integers, converted and multiplied.
//
// go1.27.4, Intel Xeon (Sapphire Rapids), float32 output in cache: against the scalar
// code, best of several runs of both:
//
//	Q8_0     x7.4   40500 MB/s
//	Q4_0     x5.7   37500 MB/s
//	Q4_1     x5.3   33900 MB/s
//	Q5_0     x7.3   26700 MB/s
//	Q5_1     x6.7   22600 MB/s
//	IQ4_NL   x3.6   30600 MB/s
//	MXFP4    x4.6   34900 MB/s
//	NVFP4    x4.2   28500 MB/s
//
// 3 or 4 operations and a store for 8 elements. The scales of 8 blocks are converted at
// once. Q4_0, Q4_1 and Q4_K are widened before their halves are taken apart, which saves
// 5 of 8 shuffles. Widening to 16 bits on the way to 32 needs two extractions more for 16
// elements. (To take the low half of a vector is an operation, too:
// go1.27.4 emits VEXTRACTI128 $0.) Writing the output to memory limits all of them.

type (
	i8x16 = archsimd.Int8x16
	i8x32 = archsimd.Int8x32
)

// halfScales has, by the sign and exponent of a float16, the factor of the mantissa in getF16x8 and, for a normal
// number, the implicit bit of the mantissa: both as float32, the second one in the last bits of 2^23.
var halfScales = func() (t [64]struct{ scale, mantissa uint32 }) {
	for i := range t {
		e := uint32(i & 31)
		t[i].scale, t[i].mantissa = (max(e, 1)+102)<<23, mantissaBits
		if e == 31 {
			t[i].scale = 0x7F800000
		}
		if e > 0 {
			t[i].mantissa |= 1 << 10
		}
		t[i].scale |= uint32(i) >> 5 << 31
	}
	return t
}()

const mantissaBits = 0x4B000000 // 2^23

// getF16x8 returns 8 times pack.F16. It does without float32 that are not normal,
// for which processors take more than a hundred cycles: scales of 6 or 8 bits make
// the float16 they are multiplied with small enough. k is mantissaBits.
func getF16x8(b []byte, k f32x8) f32x8 {
	h := uint32(binary.LittleEndian.Uint16(b))
	t := &halfScales[h>>10]
	scale := t.scale
	if h&0x7FFF > 0x7C00 { // NaN
		scale |= h<<13 | 1<<22
	}
	return float8(t.mantissa | h&0x3FF).Sub(k).Mul(float8(scale))
}

// float16s returns the float16 at the beginning of 4 blocks of size bytes.
func float16s(b []byte, size int) uint64 {
	return uint64(binary.LittleEndian.Uint16(b)) | uint64(binary.LittleEndian.Uint16(b[size:]))<<16 |
		uint64(binary.LittleEndian.Uint16(b[2*size:]))<<32 | uint64(binary.LittleEndian.Uint16(b[3*size:]))<<48
}

// f16Parts has the constants of fromF16x8 in the order of its parameters, for decoders
// that have no registers left for them.
var f16Parts = func() (c [6][8]uint32) {
	for i, v := range [...]uint32{magF16, signF16, finiteF16, baseF16, leastF16, smallF16} {
		for j := range c[i] {
			c[i][j] = v
		}
	}
	return c
}()

// scalesF16 returns the 8 float16 of two words.
func scalesF16(lo, hi uint64) f32x8 {
	c := &f16Parts
	return fromF16x8(bytes16(lo, hi).ToBits(), loadInts(&c[0]), loadInts(&c[1]), loadInts(&c[2]), loadInts(&c[3]),
		loadInts(&c[4]), loadInts(&c[5]))
}

// wide8 returns the first 8 and the last 8 elements of v.
func wide8(v i8x16) (lo, hi f32x8) {
	u := v.ToBits()
	return v.ExtendLo8ToInt32().ConvertToFloat32(),
		u.ConcatShiftBytesRight(u, 8).BitsToInt8().ExtendLo8ToInt32().ConvertToFloat32()
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

// words8 returns the first 8 and the last 8 of 16 bytes as integers.
func words8(b []byte) (lo, hi i32x8) {
	v := archsimd.LoadUint8x16Array((*[16]byte)(b))
	return v.ExtendLo8ToUint32().AsInt32x8(), v.ConcatShiftBytesRight(v, 8).ExtendLo8ToUint32().AsInt32x8()
}

// high4 returns the high halves of bytes in v.
func high4(v i32x8) i32x8 { return v.AsUint32x8().ShiftAllRight(4).AsInt32x8() }

func mul8(y []float32, v i32x8, d f32x8)       { store8(y, v.ConvertToFloat32().Mul(d)) }
func mulAdd8(y []float32, v i32x8, d, m f32x8) { store8(y, v.ConvertToFloat32().Mul(d).Add(m)) }

func bytes32(v uint32) i8x32 { return archsimd.BroadcastUint32x8(v * 0x01010101).AsInt8x32() }

// nibbles32 returns the low halves of 16 bytes, then the high halves. low is 15.
func nibbles32(b []byte, low i8x32) i8x32 {
	v := archsimd.LoadUint8x16Array((*[16]byte)(b)).AsUint16x8()
	var w archsimd.Uint16x16
	return w.SetLo(v).SetHi(v.ShiftAllRight(4)).AsInt8x32().And(low)
}

func DequantizeQ8_0(dst []float32, src []byte) {
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesQ8_0 {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesQ8_0]byte)(src)
		ds := scalesF16(float16s(b[:], scalar.BytesQ8_0), float16s(b[4*scalar.BytesQ8_0:], scalar.BytesQ8_0))
		for j := range 8 {
			y, b, d := (*[pack.QK]float32)(y[pack.QK*j:]), (*[scalar.BytesQ8_0]byte)(b[scalar.BytesQ8_0*j:]),
				pick(ds, &laneOf[j])
			mul16(y[:16], archsimd.LoadUint8x16Array((*[16]byte)(b[2:])).AsInt8x16(), d)
			mul16(y[16:], archsimd.LoadUint8x16Array((*[16]byte)(b[18:])).AsInt8x16(), d)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesQ8_0:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeQ8_0(dst, src)
}

func DequantizeQ4_0(dst []float32, src []byte) {
	low, eight := ints8(15), ints8(8)
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesQ4_0 {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesQ4_0]byte)(src)
		ds := scalesF16(float16s(b[:], scalar.BytesQ4_0), float16s(b[4*scalar.BytesQ4_0:], scalar.BytesQ4_0))
		for j := range 8 {
			y, d := (*[pack.QK]float32)(y[pack.QK*j:]), pick(ds, &laneOf[j])
			u, v := words8(b[scalar.BytesQ4_0*j+2:])
			mul8(y[0:], u.And(low).Sub(eight), d)
			mul8(y[8:], v.And(low).Sub(eight), d)
			mul8(y[16:], high4(u).Sub(eight), d)
			mul8(y[24:], high4(v).Sub(eight), d)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesQ4_0:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeQ4_0(dst, src)
}

func DequantizeQ4_1(dst []float32, src []byte) {
	low := ints8(15)
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesQ4_1 {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesQ4_1]byte)(src)
		ds, ms := scalesF16(float16s(b[:], scalar.BytesQ4_1), float16s(b[4*scalar.BytesQ4_1:], scalar.BytesQ4_1)),
			scalesF16(float16s(b[2:], scalar.BytesQ4_1), float16s(b[4*scalar.BytesQ4_1+2:], scalar.BytesQ4_1))
		for j := range 8 {
			y, d, m := (*[pack.QK]float32)(y[pack.QK*j:]), pick(ds, &laneOf[j]), pick(ms, &laneOf[j])
			u, v := words8(b[scalar.BytesQ4_1*j+4:])
			mulAdd8(y[0:], u.And(low), d, m)
			mulAdd8(y[8:], v.And(low), d, m)
			mulAdd8(y[16:], high4(u), d, m)
			mulAdd8(y[24:], high4(v), d, m)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesQ4_1:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeQ4_1(dst, src)
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
	low, sixteen := bytes32(15), bytes32(16)
	bytes, masks := archsimd.LoadInt8x32Array(&bitBytes), archsimd.LoadUint64x4Array(&bitMasks).AsInt8x32()
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesQ5_0 {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesQ5_0]byte)(src)
		ds := scalesF16(float16s(b[:], scalar.BytesQ5_0), float16s(b[4*scalar.BytesQ5_0:], scalar.BytesQ5_0))
		for j := range 8 {
			y, b, d := (*[pack.QK]float32)(y[pack.QK*j:]), (*[scalar.BytesQ5_0]byte)(b[scalar.BytesQ5_0*j:]),
				pick(ds, &laneOf[j])
			h := spreadBits(binary.LittleEndian.Uint32(b[2:]), bytes, masks, sixteen)
			v := nibbles32(b[6:], low).Or(h).Sub(sixteen)
			mul16(y[:16], v.GetLo(), d)
			mul16(y[16:], v.GetHi(), d)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesQ5_0:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeQ5_0(dst, src)
}

func DequantizeQ5_1(dst []float32, src []byte) {
	low, sixteen := bytes32(15), bytes32(16)
	bytes, masks := archsimd.LoadInt8x32Array(&bitBytes), archsimd.LoadUint64x4Array(&bitMasks).AsInt8x32()
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesQ5_1 {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesQ5_1]byte)(src)
		ds, ms := scalesF16(float16s(b[:], scalar.BytesQ5_1), float16s(b[4*scalar.BytesQ5_1:], scalar.BytesQ5_1)),
			scalesF16(float16s(b[2:], scalar.BytesQ5_1), float16s(b[4*scalar.BytesQ5_1+2:], scalar.BytesQ5_1))
		for j := range 8 {
			y, b := (*[pack.QK]float32)(y[pack.QK*j:]), (*[scalar.BytesQ5_1]byte)(b[scalar.BytesQ5_1*j:])
			d, m := pick(ds, &laneOf[j]), pick(ms, &laneOf[j])
			v := nibbles32(b[8:], low).Or(spreadBits(binary.LittleEndian.Uint32(b[4:]), bytes, masks, sixteen))
			mulAdd16(y[:16], v.GetLo(), d, m)
			mulAdd16(y[16:], v.GetHi(), d, m)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesQ5_1:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeQ5_1(dst, src)
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
	low, values := bytes32(15), archsimd.LoadInt8x32Array(&bytesIQ4)
	for len(dst) >= 8*pack.QK && len(src) >= 8*scalar.BytesIQ4_NL {
		y, b := (*[8 * pack.QK]float32)(dst), (*[8 * scalar.BytesIQ4_NL]byte)(src)
		ds := scalesF16(float16s(b[:], scalar.BytesIQ4_NL), float16s(b[4*scalar.BytesIQ4_NL:], scalar.BytesIQ4_NL))
		for j := range 8 {
			y, d := (*[pack.QK]float32)(y[pack.QK*j:]), pick(ds, &laneOf[j])
			v := values.PermuteOrZeroGrouped(nibbles32(b[scalar.BytesIQ4_NL*j+2:], low))
			mul16(y[:16], v.GetLo(), d)
			mul16(y[16:], v.GetHi(), d)
		}
		dst, src = dst[8*pack.QK:], src[8*scalar.BytesIQ4_NL:]
	}
	archsimd.ClearAVXUpperBits()
	scalar.DequantizeIQ4_NL(dst, src)
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
