// Package gemm multiplies matrices of float32: activations by the transpose of weights of
// any tensor type.
//
//	C[t, r] = Σ X[t, k] · W[r, k]
//
// The bits of a result are defined, so that they depend on neither the processor nor the
// number of workers nor the way the matrices are cut. k is cut into runs of Run. In a
// run there are 16 partial sums, by k mod 16; each is a chain of fused multiply-adds in
// the order of k that begins with +0. Their sum is a tree: lanes 8, 4, 2 and 1 apart are
// added, in this order. The sums of runs are added one after the other. Dot is that
// definition as code; the kernels are compared with it.
//
// Vectors hold neighbours along k, one accumulator for each pair of a token and a row of
// weights: nothing has to be broadcast or transposed, and rows of weights are used as
// decoders write them. Matrices are copied into panels first, in which a kernel reads
// from the beginning to the end:
//
//	panel of p rows: [run][pass][step][row, p of them][lane]
//
// A step is 16 values of k. A vector of 8 or 4 lanes takes them in 2 or 4 passes over
// the run. The caches decide the order of loops: see together and tileRows.
package gemm

import "ggforge/internal/kernel/vecmath"

// Run is the number of products that a chain has at most before its sum is taken.
const Run = 1024

// width is the number of partial sums of a run.
const width = 16

// Dot returns the sum of the products of x and w, which have the same length, by the
// definition of the package.
func Dot(x, w []float32) float32 {
	var total float32
	for k := 0; k < len(x); k += Run {
		var sums [width]float32
		for i := k; i < min(k+Run, len(x)); i++ {
			sums[i%width] = vecmath.MulAdd(x[i], w[i], sums[i%width])
		}
		if k == 0 {
			total = tree(&sums)
		} else {
			total += tree(&sums)
		}
	}
	return total
}

// tree adds partial sums: lanes 8, 4, 2 and 1 apart.
func tree(s *[width]float32) float32 {
	var t [width / 2]float32
	for i := range t {
		t[i] = s[i] + s[i+8]
	}
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			t[i] += t[i+n]
		}
	}
	return t[0]
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
