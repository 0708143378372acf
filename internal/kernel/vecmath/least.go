package vecmath

import (
	"math"
)

// Quadratic is a function of a point of 4 or 8 numbers p: with x_i = Times_i p_i + Plus_i it
// is Σ_i x_i (Linear_i + Σ_{j<=i} Form_ij x_j). All are the bits of float32 numbers; Form
// has its rows one after the other, 10 or 36 numbers.
type Quadratic struct {
	Form                []uint32
	Linear, Times, Plus [8]uint32
}

// Least returns the index of the first of n points at which the function is smallest, and its
// value there; -1 if no value is below infinity. points has the first numbers of all points,
// then the second ones, and so on. Each product is added with one rounding.
func (c *Quadratic) Least(points []float32, n int) (at int, least float32) {
	at, least = -1, float32(math.Inf(1))
	p := 0
	if len(c.Form) == 36 {
		p = least8(points, n, c, &at, &least)
	} else {
		p = least4(points, n, c, &at, &least)
	}
	c.rest(points, n, p, &at, &least)
	return at, least
}

// rest is Least for the points from p on.
func (c *Quadratic) rest(points []float32, n, p int, at *int, least *float32) {
	dim := 4
	if len(c.Form) == 36 {
		dim = 8
	}
	number := math.Float32frombits
	var x [8]float32
	for ; p < n; p++ {
		var sum float32
		q := c.Form
		for i := range dim {
			x[i] = MulAdd(points[i*n+p], number(c.Times[i]), number(c.Plus[i]))
			s := number(c.Linear[i])
			for j := range i + 1 {
				s = MulAdd(x[j], number(q[j]), s)
			}
			if q = q[i+1:]; i == 0 {
				sum = x[0] * s
			} else {
				sum = MulAdd(x[i], s, sum)
			}
		}
		if sum < *least {
			*at, *least = p, sum
		}
	}
}
