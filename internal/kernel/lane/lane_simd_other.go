//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package lane

func loadWhole[T float32 | int32 | uint32](tile, src []T, n, width int) bool { return false }

func storeWhole[T float32 | int32 | uint32](dst, tile []T, n, width int) bool { return false }
