//go:build !(goexperiment.simd && go1.27)

package main

// width is 0: this build has scalar kernels only.
func width() int { return 0 }
