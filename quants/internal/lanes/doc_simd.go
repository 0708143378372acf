//go:build goexperiment.simd && go1.27

// Package lanes has the encoders that search, with vectors of package simd and any width: a lane is a sub-block or a
// candidate, and repeats the scalar code in its order. QuantizeX is that of package scalar; for Q4_0, Q4_1, Q5_0 and
// Q5_1 importance must be given.
//
// No exported signature shows a vector, and no variable holds one: functions with
// vectors of package simd exist once per width.
package lanes
