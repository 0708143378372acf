//go:build goexperiment.simd && go1.27

package avx2

import (
	"encoding/binary"
	"simd/archsimd"

	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Decoders of the K types and IQ4_XS. The scales of a superblock are computed
// first, 8 per vector; a sub-block picks its own. (Stored and broadcast from there, they
// are as fast where the stack happens to be aligned, and half as fast where it is not.)
//
// go1.27.4, Intel Xeon (Sapphire Rapids), float32 output in cache: against the scalar
// code, best of several runs of both:
//
//	Q2_K     x7.2   25600 MB/s
//	Q3_K     x12.0  28500 MB/s
//	Q4_K     x6.3   36100 MB/s
//	Q5_K     x9.9   31600 MB/s
//	Q6_K     x14.7  32600 MB/s
//	IQ4_XS   x5.9   31200 MB/s
//
// Q5_K, Q6_K and IQ4_XS were at 12000 with scales read as float32 that are not normal.

// bytes16 returns lo and hi as 16 bytes.
func bytes16(lo, hi uint64) i8x16 {
	return archsimd.BroadcastUint64x2(lo).InterleaveLo(archsimd.BroadcastUint64x2(hi)).AsInt8x16()
}

func float8(bits uint32) f32x8 { return ints8(bits).AsFloat32x8() }

// neg8 returns -v.
func neg8(v f32x8, sign i32x8) f32x8 { return v.AsInt32x8().Xor(sign).AsFloat32x8() }

// scales16 returns d*v.
func scales16(v i8x16, d f32x8) (lo, hi f32x8) {
	lo, hi = wide8(v)
	return lo.Mul(d), hi.Mul(d)
}

// scales8 returns d times the bytes of v.
func scales8(v uint64, d f32x8) f32x8 {
	return archsimd.BroadcastUint64x2(v).AsInt8x16().ExtendLo8ToInt32().ConvertToFloat32().Mul(d)
}

// laneOf[j] picks lane j, for all lanes.
var laneOf = func() (p [8][8]uint32) {
	for j := range p {
		for i := range p[j] {
			p[j][i] = uint32(j)
		}
	}
	return p
}()

// pick returns 8 times lane j of v.
func pick(v f32x8, j *[8]uint32) f32x8 { return v.Permute(archsimd.LoadUint32x8Array(j)) }

// scaleMinCodes is pack.UnpackScaleMin for all sub-blocks, byte j of s and m being the
// codes of sub-block j.
func scaleMinCodes(src []byte) (s, m uint64) {
	a, b, c := binary.LittleEndian.Uint32(src), binary.LittleEndian.Uint32(src[4:]), binary.LittleEndian.Uint32(src[8:])
	s = uint64(a&0x3F3F3F3F) | uint64(c&0x0F0F0F0F|a>>2&0x30303030)<<32
	m = uint64(b&0x3F3F3F3F) | uint64(c>>4&0x0F0F0F0F|b>>2&0x30303030)<<32
	return s, m
}

func DequantizeQ4_K(dst []float32, src []byte) {
	k := float8(mantissaBits)
	low, sign := ints8(15), ints8(1<<31)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ4_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ4_K]byte)(src)
		s, m := scaleMinCodes(b[4:16])
		ds, ms := scales8(s, getF16x8(b[:], k)), scales8(m, neg8(getF16x8(b[2:], k), sign))
		for g := range 4 {
			y, q := (*[64]float32)(y[64*g:]), (*[32]byte)(b[16+32*g:])
			d0, d1 := pick(ds, &laneOf[2*g]), pick(ds, &laneOf[2*g+1])
			m0, m1 := pick(ms, &laneOf[2*g]), pick(ms, &laneOf[2*g+1])
			u, v := words8(q[:16])
			mulAdd8(y[0:], u.And(low), d0, m0)
			mulAdd8(y[8:], v.And(low), d0, m0)
			mulAdd8(y[32:], high4(u), d1, m1)
			mulAdd8(y[40:], high4(v), d1, m1)
			u, v = words8(q[16:])
			mulAdd8(y[16:], u.And(low), d0, m0)
			mulAdd8(y[24:], v.And(low), d0, m0)
			mulAdd8(y[48:], high4(u), d1, m1)
			mulAdd8(y[56:], high4(v), d1, m1)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ4_K:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ5_K(dst []float32, src []byte) {
	k := float8(mantissaBits)
	low, bit, sign := bytes32(15), bytes32(16), ints8(1<<31)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ5_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ5_K]byte)(src)
		s, m := scaleMinCodes(b[4:16])
		ds, ms := scales8(s, getF16x8(b[:], k)), scales8(m, neg8(getF16x8(b[2:], k), sign))
		h := archsimd.LoadUint8x32Array((*[32]byte)(b[16:])).AsUint16x16()
		for g := range 4 {
			y, v := (*[64]float32)(y[64*g:]), archsimd.LoadUint8x32Array((*[32]byte)(b[48+32*g:]))
			lo := v.AsInt8x32().And(low).Or(h.ShiftAllLeft(4).AsInt8x32().And(bit))
			hi := v.AsUint16x16().ShiftAllRight(4).AsInt8x32().And(low).Or(h.ShiftAllLeft(3).AsInt8x32().And(bit))
			h = h.ShiftAllRight(2)
			d, m := pick(ds, &laneOf[2*g]), pick(ms, &laneOf[2*g])
			mulAdd16(y[0:], lo.GetLo(), d, m)
			mulAdd16(y[16:], lo.GetHi(), d, m)
			d, m = pick(ds, &laneOf[2*g+1]), pick(ms, &laneOf[2*g+1])
			mulAdd16(y[32:], hi.GetLo(), d, m)
			mulAdd16(y[48:], hi.GetHi(), d, m)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ5_K:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ2_K(dst []float32, src []byte) {
	k := float8(mantissaBits)
	crumb, sign := bytes32(3), ints8(1<<31)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ2_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ2_K]byte)(src)
		s, m := binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
		const low = 0x0F0F0F0F0F0F0F0F
		ds, dNext := scales16(bytes16(s&low, m&low), getF16x8(b[80:], k))
		ms, mNext := scales16(bytes16(s>>4&low, m>>4&low), neg8(getF16x8(b[82:], k), sign))
		for h := range 2 {
			v := archsimd.LoadUint8x32Array((*[32]byte)(b[16+32*h:])).AsUint16x16()
			for g := range 4 {
				y, c := (*[32]float32)(y[128*h+32*g:]), v.AsInt8x32().And(crumb)
				v = v.ShiftAllRight(2)
				mulAdd16(y[:16], c.GetLo(), pick(ds, &laneOf[2*g]), pick(ms, &laneOf[2*g]))
				mulAdd16(y[16:], c.GetHi(), pick(ds, &laneOf[2*g+1]), pick(ms, &laneOf[2*g+1]))
			}
			ds, ms = dNext, mNext
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ2_K:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ3_K(dst []float32, src []byte) {
	k := float8(mantissaBits)
	crumb, bit := bytes32(3), bytes32(4)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ3_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ3_K]byte)(src)
		s, t := binary.LittleEndian.Uint64(b[96:]), binary.LittleEndian.Uint32(b[104:])
		const low = 0x0F0F0F0F0F0F0F0F
		lo := s&low | uint64(t<<4&0x30303030) | uint64(t<<2&0x30303030)<<32
		hi := s>>4&low | uint64(t&0x30303030) | uint64(t>>2&0x30303030)<<32
		ds, next := scales16(bytes16(lo, hi).Sub(archsimd.BroadcastInt8x16(32)), getF16x8(b[108:], k))
		m := archsimd.LoadUint8x32Array((*[32]byte)(b[:])).AsUint16x16()
		for h := range 2 {
			v := archsimd.LoadUint8x32Array((*[32]byte)(b[32+32*h:])).AsUint16x16()
			for g := range 4 {
				c := v.AsInt8x32().And(crumb).Or(m.ShiftAllLeft(2).AsInt8x32().And(bit)).Sub(bit)
				v, m = v.ShiftAllRight(2), m.ShiftAllRight(1)
				y := (*[32]float32)(y[128*h+32*g:])
				mul16(y[:16], c.GetLo(), pick(ds, &laneOf[2*g]))
				mul16(y[16:], c.GetHi(), pick(ds, &laneOf[2*g+1]))
			}
			ds = next
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ3_K:]
	}
	archsimd.ClearAVXUpperBits()
}

