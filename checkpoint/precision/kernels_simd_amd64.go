//go:build goexperiment.simd && go1.27

package precision

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
)

// Vectors of 256 bits, as in package avx2: the kernels widen codes, which package simd cannot express. A function with
// vectors has no scalar float32 (golang/go#80835).
//
// Picoseconds per element, 4096 of them in the cache, go1.27.4, Intel Xeon with AVX-512, in parentheses the scalar code
// in the same process; the fastest of 40 runs, because the cores were shared:
//
//	codes     E4M3 230 (430)    I8 and U8 80 (430)
//	products  F16 570 (3600)    BF16 260 (3500)

func init() {
	if cpu.Here().UsesAVX2() {
		vectorsUnsigned, vectorsSigned, vectorsE4M3 = unsignedAVX2, signedAVX2, e4m3AVX2
		productsF16, productsBF16 = productsF16AVX2, productsBF16AVX2
	}
}

type (
	f32x8 = archsimd.Float32x8
	i32x8 = archsimd.Int32x8
)

// each8 returns a vector of 8 copies of v.
func each8(v uint32) i32x8 { return archsimd.BroadcastUint32x8(v).AsInt32x8() }

// step is the number of codes per loop iteration.
const step = 16

func unsignedAVX2(out, codes []byte, scale, zero uint32) (n int) {
	s, z := each8(scale).AsFloat32x8(), each8(zero).AsFloat32x8()
	for len(codes) >= step && len(out) >= 4*step {
		c, o := archsimd.LoadUint8x16Array((*[step]byte)(codes)), (*[4 * step]byte)(out)
		a := c.ExtendLo8ToUint32().AsInt32x8().ConvertToFloat32()
		b := upper(c).ExtendLo8ToUint32().AsInt32x8().ConvertToFloat32()
		store8(o[:32], a.Sub(z).Mul(s))
		store8(o[32:], b.Sub(z).Mul(s))
		codes, out = codes[step:], out[4*step:]
		n += step
	}
	archsimd.ClearAVXUpperBits()
	return n
}

func signedAVX2(out, codes []byte, scale, zero uint32) (n int) {
	s, z := each8(scale).AsFloat32x8(), each8(zero).AsFloat32x8()
	for len(codes) >= step && len(out) >= 4*step {
		c, o := archsimd.LoadUint8x16Array((*[step]byte)(codes)), (*[4 * step]byte)(out)
		a := c.BitsToInt8().ExtendLo8ToInt32().ConvertToFloat32()
		b := upper(c).BitsToInt8().ExtendLo8ToInt32().ConvertToFloat32()
		store8(o[:32], a.Sub(z).Mul(s))
		store8(o[32:], b.Sub(z).Mul(s))
		codes, out = codes[step:], out[4*step:]
		n += step
	}
	archsimd.ClearAVXUpperBits()
	return n
}

func e4m3AVX2(out, codes []byte, scale, zero uint32) (n int) {
	s, z := each8(scale).AsFloat32x8(), each8(zero).AsFloat32x8()
	mag, least, bias, sign := each8(0x7F), each8(8), each8(120<<23), each8(1<<31)
	unit, nan := each8(0x3B000000).AsFloat32x8(), each8(0x7FC00000) // 2^-9
	for len(codes) >= step && len(out) >= 4*step {
		c, o := archsimd.LoadUint8x16Array((*[step]byte)(codes)), (*[4 * step]byte)(out)
		a := e4m3x8(c.ExtendLo8ToUint32().AsInt32x8(), mag, least, bias, sign, nan, unit)
		b := e4m3x8(upper(c).ExtendLo8ToUint32().AsInt32x8(), mag, least, bias, sign, nan, unit)
		store8(o[:32], a.Sub(z).Mul(s))
		store8(o[32:], b.Sub(z).Mul(s))
		codes, out = codes[step:], out[4*step:]
		n += step
	}
	archsimd.ClearAVXUpperBits()
	return n
}

// e4m3x8 returns the values of 8 codes: below the least normal number, multiples of unit.
func e4m3x8(c, mag, least, bias, sign, nan i32x8, unit f32x8) f32x8 {
	m := c.And(mag)
	v := m.ShiftAllLeft(20).Add(bias)
	v = m.ConvertToFloat32().Mul(unit).AsInt32x8().IfElse(least.Greater(m), v)
	v = v.Or(c.ShiftAllLeft(24).And(sign))
	return nan.IfElse(m.Equal(mag), v).AsFloat32x8()
}

// upper returns the upper 8 of the codes.
func upper(c archsimd.Uint8x16) archsimd.Uint8x16 { return c.ConcatShiftBytesRight(c, 8) }

func store8(out []byte, v f32x8) { v.AsUint8x32().StoreArray((*[32]byte)(out)) }

func load8(x []byte) f32x8 { return archsimd.LoadUint8x32Array((*[32]byte)(x)).AsFloat32x8() }

func productsF16AVX2(x []byte, scale uint32) (n int) {
	s := each8(scale).AsFloat32x8()
	abs, halves, least := each8(0x7FFFFFFF), each8(0x3F000000).AsFloat32x8(), each8(0x38800000)
	bias, kept, most := each8(0xFFF), each8(0xFFFFE000), each8(0x477FE000)
	inf, nan := each8(0x7F800000), each8(0x7FC00000)
	for len(x) >= 32 {
		v := roundF16x8(load8(x), abs, least, bias, kept, most, inf, nan, halves)
		store8(x, roundF16x8(v.Mul(s), abs, least, bias, kept, most, inf, nan, halves))
		x = x[32:]
		n += 8
	}
	archsimd.ClearAVXUpperBits()
	return n
}

// roundF16x8 is half.RoundF16 of 8 elements: below the least normal half, 0.5 has the
// step of halves.
func roundF16x8(v f32x8, abs, least, bias, kept, most, inf, nan i32x8, halves f32x8) f32x8 {
	u := v.AsInt32x8()
	a := u.And(abs)
	odd := a.ShiftAllLeft(18).AsUint32x8().ShiftAllRight(31).AsInt32x8()
	r := a.Add(bias).Add(odd).And(kept)
	r = inf.IfElse(r.Greater(most), r)
	r = nan.IfElse(a.Greater(inf), r)
	r = a.AsFloat32x8().Add(halves).Sub(halves).AsInt32x8().IfElse(least.Greater(a), r)
	return r.Or(u.Xor(a)).AsFloat32x8()
}

func productsBF16AVX2(x []byte, scale uint32) (n int) {
	s := each8(scale).AsFloat32x8()
	bias, kept, quiet := each8(0x7FFF), each8(0xFFFF0000), each8(1<<22)
	for len(x) >= 32 {
		v := roundBF16x8(load8(x), bias, kept, quiet)
		store8(x, roundBF16x8(v.Mul(s), bias, kept, quiet))
		x = x[32:]
		n += 8
	}
	archsimd.ClearAVXUpperBits()
	return n
}

// roundBF16x8 is roundBF16 of 8 elements.
func roundBF16x8(v f32x8, bias, kept, quiet i32x8) f32x8 {
	u := v.AsInt32x8()
	odd := u.ShiftAllLeft(15).AsUint32x8().ShiftAllRight(31).AsInt32x8()
	r := u.Or(quiet).IfElse(v.IsNaN(), u.Add(bias).Add(odd))
	return r.And(kept).AsFloat32x8()
}
