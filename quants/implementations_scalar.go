//go:build !goexperiment.simd || !go1.27

package quants

// HasVectors says whether this build has vector kernels. Whether they run is up to the
// CPU: see Kernels.
const HasVectors = false

func here() machine { return machine{} }

func vectorImplementations() []implementation { return nil }
