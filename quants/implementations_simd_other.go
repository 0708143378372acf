//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package quants

func archImplementations() []implementation { return nil }
