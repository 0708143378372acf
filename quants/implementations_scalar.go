//go:build !goexperiment.simd || !go1.27

package quants

func here() machine { return machine{} }

func vectorImplementations() []implementation { return nil }
