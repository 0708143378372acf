//go:build goexperiment.simd && go1.27

package gemm

// kernels returns those that this machine has, the best first.
func kernels() []*kernel {
	return []*kernel{{"fma-128", 4, 3, 3, dots4}, &plain}
}

func clearUpper() {}
