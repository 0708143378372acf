//go:build !goexperiment.simd || !go1.27

package vecmath

var softplusVectors func(dst, src []float32) int

func addProductVectors(_, _, _ []float32) int           { return 0 }
func recurVectors(_, _, _ []float32, _ [][3]uint32) int { return 0 }
