package torchmath

import "math"

// Softplus replaces each element of x by the logarithm of 1 plus its exponential, as
// PyTorch does for a tensor of that length: full vectors by SLEEF, the rest by the C
// library, whose expf and log1pf are nearly always correctly rounded. Numbers above 20
// stay as they are.
func Softplus(x []float32) {
	vectors := len(x) - len(x)%vectorStep
	for i, v := range x {
		switch {
		case v > 20:
		case i < vectors:
			x[i] = log1p(expSingle(v))
		default:
			x[i] = float32(math.Log1p(float64(float32(math.Exp(float64(v))))))
		}
	}
}

// log1p is SLEEF's log1pf for finite numbers that are not negative: log's series, on
// a mantissa that d is added to without loss.
func log1p(d float32) float32 {
	_, e := math.Frexp(float64(float32(d+1) * float32(1/0.75)))
	e--
	t := power2(int32(-e))
	m := fma(d, t, t-1)
	below := 2 + m
	x := double{m, 0}.div(double{below, (2 - below) + m})
	x2 := float32(x.hi * x.hi)
	u := float32(0.3027294874)
	u = fma(u, x2, 0.3996108174)
	u = fma(u, x2, 0.6666694880)
	s := double{0.69314718246459960938, -1.904654323148236017e-09}.mulFloat(float32(e))
	s = s.addQuick(double{x.hi * 2, x.lo * 2})
	y := float32(float32(x2*x.hi) * u)
	r := s.hi + y
	return r + (((s.hi - r) + y) + s.lo)
}
