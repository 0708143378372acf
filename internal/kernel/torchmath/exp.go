package torchmath

import "math"

// Exp replaces each element of x by its exponential, as PyTorch does for a
// tensor of any length: by SLEEF, also in the part after the last full vector.
func Exp(x []float32) {
	for i, v := range x {
		x[i] = expSingle(v)
	}
}

// expSingle is SLEEF's expf, whose error is below one unit: the argument less a
// multiple of the logarithm of 2, a polynomial, and a power of 2.
func expSingle(x float32) float32 {
	if x != x {
		return x
	}
	if x < -104 {
		return 0
	}
	if x > 100 {
		return float32(math.Inf(1))
	}
	q := float32(math.RoundToEven(float64(float32(x * ln2Recipr))))
	s := fma(q, -ln2Hi, x)
	s = fma(q, -ln2Lo, s)
	u := float32(0.000198527617612853646278381)
	for _, c := range [...]float32{0.00139304355252534151077271, 0.00833336077630519866943359,
		0.0416664853692054748535156, 0.166666671633720397949219, 0.5} {
		u = fma(u, s, c)
	}
	u = 1 + fma(float32(s*s), u, s)
	// in two steps, so that neither factor is beyond the normal numbers
	n := int32(q)
	half := n >> 1
	return float32(float32(u*power2(half)) * power2(n-half))
}

// power2 returns 2 to the power n, from -126 to 127.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }
