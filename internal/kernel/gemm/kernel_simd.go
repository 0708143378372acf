//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package gemm

import "simd/archsimd"

type (
	f32x4 = archsimd.Float32x4
	u32x4 = archsimd.Uint32x4 // of float32, for moving
)

// fold4 adds lanes 8 apart, then 4 apart, of the four quarters of 16 lanes.
func fold4(a, b, c, d []float32) u32x4 {
	load := func(s []float32) f32x4 { return archsimd.LoadFloat32x4Array((*[4]float32)(s)) }
	return load(a).Add(load(c)).Add(load(b).Add(load(d))).ToBits()
}

// four adds lanes 2 apart, then 1 apart, of four vectors; lane i is that of vi.
func four(v0, v1, v2, v3 u32x4) f32x4 {
	p, q := apart2(v0, v2).ToBits(), apart2(v1, v3).ToBits()
	return apart2(p, q)
}

// apart2 adds lanes 2 apart of two vectors and leaves the sums of both in turn.
func apart2(v, w u32x4) f32x4 {
	return v.InterleaveLo(w).BitsToFloat32().Add(v.InterleaveHi(w).BitsToFloat32())
}
