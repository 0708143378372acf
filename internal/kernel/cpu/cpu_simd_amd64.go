//go:build goexperiment.simd && go1.27

package cpu

import "simd/archsimd"

func hasAVX2() bool { return archsimd.X86.AVX2() }
