//go:build goexperiment.simd && go1.27

package widths

// cpuBits returns the widest vectors of package simd on this CPU: those of Neon,
// which every arm64 has.
func cpuBits() int { return 128 }
