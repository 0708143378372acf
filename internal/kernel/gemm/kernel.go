package gemm

//go:generate go run ggforge/test/gen/gemm

import "ggforge/internal/kernel/vecmath"

// sums has the results of a kernel: of 3 tokens with 4 rows of weights each. The last 4 are not used. parts is room for
// the sums of lanes, which would be cleared in each call if a kernel with vectors had it on its stack.
type sums struct {
	of    [4 * 4]float32
	parts [3 * 4 * width]float32
}

// kernel multiplies panels.
type kernel struct {
	name string
	// lanes of a vector; rows of X and of W in a panel: 3, and 3 or 4.
	lanes, mr, nr int
	// dots sets out to the sums of a run: x is [pass][step][mr][lanes], w
	// [pass][step][nr][lanes]. Columns from nr on mean nothing.
	dots func(out *sums, x, w []float32)
}

// plain is the kernel without vectors.
var plain = kernel{"scalar", 16, 3, 4, plainDots}

func plainDots(out *sums, x, w []float32) {
	const mr, nr = 3, 4
	parts := &out.parts
	clear(parts[:])
	for ; len(x) >= mr*width && len(w) >= nr*width; x, w = x[mr*width:], w[nr*width:] {
		for i := range mr * nr {
			s, a, b := (*[width]float32)(parts[i*width:]), x[i/nr*width:][:width], w[i%nr*width:][:width]
			for l := range s {
				if sum := float64(a[l])*float64(b[l]) + float64(s[l]); vecmath.Rounds(sum) { // nearly always
					s[l] = float32(sum)
				} else {
					s[l] = vecmath.MulAdd(a[l], b[l], s[l])
				}
			}
		}
	}
	for i := range mr * nr {
		out.of[i] = tree((*[width]float32)(parts[i*width:]))
	}
}

// active is the kernel in use.
var active = kernels()[0]

// Implementation returns the name of the kernel in use.
func Implementation() string { return active.name }

// put stores the sums of some tokens and rows in c, or adds them to c. It is kept apart from functions with vectors
// (golang/go#80835).
//
//go:noinline
func put(c []float32, ldc int, from *sums, rows, columns int, add bool) {
	for t := range rows {
		s := (*[4]float32)(from.of[4*t:])
		if columns == len(s) {
			row := (*[4]float32)(c[t*ldc:])
			if !add {
				*row = *s
				continue
			}
			row[0] += s[0]
			row[1] += s[1]
			row[2] += s[2]
			row[3] += s[3]
			continue
		}
		if columns == len(s)-1 { // as wide as panels of 3 rows: without a call for so few
			row := (*[3]float32)(c[t*ldc:])
			if add {
				row[0] += s[0]
				row[1] += s[1]
				row[2] += s[2]
			} else {
				row[0], row[1], row[2] = s[0], s[1], s[2]
			}
			continue
		}
		row, left := c[t*ldc:][:columns], s[:columns]
		if add {
			for i, v := range left {
				row[i] += v
			}
		} else {
			copy(row, left)
		}
	}
}
