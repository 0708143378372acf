//go:build !linux

package gemm

func advise([]float32) {}
