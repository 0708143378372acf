//go:build goexperiment.simd && go1.27 && !amd64

package lane

func load8[T float32 | int32 | uint32](tile, src []T, n, width int) bool { return false }

func store8[T float32 | int32 | uint32](dst, tile []T, n, width int) bool { return false }
