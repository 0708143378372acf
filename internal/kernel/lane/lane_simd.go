//go:build goexperiment.simd && go1.27

// Package lane turns runs of sub-blocks into tiles, in which lane i of every
// vector belongs to sub-block i, and back. It is the only place that knows the
// transposition.
//
//	sub-blocks, one after the other         tile, width = 4
//
//	a0 a1 a2 ... | b0 b1 b2 ... | c0 ...    a0 b0 c0 d0   row 0: element 0 of each
//	                                        a1 b1 c1 d1   row 1
//	                                        ...
//
// A tile of n-element sub-blocks is n rows of width values. Moves of single values cost one load and one store each,
// about a cycle per value on Zen 3, against the 8 to 30 cycles per value of the searches that work on tiles; and the
// next load of a vector of such values waits for the stores. Where there is AVX2, a whole tile of 8 or 16 sub-blocks is
// transposed in vectors, in half a cycle per value; so is one of 4 with arm64, in 3 instructions per value instead of
// 6.
package lane

import "simd"

// MaxWidth bounds Width: 32-bit lanes of a 512-bit vector.
const MaxWidth = 16

// Width returns the number of 32-bit lanes of a vector, a multiple of 4. It is
// fixed for the life of the process.
func Width() int {
	var v simd.Int32s
	return v.Len()
}

// Load fills tile with the sub-blocks of n values in src: len(src) = k*n for some
// 0 <= k <= width, width a multiple of 4, n a multiple of 4, and len(tile) =
// n*width. Lanes k and up become 0.
func Load[T float32 | int32 | uint32](tile, src []T, n, width int) {
	tile = tile[:n*width]
	if loadWhole(tile, src, n, width) {
		return
	}
	if len(src) < len(tile) && len(src)%(4*n) != 0 {
		clear(tile)
	}
	l := 0
	for ; len(src) >= 4*n; l += 4 {
		a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
		src = src[4*n:]
		t := tile[l:]
		for i := range a {
			r := (*[4]T)(t)
			r[0], r[1], r[2], r[3] = a[i], b[i], c[i], d[i]
			if len(t) < width+4 {
				break
			}
			t = t[width:]
		}
	}
	for ; len(src) > 0; l++ {
		for i, v := range src[:n] {
			tile[i*width+l] = v
		}
		src = src[n:]
	}
	if l%4 == 0 {
		for ; l < width; l += 4 {
			for i := range n {
				*(*[4]T)(tile[i*width+l:]) = [4]T{}
			}
		}
	}
}

// Store is the inverse of Load: it fills dst, k*n values, from the first k lanes
// of tile.
func Store[T float32 | int32 | uint32](dst, tile []T, n, width int) {
	tile = tile[:n*width]
	if storeWhole(dst, tile, n, width) {
		return
	}
	l := 0
	for ; len(dst) >= 4*n; l += 4 {
		a, b, c, d := dst[:n], dst[n:][:n], dst[2*n:][:n], dst[3*n:][:n]
		dst = dst[4*n:]
		t := tile[l:]
		for i := range a {
			r := (*[4]T)(t)
			a[i], b[i], c[i], d[i] = r[0], r[1], r[2], r[3]
			if len(t) < width+4 {
				break
			}
			t = t[width:]
		}
	}
	for ; len(dst) > 0; l++ {
		for i := range dst[:n] {
			dst[i] = tile[i*width+l]
		}
		dst = dst[n:]
	}
}
