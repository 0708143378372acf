package torchmath

import "math"

// NormalQuantile returns the number below which a draw from the standard normal distribution is with probability p, as
// torch.distributions.Normal.icdf computes it in float32: infinite for 0 and 1, NaN for numbers that are not
// probabilities.
func NormalQuantile(p float32) float32 {
	return float32(erfinv(float32(2*p)-1) * math.Sqrt2)
}

// erfinv is the inverse of the error function by the steps of PyTorch's calc_erfinv: a
// rational approximation near the centre or at the ends, then two of Newton's steps. The
// polynomials are fused, because its compiler fuses them. The functions of the C
// library that it calls are rounded correctly but for about one value in a million, so
// that a few results next to 0 and 1 differ in their last bit.
func erfinv(y float32) float32 {
	size := float32(math.Abs(float64(y)))
	switch {
	case !(size <= 1):
		return float32(math.NaN())
	case size == 1:
		return float32(math.Inf(int(y)))
	}
	var x float32
	if size <= 0.7 {
		z := float32(y * y)
		top := polynomial(z, -0.140543331, 0.914624893, -1.645349621, 0.886226899)
		x = float32(y*top) / polynomial(z, 0.012229801, -0.329097515, 1.442710462, -2.118377725, 1)
	} else {
		z := float32(math.Sqrt(float64(-float32(math.Log(float64((1 - size) / 2))))))
		top := polynomial(z, 1.641345311, 3.429567803, -1.624906493, -1.970840454)
		x = float32(math.Copysign(float64(top), float64(y))) / polynomial(z, 1.637067800, 3.543889200, 1)
	}
	const slope = float32(2 / (math.SqrtPi))
	for range 2 {
		miss := float32(math.Erf(float64(x))) - y
		x -= float32(miss / float32(slope*float32(math.Exp(float64(float32(-x*x))))))
	}
	return x
}

// polynomial evaluates one from its highest coefficient down.
func polynomial(x float32, c ...float32) float32 {
	sum := c[0]
	for _, next := range c[1:] {
		sum = fma(sum, x, next)
	}
	return sum
}
