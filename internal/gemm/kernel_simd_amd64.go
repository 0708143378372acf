//go:build goexperiment.simd && go1.27

package gemm

import (
	"simd/archsimd"

	"ggforge/internal/cpu"
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

// fold16 is fold4 for one vector.
func fold16(v archsimd.Float32x16) u32x4 {
	return halves(v.GetLo().Add(v.GetHi()))
}

// fold8 is fold4 for the two halves of 16 lanes.
func fold8(lo, hi []float32) u32x4 {
	return halves(archsimd.LoadFloat32x8Array((*[8]float32)(lo)).Add(archsimd.LoadFloat32x8Array((*[8]float32)(hi))))
}

func halves(v archsimd.Float32x8) u32x4 { return v.GetLo().Add(v.GetHi()).ToBits() }
