// Package fused multiplies and adds float32 numbers with one rounding, by the same bits
// on every processor.
package fused

import "math"

// MulAdd returns a*b + c, rounded once. It is what the fused instructions of amd64 and
// arm64 compute, without them.
//
// The product of two float32 numbers is exact in float64. The sum is not, and rounding
// it twice may be wrong, so it is rounded to odd first: float64 has more than two bits
// beyond those of any float32 result, and a last bit that says that something was cut off
// keeps the second rounding right.
func MulAdd(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	// what s lost, by Knuth
	t := s - p
	lost := (p - (s - t)) + (z - t)
	if lost == 0 || lost != lost { // NaN where one of them is infinite or not a number
		return float32(s)
	}
	bits := math.Float64bits(s)
	if bits&1 == 0 {
		if (lost > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
	}
	return float32(math.Float64frombits(bits))
}
