// Package arith has the float32 arithmetic that the codecs share: roundings, sums in
// index order, and weights. Each operation rounds on its own; see package quants.
package arith

import "math"

// RoundEven rounds to the nearest integer, half to even, for |v| < 2^22: adding
// 1.5*2^23 leaves the integer in the low 23 bits of the sum. Outside that range
// the same bit procedure applies, as in the reference: infinity gives
// -4194304, NaN gives 0.
func RoundEven(v float32) int32 {
	const magic float32 = 3 << 22
	return int32(math.Float32bits(float32(v)+magic)&0x7FFFFF) - 1<<22
}

// RoundAway rounds to the nearest integer, half away from zero; NaN and values that
// no int32 holds give -2^31.
func RoundAway(v float32) int32 {
	t := Truncate(v)
	if t == math.MinInt32 {
		return t
	}
	switch f := float32(v) - float32(t); { // exact
	case f >= 0.5:
		t++
	case f <= -0.5:
		t--
	}
	return t
}

// Truncate truncates towards zero; NaN and values that no int32 holds give -2^31.
// Written out because Go leaves that case to the platform.
func Truncate(v float32) int32 {
	if v >= -0x1p31 && v < 0x1p31 {
		return int32(v)
	}
	return math.MinInt32
}

// Abs returns |v|.
func Abs(v float32) float32 {
	return math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
}

// Sqrt returns the correctly rounded square root: a float64 root rounded to
// float32 is the float32 root.
func Sqrt(v float32) float32 { return float32(math.Sqrt(float64(v))) }

// Largest returns the first element of largest magnitude, 0 if all are zero.
func Largest(x []float32) float32 {
	var m, a float32
	for _, v := range x {
		if av := Abs(v); av > a {
			a, m = av, v
		}
	}
	return m
}

// Inverse returns 1/d, 0 for 0.
func Inverse(d float32) float32 {
	if d == 0 {
		return 0
	}
	return 1 / d
}

// Sum returns the sum of x in index order.
func Sum(x []float32) float32 {
	var s float32
	for _, v := range x {
		s += v
	}
	return s
}

// SumSquares returns the sum of squares of x in index order.
func SumSquares(x []float32) float32 {
	var s float32
	for _, v := range x {
		s += float32(v * v)
	}
	return s
}

// ImportanceWeights sets w to importance*sqrt(s + x*x), the weights of the
// searches with importance; s is the mean square around x, or twice that. All
// three have one length.
func ImportanceWeights(w, x, importance []float32, s float32) {
	w, importance = w[:len(x)], importance[:len(x)]
	for i, v := range x {
		w[i] = importance[i] * Sqrt(s+float32(v*v))
	}
}

// SquareWeights sets w to x*x, the weights of most searches without importance.
// Both have one length.
func SquareWeights(w, x []float32) {
	w = w[:len(x)]
	for i, v := range x {
		w[i] = float32(v * v)
	}
}