func DequantizeQ6_K(dst []float32, src []byte) {
	k := float8(mantissaBits)
	low, high, middle := bytes32(15), bytes32(0x30), bytes32(32)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesQ6_K {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesQ6_K]byte)(src)
		ds, next := scales16(archsimd.LoadUint8x16Array((*[16]byte)(b[192:])).AsInt8x16(), getF16x8(b[208:], k))
		for h := range 2 {
			v0 := archsimd.LoadUint8x32Array((*[32]byte)(b[64*h:])).AsUint16x16()
			v1 := archsimd.LoadUint8x32Array((*[32]byte)(b[64*h+32:])).AsUint16x16()
			q := archsimd.LoadUint8x32Array((*[32]byte)(b[128+32*h:])).AsUint16x16()
			y := (*[128]float32)(y[128*h:])
			c := v0.AsInt8x32().And(low).Or(q.ShiftAllLeft(4).AsInt8x32().And(high)).Sub(middle)
			mul16(y[0:], c.GetLo(), pick(ds, &laneOf[0]))
			mul16(y[16:], c.GetHi(), pick(ds, &laneOf[1]))
			c = v1.AsInt8x32().And(low).Or(q.ShiftAllLeft(2).AsInt8x32().And(high)).Sub(middle)
			mul16(y[32:], c.GetLo(), pick(ds, &laneOf[2]))
			mul16(y[48:], c.GetHi(), pick(ds, &laneOf[3]))
			c = v0.ShiftAllRight(4).AsInt8x32().And(low).Or(q.AsInt8x32().And(high)).Sub(middle)
			mul16(y[64:], c.GetLo(), pick(ds, &laneOf[4]))
			mul16(y[80:], c.GetHi(), pick(ds, &laneOf[5]))
			c = v1.ShiftAllRight(4).AsInt8x32().And(low).Or(q.ShiftAllRight(2).AsInt8x32().And(high)).Sub(middle)
			mul16(y[96:], c.GetLo(), pick(ds, &laneOf[6]))
			mul16(y[112:], c.GetHi(), pick(ds, &laneOf[7]))
			ds = next
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesQ6_K:]
	}
	archsimd.ClearAVXUpperBits()
}

