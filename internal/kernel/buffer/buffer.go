// Package buffer reuses slices of scratch memory from one call to the next.
package buffer

// Integer is a length.
type Integer interface{ ~int | ~int64 }

// Resize sets the length of *buf to n and returns it. If the capacity is less than n, *buf is allocated anew and what it
// held is lost; otherwise the elements keep whatever they held before.
func Resize[T any, N Integer](buf *[]T, n N) []T {
	if N(cap(*buf)) < n {
		*buf = make([]T, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
