//go:build goexperiment.simd && go1.27

package quants

func archImplementations() []implementation { return []implementation{vec128Implementation()} }
