//go:build goexperiment.simd && go1.27

package gemm

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
)

// kernels returns those that this machine has, the best first.
func kernels() []*kernel {
	m := cpu.Here()
	var list []*kernel
	if !m.Emulated && archsimd.X86.FMA() {
		if m.Bits >= 512 {
			list = append(list, &kernel{"fma-512", 16, 3, 4, dots16})
		}
		if m.Bits >= 256 {
			list = append(list, &kernel{"fma-256", 8, 3, 3, dots8})
		}
		list = append(list, &kernel{"fma-128", 4, 3, 3, dots4})
	}
	return append(list, &plain)
}

// Which lanes of two vectors make one: the first and the last half of each; the even and
// the odd quarters.
var (
	firstHalves  = [16]uint32{0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}
	lastHalves   = [16]uint32{8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31}
	evenQuarters = [16]uint32{0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27}
	oddQuarters  = [16]uint32{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31}
	transposed   = [16]uint32{0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15}
)

// quarters adds lanes 8 apart, then 4 apart, of four vectors: quarter i is that of vi.
func quarters(v0, v1, v2, v3 archsimd.Float32x16) archsimd.Float32x16 {
	first, last := archsimd.LoadUint32x16Array(&firstHalves), archsimd.LoadUint32x16Array(&lastHalves)
	a := v0.ConcatPermute(v1, first).Add(v0.ConcatPermute(v1, last))
	b := v2.ConcatPermute(v3, first).Add(v2.ConcatPermute(v3, last))
	return a.ConcatPermute(b, archsimd.LoadUint32x16Array(&evenQuarters)).Add(a.ConcatPermute(b,
		archsimd.LoadUint32x16Array(&oddQuarters)))
}

// rows adds lanes 2 apart, then 1 apart, of each quarter of three vectors: sums of r0, of
// r1, and twice of r2.
func rows(r0, r1, r2 archsimd.Float32x16) archsimd.Float32x16 {
	a := r0.ConcatPermuteScalarsGrouped(0, 1, 4, 5, r1).Add(r0.ConcatPermuteScalarsGrouped(2, 3, 6, 7, r1))
	b := r2.ConcatPermuteScalarsGrouped(0, 1, 4, 5, r2).Add(r2.ConcatPermuteScalarsGrouped(2, 3, 6, 7, r2))
	sums := a.ConcatPermuteScalarsGrouped(0, 2, 4, 6, b).Add(a.ConcatPermuteScalarsGrouped(1, 3, 5, 7, b))
	return sums.Permute(archsimd.LoadUint32x16Array(&transposed))
}

// fold8 is fold4 for the two halves of 16 lanes.
func fold8(lo, hi []float32) u32x4 {
	return halves(archsimd.LoadFloat32x8Array((*[8]float32)(lo)).Add(archsimd.LoadFloat32x8Array((*[8]float32)(hi))))
}

func halves(v archsimd.Float32x8) u32x4 { return v.GetLo().Add(v.GetHi()).ToBits() }

// clearUpper ends a kernel: scalar code after it would otherwise be slowed down by the upper halves of registers.
func clearUpper() { archsimd.ClearAVXUpperBits() }