// Shift counts that bring 4-bit and 2-bit fields of a word to the bottom.
var (
	shifts4 = [8]uint32{0, 4, 8, 12, 16, 20, 24, 28}
	shifts2 = [8]uint32{0, 2, 4, 6, 8, 10, 12, 14}
)

func DequantizeIQ4_XS(dst []float32, src []byte) {
	k := float8(mantissaBits)
	low, values := bytes32(15), archsimd.LoadInt8x32Array(&bytesIQ4)
	by4, by2 := archsimd.LoadUint32x8Array(&shifts4), archsimd.LoadUint32x8Array(&shifts2)
	low4, low2, middle := ints8(15), ints8(3), ints8(32)
	for len(dst) >= pack.QK_K && len(src) >= scalar.BytesIQ4_XS {
		y, b := (*[pack.QK_K]float32)(dst), (*[scalar.BytesIQ4_XS]byte)(src)
		s := ints8(binary.LittleEndian.Uint32(b[4:])).AsUint32x8().ShiftRight(by4).AsInt32x8().And(low4)
		t := ints8(uint32(binary.LittleEndian.Uint16(b[2:]))).AsUint32x8().ShiftRight(by2).AsInt32x8().And(low2)
		s = s.Or(t.ShiftAllLeft(4)).Sub(middle)
		ds := s.ConvertToFloat32().Mul(getF16x8(b[:], k))
		for j := range 8 {
			v, d := values.PermuteOrZeroGrouped(nibbles32(b[8+16*j:], low)), pick(ds, &laneOf[j])
			y := (*[32]float32)(y[32*j:])
			mul16(y[:16], v.GetLo(), d)
			mul16(y[16:], v.GetHi(), d)
		}
		dst, src = dst[pack.QK_K:], src[scalar.BytesIQ4_XS:]
	}
	archsimd.ClearAVXUpperBits()
}
