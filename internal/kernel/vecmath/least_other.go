//go:build !goexperiment.simd || !go1.27

package vecmath

func least4(_ []float32, _ int, _ *Quadratic, _ *int, _ *float32) int { return 0 }
func least8(_ []float32, _ int, _ *Quadratic, _ *int, _ *float32) int { return 0 }
