package vecmath

import (
	"fmt"
	"math"
)

// Coefficients of the series that Softplus uses: ln(1+e) = 2*artanh(t) with t = e/(2+e), at most 1/3.
const (
	softplus3  = 1.0 / 3
	softplus5  = 1.0 / 5
	softplus7  = 1.0 / 7
	softplus9  = 1.0 / 9
	softplus11 = 1.0 / 11
	softplus13 = 1.0 / 13
	softplus15 = 1.0 / 15
)

// Softplus returns ln(1 + e^x). Error: 2 units.
func Softplus(x float32) float32 {
	e := Exp(-abs(x))
	t := e / (2 + e)
	s := t * t
	p := MulAdd(softplus15, s, softplus13)
	p = MulAdd(p, s, softplus11)
	p = MulAdd(p, s, softplus9)
	p = MulAdd(p, s, softplus7)
	p = MulAdd(p, s, softplus5)
	p = MulAdd(p, s, softplus3)
	p = MulAdd(p*s, t, t)
	return ReLU(x) + (p + p)
}

// SoftplusOf is Softplus for slices.
var SoftplusOf = Function{"Softplus", Softplus, softplusVectors, sigmoidOnly.Apply}

// AddProduct adds the products of a and b to dst, element by element, each rounded once.
func AddProduct(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := addProductVectors(dst, a, b); i < len(dst); i++ {
		dst[i] = MulAdd(a[i], b[i], dst[i])
	}
}

// Recur advances a recurrent state by one step and reads it. The state has a row of
// len(x) values for each element of decay, in and out: row r becomes decay[r] times itself,
// rounded, plus in[r] times x; then out[r] times the row is added to y, row after row.
func Recur(y, state, x, decay, in, out []float32) {
	n, rows := len(x), len(decay)
	if len(y) != n || len(state) != n*rows || len(in) != rows || len(out) != rows {
		panic(fmt.Sprintf("vecmath: a state of %d, %d rows of %d, with factors of %d and %d", len(state), rows, n,
			len(in), len(out)))
	}
	var f factors
	for r := 0; r < rows; r += len(f) {
		m := min(len(f), rows-r)
		for i := range m {
			f[i] = [3]uint32{math.Float32bits(decay[r+i]), math.Float32bits(in[r+i]), math.Float32bits(out[r+i])}
		}
		part := state[r*n:][:m*n]
		if first := recurVectors(y, part, x, f[:m]); first < n {
			recur(y, part, x, decay[r:][:m], in[r:], out[r:], first)
		}
	}
}

// factors has decay, in and out of some rows as bits: scalars of float32 do not go with vectors
// (golang/go#80835).
type factors [64][3]uint32

// recur is Recur for the columns from first on.
func recur(y, state, x, decay, in, out []float32, first int) {
	n := len(x)
	for r, d := range decay {
		row := state[r*n:][:n]
		f, g := in[r], out[r]
		for i := first; i < n; i++ {
			s := MulAdd(f, x[i], float32(d*row[i]))
			row[i] = s
			y[i] = MulAdd(g, s, y[i])
		}
	}
}
