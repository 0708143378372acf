//go:build !goexperiment.simd || !go1.27 || !amd64

package vecmath

// These builds have no vectors for sums.
func sumVectors(_ *[8]float64, _ []float32) int                   { return 0 }
func sumSquaresVectors(_ *[8]float64, _ []float32, _ float64) int { return 0 }
func sumProductsVectors(_ *[8]float64, _, _ []float32) int        { return 0 }
