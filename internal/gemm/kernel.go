package gemm

//go:generate go run ggforge/internal/gen/gemm -arch amd64
//go:generate go run ggforge/internal/gen/gemm -arch arm64

import "ggforge/internal/fused"

// maxPairs is the number of sums that a kernel makes: of 3 tokens, with 4 rows of
// weights each.
const maxPairs = 3 * 4

// kernel multiplies panels.
type kernel struct {
	name string
	// lanes of a vector; rows of X and of W in a panel: 3, and 3 or 4.
	lanes, mr, nr int
	// dots sets out, [mr][4], to the sums of a run: x is [pass][step][mr][lanes], w
	// [pass][step][nr][lanes]. Columns from nr on mean nothing.
	dots func(out *[maxPairs]float32, x, w []float32)
}

// plain is the kernel without vectors.
var plain = kernel{"scalar", 16, 3, 4, plainDots}

func plainDots(out *[maxPairs]float32, x, w []float32) {
	const mr, nr = 3, 4
	var sums [mr * nr][width]float32
	for ; len(x) >= mr*width && len(w) >= nr*width; x, w = x[mr*width:], w[nr*width:] {
		for i := range sums {
			s, a, b := &sums[i], x[i/nr*width:][:width], w[i%nr*width:][:width]
			for l := range s {
				s[l] = fused.MulAdd(a[l], b[l], s[l])
			}
		}
	}
	for i := range sums {
		out[i] = tree(&sums[i])
	}
}

// active is the kernel in use.
var active = kernels()[0]

// Implementation returns the name of the kernel in use.
func Implementation() string { return active.name }

// put stores the sums of some tokens and rows in c, or adds them to what is there. It is
// kept apart from functions with vectors (golang/go#80835).
//
//go:noinline
func put(c []float32, ldc int, sums *[maxPairs]float32, rows, columns int, add bool) {
	for t := range rows {
		row, s := c[t*ldc:][:columns], sums[4*t:][:columns]
		if add {
			for i, v := range s {
				row[i] += v
			}
		} else {
			copy(row, s)
		}
	}
}
