//go:build goexperiment.simd && go1.27 && !amd64

package cpu

func hasAVX2() bool { return false }
