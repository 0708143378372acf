//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package widths

import "simd"

// cpuBits returns the width of vectors in this process, 0 if they are emulated.
func cpuBits() int {
	if simd.Emulated() {
		return 0
	}
	return simd.VectorBitSize()
}
