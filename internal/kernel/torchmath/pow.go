// Package torchmath computes float32 functions to the bit as PyTorch does on
// x86-64 processors with AVX2 or AVX-512, where its vector code calls SLEEF. A
// converter that writes computed tensors needs that: SLEEF's results are off the
// correctly rounded ones by one unit in about one case of a hundred.
package torchmath

import (
	"math"

	"ggforge/internal/kernel/vecmath"
)

// PowScalar fills dst with base**exponent for each exponent, as PyTorch's
// power of a number and a float32 tensor does: full vectors by SLEEF, the rest
// of the tensor by the C library, whose powf is correctly rounded in all but a
// few of a million cases. base is positive and finite, exponents are finite.
func PowScalar(dst []float32, base float32, exponents []float32) {
	vectors := len(exponents) - len(exponents)%vectorStep
	for i, y := range exponents {
		if i < vectors {
			dst[i] = pow(base, y)
		} else {
			dst[i] = float32(math.Pow(float64(base), float64(y)))
		}
	}
}

// vectorStep is the number of elements that PyTorch's loops take at a time: two AVX2 vectors. Builds for AVX-512 take
// 32, which makes a difference for the last 16 elements of a tensor only.
const vectorStep = 16

// double is a number in two float32 parts: hi is the sum rounded to float32.
type double struct{ hi, lo float32 }

// The operations on doubles follow SLEEF's for processors with fused
// multiply-add, rounding for rounding; see its df.h. Names end in Quick where
// the first operand must be the larger one.

// fma, fms and fnma are the fused forms a*b+c, a*b-c and c-a*b, rounded once.
func fma(a, b, c float32) float32  { return vecmath.MulAdd(a, b, c) }
func fms(a, b, c float32) float32  { return fma(a, b, -c) }
func fnma(a, b, c float32) float32 { return fma(-a, b, c) }

func sum(x, y float32) double {
	s := x + y
	v := s - x
	return double{s, (x - (s - v)) + (y - v)}
}

func (x double) addFloat(y float32) double {
	s := x.hi + y
	v := s - x.hi
	t := (x.hi - (s - v)) + (y - v)
	return double{s, t + x.lo}
}

func (x double) add(y double) double {
	s := x.hi + y.hi
	v := s - x.hi
	t := (x.hi - (s - v)) + (y.hi - v)
	return double{s, t + (x.lo + y.lo)}
}

func (x double) addQuick(y double) double {
	s := x.hi + y.hi
	return double{s, (((x.hi - s) + y.hi) + x.lo) + y.lo}
}

func (x double) normalize() double {
	s := x.hi + x.lo
	return double{s, (x.hi - s) + x.lo}
}

func (x double) mulFloat(y float32) double {
	s := x.hi * y
	return double{s, fma(x.lo, y, fms(x.hi, y, s))}
}

func (x double) mul(y double) double {
	s := x.hi * y.hi
	return double{s, fma(x.hi, y.lo, fma(x.lo, y.hi, fms(x.hi, y.hi, s)))}
}

func (x double) square() double {
	s := x.hi * x.hi
	return double{s, fma(x.hi+x.hi, x.lo, fms(x.hi, x.hi, s))}
}

func (x double) div(y double) double {
	t := 1 / y.hi
	s := x.hi * t
	u := fms(t, x.hi, s)
	v := fnma(y.lo, t, fnma(y.hi, t, 1))
	return double{s, fma(s, v, fma(x.lo, t, u))}
}

// pow returns x**y for a positive, normal x.
func pow(x, y float32) float32 { return exp(log(x).mulFloat(y)) }

// log returns the natural logarithm of d, which is positive and normal, by the
// series of the inverse hyperbolic tangent on a mantissa in [0.75, 1.5).
func log(d float32) double {
	_, e := math.Frexp(float64(d * float32(1/0.75)))
	e--
	m := float32(math.Ldexp(float64(d), -e))
	x := sum(-1, m).div(sum(1, m))
	x2 := x.square()
	t := float32(0.240320354700088500976562)
	t = fma(t, x2.hi, 0.285112679004669189453125)
	t = fma(t, x2.hi, 0.400007992982864379882812)
	c := double{0.66666662693023681640625, 3.69183861259614332084311e-09}
	s := double{0.69314718246459960938, -1.904654323148236017e-09}.mulFloat(float32(e))
	s = s.addQuick(double{x.hi * 2, x.lo * 2})
	return s.addQuick(x2.mul(x).mul(x2.mulFloat(t).add(c)))
}

// The natural logarithm of 2 in two parts, and its reciprocal.
const (
	ln2Hi     float32 = 0.693145751953125
	ln2Lo     float32 = 1.428606765330187045e-06
	ln2Recipr float32 = 1.442695040888963407359924681001892137426645954152985934135449406931
)

// exp returns e**d.
func exp(d double) float32 {
	q := float32(math.RoundToEven(float64((d.hi + d.lo) * ln2Recipr)))
	s := d.addFloat(q * -ln2Hi)
	s = s.addFloat(q * -ln2Lo)
	s = s.normalize()
	u := float32(0.00136324646882712841033936)
	u = fma(u, s.hi, 0.00836596917361021041870117)
	u = fma(u, s.hi, 0.0416710823774337768554688)
	u = fma(u, s.hi, 0.166665524244308471679688)
	u = fma(u, s.hi, 0.499999850988388061523438)
	t := s.addQuick(s.square().mulFloat(u))
	t = double{1, 0}.addQuick(t)
	if d.hi < -104 {
		return 0
	}
	return float32(math.Ldexp(float64(t.hi+t.lo), int(q)))
}
