//go:build goexperiment.simd && go1.27

package widths

import "simd/archsimd"

// cpuBits returns the widest vectors of package simd on this CPU.
func cpuBits() int {
	switch {
	case archsimd.X86.AVX512():
		return 512
	case archsimd.X86.AVX2():
		return 256
	case archsimd.X86.AVX():
		return 128
	}
	return 0
}
