//go:build goexperiment.simd && go1.27

package cpu

import "simd"

// HasVectors: this build has vector kernels.
const HasVectors = true

// Here returns the machine of this process.
func Here() Machine { return Machine{simd.VectorBitSize(), simd.Emulated(), hasAVX2()} }
