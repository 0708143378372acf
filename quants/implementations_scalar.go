//go:build !goexperiment.simd || !go1.27

package quants

func vectorImplementations() []implementation { return nil }
