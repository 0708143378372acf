package vecmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestLeast compares the result of vectors with that of scalar code, by bits, for numbers of points around
// the lengths of vectors, and scalar code with float64. Some points occur twice, some are NaN.
func TestLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	bits := func() uint32 { return math.Float32bits(float32(r.NormFloat64())) }
	number := func(b uint32) float64 { return float64(math.Float32frombits(b)) }
	for _, dim := range []int{4, 8} {
		for _, n := range []int{1, 3, 4, 7, 8, 15, 16, 17, 32, 100} {
			for round := range 30 {
				c := Quadratic{}
				for i := range dim {
					c.Linear[i], c.Times[i], c.Plus[i] = bits(), bits(), bits()
					for range i + 1 {
						c.Form = append(c.Form, bits())
					}
				}
				points := make([]float32, dim*n)
				for i := range points {
					points[i] = float32(r.IntN(5))
				}
				bad := r.IntN(2 * n)
				if bad < n {
					points[bad] = float32(math.NaN())
				}
				if n > 5 {
					for i := range dim {
						points[i*n+n-1] = points[i*n+1]
					}
				}
				at, least := c.Least(points, n)
				wantAt, want := -1, float32(math.Inf(1))
				c.rest(points, n, 0, &wantAt, &want)
				if at != wantAt || math.Float32bits(least) != math.Float32bits(want) {
					t.Fatalf("%d points of %d: %v at %d, want %v at %d", n, dim, least, at, want, wantAt)
				}
				exact := math.Inf(1)
				for p := range n {
					var x [8]float64
					sum, q := 0.0, c.Form
					for i := range dim {
						x[i] = number(c.Times[i])*float64(points[i*n+p]) + number(c.Plus[i])
						s := number(c.Linear[i])
						for j := range i + 1 {
							s += number(q[j]) * x[j]
						}
						sum, q = sum+x[i]*s, q[i+1:]
					}
					if sum < exact {
						exact = sum
					}
				}
				if math.Abs(exact-float64(least)) > 1e-4*(1+math.Abs(exact)) {
					t.Fatalf("round %d, %d points of %d: %v, want %v", round, n, dim, least, exact)
				}
			}
		}
	}
	c := Quadratic{Form: make([]uint32, 10)}
	if at, _ := c.Least([]float32{float32(math.NaN()), 1, 1, 1}, 1); at != -1 {
		t.Errorf("index %d of NaNs", at)
	}
}
