package vecmath

import "math"

// MulAdd returns a*b + c, rounded once: the result of the fused instructions of amd64 and arm64, without them.
func MulAdd(a, b, c float32) float32 {
	if s := float64(a)*float64(b) + float64(c); Rounds(s) {
		return float32(s)
	}
	return once(a, b, c)
}

// Rounds reports whether s, which is a*b + c in float64, rounds to the result of MulAdd. The product of two float32
// numbers is exact in float64, and rounding the sum twice is wrong only if the first result is half way between two
// float32 numbers. Those are rare, and so are subnormal results, which have fewer bits. Unlike MulAdd this is inlined,
// which makes a loop three times as fast.
func Rounds(s float64) bool {
	const normal = (1023 - 126) << 52 // the smallest normal number
	bits := math.Float64bits(s)
	return bits<<35 != 1<<63 && bits<<1 >= normal<<1
}

// once rounds the sum to odd first: float64 has more than two bits beyond those of any float32 result, and a last bit
// that is set if the sum is inexact keeps the second rounding right.
func once(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	// the rounding error of s (Knuth's two-sum)
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
