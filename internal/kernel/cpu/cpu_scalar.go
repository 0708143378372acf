//go:build !goexperiment.simd || !go1.27

package cpu

// HasVectors: this build has vector kernels.
const HasVectors = false

// Here returns the machine of this process.
func Here() Machine { return Machine{} }
