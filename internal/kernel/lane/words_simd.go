//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package lane

import "unsafe"

// words returns the elements of s as their 32 bits.
func words[T float32 | int32 | uint32](s []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
