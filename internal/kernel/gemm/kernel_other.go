//go:build !goexperiment.simd || !go1.27 || (!amd64 && !arm64)

package gemm

// kernels returns those that this machine has, the best first.
func kernels() []*kernel { return []*kernel{&plain} }
