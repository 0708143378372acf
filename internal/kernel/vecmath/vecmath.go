// Package vecmath has the functions of float32 that models compute besides matrix products: exponential, hyperbolic
// tangent, error function, and functions built on them.
//
// Their bits are defined by the code without vectors, chains of fused multiply-adds in
// float32, so that they are the same on every processor; the standard library's differ,
// as it has assembly on some and compilers fuse on others. Errors are in units of the
// last place, the largest over all arguments (TestErrors).
//
// Log, Exp64, SinCos and Pow are for values that are computed once per token or position.
package vecmath

import (
	"math"
)

// Limits of Exp: above the one the result is infinite, below the other it is 0. The
// smallest results would be subnormal.
const (
	expMost  = 88.72283
	expLeast = -87.33
)

// Constants of Exp: the logarithm of 2 in two parts, the first with zeros at its end so
// that its multiples are exact, and a polynomial of degree 5 for (e^r - 1 - r)/r². Source: Cephes.
const (
	log2e  = 1.44269504088896341
	ln2Hi  = 0.693359375
	ln2Lo  = -2.12194440e-4
	expP0  = 1.9875691500e-4
	expP1  = 1.3981999507e-3
	expP2  = 8.3334519073e-3
	expP3  = 4.1665795894e-2
	expP4  = 1.6666665459e-1
	expP5  = 5.0000001201e-1
	toEven = 12582912 // 1.5 * 2^23: added and subtracted, it rounds to a whole number
)

// Exp returns e^x, 0 for results below 1.18e-38. Error: 1 unit.
func Exp(x float32) float32 {
	switch {
	case x != x:
		return x
	case x > expMost:
		return float32(math.Inf(1))
	case x < expLeast:
		return 0
	}
	t := MulAdd(x, log2e, toEven)
	n := t - toEven
	r := MulAdd(n, -ln2Hi, x)
	r = MulAdd(n, -ln2Lo, r)
	p := MulAdd(expP0, r, expP1)
	p = MulAdd(p, r, expP2)
	p = MulAdd(p, r, expP3)
	p = MulAdd(p, r, expP4)
	p = MulAdd(p, r, expP5)
	p = MulAdd(p, r*r, r) + 1
	return math.Float32frombits(math.Float32bits(p) + math.Float32bits(t)<<23)
}

// Constants of Tanh for arguments below tanhSmall. Source: Cephes.
const (
	tanhSmall = 0.625
	tanhP0    = -5.70498872745e-3
	tanhP1    = 2.06390887954e-2
	tanhP2    = -5.37397155531e-2
	tanhP3    = 1.33314422036e-1
	tanhP4    = -3.33332819422e-1
)

const signBit = 1 << 31

// withSign returns the number a >= 0 with the sign of x.
func withSign(a, x float32) float32 {
	return math.Float32frombits(math.Float32bits(a) | math.Float32bits(x)&signBit)
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ signBit) }

// Tanh returns the hyperbolic tangent of x. Error: 2 units.
func Tanh(x float32) float32 {
	a := abs(x)
	s := a * a
	p := MulAdd(tanhP0, s, tanhP1)
	p = MulAdd(p, s, tanhP2)
	p = MulAdd(p, s, tanhP3)
	p = MulAdd(p, s, tanhP4)
	p = MulAdd(p*s, a, a)
	if a >= tanhSmall {
		p = 1 - 2/(Exp(a+a)+1)
	}
	return withSign(p, x)
}

// Constants of Erf: two polynomials. Source: N. Juffa's fit of the error function.
const (
	erfSmall = 0.927734375
	erfP0    = -5.96761703e-4
	erfP1    = 4.99119423e-3
	erfP2    = -2.67681349e-2
	erfP3    = 1.12819925e-1
	erfP4    = -3.76125336e-1
	erfP5    = 1.28379166e-1
	erfQ0    = -1.72853470e-5
	erfQ1    = 3.83197126e-4
	erfQ2    = -3.88396438e-3
	erfQ3    = 2.42546219e-2
	erfQ4    = -1.06777877e-1
	erfQ5    = -6.34846687e-1
	erfQ6    = -1.28717512e-1
	erfMost  = 4 // the error function of it and more is 1
)

// Erf returns the error function of x. Error: 2 units.
func Erf(x float32) float32 {
	a := min(abs(x), erfMost)
	s := a * a
	p := MulAdd(erfP0, s, erfP1)
	p = MulAdd(p, s, erfP2)
	p = MulAdd(p, s, erfP3)
	p = MulAdd(p, s, erfP4)
	p = MulAdd(p, s, erfP5)
	p = MulAdd(p, a, a)
	if a > erfSmall {
		q := MulAdd(erfQ0, a, erfQ1)
		u := MulAdd(erfQ2, a, erfQ3)
		q = MulAdd(q, s, u)
		q = MulAdd(q, a, erfQ4)
		q = MulAdd(q, a, erfQ5)
		q = MulAdd(q, a, erfQ6)
		q = MulAdd(q, a, -a)
		p = 1 - Exp(q)
	}
	return withSign(p, x)
}

// Sigmoid returns 1/(1 + e^-x).
func Sigmoid(x float32) float32 { return 1 / (1 + Exp(-x)) }

// SiLU returns x/(1 + e^-x).
func SiLU(x float32) float32 { return x / (1 + Exp(-x)) }

// Constants of GELU: the root of 2/π, that of 1/2, and the factor of x³.
const (
	root2ByPi = 0.79788456080286535587989211986876
	rootHalf  = 0.70710678118654752440084436210485
	geluCube  = 0.044715
	geluQuick = -1.702
)

// GELU returns x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
func GELU(x float32) float32 {
	in := float32(root2ByPi*x) * MulAdd(float32(geluCube*x), x, 1)
	return float32(0.5*x) * (1 + Tanh(in))
}

// GELUErf returns x/2 · (1 + erf(x/√2)).
func GELUErf(x float32) float32 { return float32(0.5*x) * (1 + Erf(rootHalf*x)) }

// GELUQuick returns x / (1 + e^(-1.702 x)).
func GELUQuick(x float32) float32 { return x * (1 / (1 + Exp(geluQuick*x))) }

// ReLU returns x, or 0 if it is negative.
func ReLU(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

// ReLUSquared returns the square of ReLU.
func ReLUSquared(x float32) float32 { r := ReLU(x); return r * r }
