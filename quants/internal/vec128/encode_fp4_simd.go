//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package vec128

import (
	"math"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
)

// Encoders of MXFP4 and NVFP4, which count the midpoints of neighbouring values below a magnitude. Package avx2
// explains why scalar.EncodeFP4 finds the same, and where it does not: for scales from 2^125 (MXFP4), and magnitudes
// above 2^20 times the scale (NVFP4). Blocks that have those, or elements that are not finite, are left to the scalar
// encoder.

// midpoints has the midpoints of neighbouring codebook.ValuesFP4, each 4 times, as float32 bits.
var midpoints = func() (words [7][4]uint32) {
	for c := range words {
		for l := range words[c] {
			words[c][l] = math.Float32bits((codebook.ValuesFP4[c] + codebook.ValuesFP4[c+1]) / 2)
		}
	}
	return words
}()

// scaled4 and scaled3 are midpoints times a scale, the lower ones and the others.
type (
	scaled4 struct{ a, b, c, d f32x4 }
	scaled3 struct{ e, f, g f32x4 }
)

// middles returns the midpoints for a scale.
func middles(scale uint32) (scaled4, scaled3) {
	d, p := float4(scale), &midpoints
	return scaled4{loadInts(&p[0]).BitsToFloat32().Mul(d), loadInts(&p[1]).BitsToFloat32().Mul(d),
			loadInts(&p[2]).BitsToFloat32().Mul(d), loadInts(&p[3]).BitsToFloat32().Mul(d)},
		scaled3{loadInts(&p[4]).BitsToFloat32().Mul(d), loadInts(&p[5]).BitsToFloat32().Mul(d),
			loadInts(&p[6]).BitsToFloat32().Mul(d)}
}

// negated returns minus the codes of 4 elements. Sign is 8.
func negated(x []float32, m scaled4, n scaled3, abs, sign i32x4) i32x4 {
	var zero i32x4
	v := bits(load4(x))
	a := floats(v.And(abs))
	c := a.Greater(m.a).ToInt32x4().Add(a.Greater(m.b).ToInt32x4()).
		Add(a.Greater(m.c).ToInt32x4().Add(a.Greater(m.d).ToInt32x4())).
		Add(a.Greater(n.e).ToInt32x4().Add(a.Greater(n.f).ToInt32x4())).
		Add(a.Greater(n.g).ToInt32x4()) // a mask is -1
	return c.Sub(zero.Greater(v.And(c)).ToInt32x4().And(sign)) // c is 0 or has its sign bit
}

// codesFP4 returns the codes of 16 elements.
func codesFP4(x []float32, m scaled4, n scaled3, abs, sign i32x4) u8x16 {
	var none u8x16
	p := (*[16]float32)(x)
	return none.Sub(narrow4(negated(p[0:], m, n, abs, sign), negated(p[4:], m, n, abs, sign),
		negated(p[8:], m, n, abs, sign), negated(p[12:], m, n, abs, sign)))
}

func QuantizeMXFP4(dst []byte, src, _ []float32) {
	forTiles(dst, src, scalar.BytesMXFP4, pack.QK, encodeMXFP4, scalar.QuantizeMXFP4)
}

func encodeMXFP4(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.magnitudes(x, pack.QK, n)
	for b := range n {
		e, u := uint8(0), t.magnitude(b)
		if u != 0 && u < 0x7F800000 {
			e = uint8(scalar.FloorLog2(math.Float32frombits(u)) - 2 + 127)
		}
		if e >= 253 || u >= 0x7F800000 {
			t.left |= 1 << b
		}
		t.first[b&7], dst[b*scalar.BytesMXFP4] = codebook.E8M0Half[e], e
	}
	codesMXFP4(&t, dst, x, n)
	return t.left
}

func codesMXFP4(t *tile, dst []byte, x []float32, n int) {
	abs, sign := broadcast(0x7FFFFFFF), broadcast(8)
	for b := range n {
		p, q := (*[pack.QK]float32)(x[pack.QK*b:]), (*[scalar.BytesMXFP4]byte)(dst[scalar.BytesMXFP4*b:])
		m, k := middles(t.first[b&7])
		storeBytes(q[1:], codesFP4(p[:16], m, k, abs, sign).Or(shl8(codesFP4(p[16:], m, k, abs, sign), 4)))
	}
}

// QuantizeNVFP4 takes two blocks as a tile of 8 sub-blocks.
func QuantizeNVFP4(dst []byte, src, _ []float32) {
	for len(src) > 0 {
		n := min(2, len(src)/scalar.QK_NVFP4)
		left := encodeNVFP4(dst[:n*scalar.BytesNVFP4], src[:n*scalar.QK_NVFP4], n)
		for i := range n {
			if left>>(4*i)&15 != 0 {
				scalar.QuantizeNVFP4(dst[i*scalar.BytesNVFP4:][:scalar.BytesNVFP4:scalar.BytesNVFP4],
					src[i*scalar.QK_NVFP4:][:scalar.QK_NVFP4:scalar.QK_NVFP4], nil)
			}
		}
		dst, src = dst[n*scalar.BytesNVFP4:], src[n*scalar.QK_NVFP4:]
	}
}

func encodeNVFP4(dst []byte, x []float32, n int) (left uint8) {
	var t tile
	t.magnitudes(x, 16, 4*n)
	for b := range 4 * n {
		a := math.Float32frombits(t.magnitude(b))
		c := scalar.ToUE4M3(a / 6)
		scale := codebook.UE4M3Half[c]
		switch {
		case !(a <= math.MaxFloat32):
			t.left |= 1 << b
		case scale == 0:
			scale = 0x7F800000 // no magnitude is above an infinite midpoint
		case a > math.Float32frombits(scale)*0x1p20:
			t.left |= 1 << b
		}
		t.first[b&7], dst[b>>2*scalar.BytesNVFP4+b&3] = scale, c
	}
	codesNVFP4(&t, dst, x, n)
	return t.left
}

func codesNVFP4(t *tile, dst []byte, x []float32, n int) {
	abs, sign := broadcast(0x7FFFFFFF), broadcast(8)
	for p := range 2 * n { // two sub-blocks
		x, q := (*[32]float32)(x[32*p:]), (*[16]byte)(dst[p>>1*scalar.BytesNVFP4+4+p&1*16:])
		m, k := middles(t.first[2*p&7])
		u := codesFP4(x[:16], m, k, abs, sign).ReshapeToUint64s()
		m, k = middles(t.first[(2*p+1)&7])
		v := codesFP4(x[16:], m, k, abs, sign).ReshapeToUint64s()
		storeBytes(q[:], u.InterleaveLo(v).ReshapeToUint8s().Or(shl8(u.InterleaveHi(v).ReshapeToUint8s(), 4)))
	}
}
