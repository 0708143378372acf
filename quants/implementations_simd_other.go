//go:build goexperiment.simd && go1.27 && !amd64

package quants

func hasAVX2() bool { return false }

// nearByTable: there is nearAVX2Dim8.
const nearByTable = false

func archImplementations() []implementation { return nil }
