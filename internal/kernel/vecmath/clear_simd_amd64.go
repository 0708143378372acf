//go:build goexperiment.simd && go1.27

package vecmath

import "simd/archsimd"

// clearUpper ends a function with vectors. Scalar floats, which the compiler makes legacy
// instructions, wait for whatever was in their registers where the upper parts of these are in
// use: choosing blocks of types with codebooks took more than twice as long without it.
func clearUpper() { archsimd.ClearAVXUpperBits() }
