//go:build goexperiment.simd && go1.27

package avx2

import (
	"simd/archsimd"

	"ggforge/quants/internal/scalar"
)

// FiniteChunks does the sums of finiteWords in vectors of 4 words.
//
// go1.27.4, AMD EPYC (Zen 3): 100 GB/s in the nearest cache (x7 against the scalar
// code), 45 in the next one.

func FiniteChunks(src []byte, exp, step uint64) (n int) {
	e, s, sign := archsimd.BroadcastUint64x4(exp), archsimd.BroadcastUint64x4(step),
		archsimd.BroadcastUint64x4(exp+step)
	for len(src) >= scalar.FiniteChunk {
		var a, b archsimd.Uint64x4
		for c := src[:scalar.FiniteChunk]; len(c) >= 128; c = c[128:] {
			v := (*[128]byte)(c)
			a = a.Or(load32(v[0:]).And(e).Add(s)).Or(load32(v[32:]).And(e).Add(s))
			b = b.Or(load32(v[64:]).And(e).Add(s)).Or(load32(v[96:]).And(e).Add(s))
		}
		if !a.Or(b).And(sign).IsZero() {
			break
		}
		src = src[scalar.FiniteChunk:]
		n += scalar.FiniteChunk
	}
	archsimd.ClearAVXUpperBits()
	return n
}

func load32(b []byte) archsimd.Uint64x4 {
	return archsimd.LoadUint8x32Array((*[32]byte)(b)).AsUint64x4()
}
