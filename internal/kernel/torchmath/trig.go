package torchmath

import "math"

// Sin replaces each element of x by its sine, as PyTorch does on one thread for a
// contiguous tensor. Elements are below 39000 in size.
func Sin(x []float32) { trig(x, sine) }

// Cos replaces each element of x by its cosine, likewise.
func Cos(x []float32) { trig(x, cosine) }

// trigLanes is the length of the vectors that SLEEF's functions are called with, on
// processors with AVX-512, too.
const trigLanes = 8

// The sums of these are pi. The short one is for small angles, the long one for those
// with so many half turns that the product with a part of the short one is not exact.
var (
	piShort = [4]float32{3.1414794921875, 0.00011315941810607910156, 1.9841872589410058936e-09}
	piLong  = [4]float32{3.140625, 0.0009670257568359375, 6.2771141529083251953e-07, 1.2154201256553420762e-10}
)

const (
	piReciprocal = float32(1 / math.Pi)
	angleSmall   = 125
	angleMax     = 39000
)

// trig carries out f with the parts of pi that SLEEF takes for the vector that an
// element is in: the short ones if all of its elements are small. The last vector of a
// tensor is filled up with zeros.
func trig(x []float32, f func(v float32, pi *[4]float32) float32) {
	for len(x) > 0 {
		n := min(trigLanes, len(x))
		pi := &piShort
		for _, v := range x[:n] {
			size := math.Abs(float64(v))
			if !(size < angleMax) {
				panic("torchmath: angle out of range")
			}
			if !(size < angleSmall) {
				pi = &piLong
			}
		}
		for i, v := range x[:n] {
			x[i] = f(v, pi)
		}
		x = x[n:]
	}
}

// sine is SLEEF's sinf, whose error is below 3.5 units: the angle less a number of half
// turns, a polynomial, and the sign.
func sine(x float32, pi *[4]float32) float32 {
	if x == 0 {
		return x
	}
	turns := float32(math.RoundToEven(float64(float32(x * piReciprocal))))
	d := x
	for _, part := range pi {
		d = fma(turns, -part, d)
	}
	return nearZero(d, int(turns)&1 != 0)
}

// cosine is SLEEF's cosf: the sine of an angle that is off by a quarter turn.
func cosine(x float32, pi *[4]float32) float32 {
	quarters := 2*float32(math.RoundToEven(float64(float32(x*piReciprocal)-0.5))) + 1
	d := x
	for _, part := range pi {
		d = fma(quarters, -part/2, d)
	}
	return nearZero(d, int(quarters)&2 == 0)
}

// nearZero returns the sine of d, which is within a quarter turn, or of -d.
func nearZero(d float32, negative bool) float32 {
	s := float32(d * d)
	if negative {
		d = -d
	}
	u := float32(2.6083159809786593541503e-06)
	for _, c := range [...]float32{-0.0001981069071916863322258, 0.00833307858556509017944336,
		-0.166666597127914428710938} {
		u = fma(u, s, c)
	}
	return float32(s*float32(u*d)) + d
}
