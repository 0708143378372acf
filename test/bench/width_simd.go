//go:build goexperiment.simd && go1.27

package main

import "simd"

// width returns the bits of the vectors in use, 0 if they are emulated: the
// kernels are the scalar ones then.
func width() int {
	if simd.Emulated() {
		return 0
	}
	return simd.VectorBitSize()
}
