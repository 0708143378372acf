//go:build goexperiment.simd && go1.27

package vecmath

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
)

// wideSums: sums of float64 have vectors, for which numbers are widened: package
// simd cannot do that.
var wideSums = cpu.Here().UsesAVX2()

// sumVectors is Sum for as many numbers as it returns, without the tree.
func sumVectors(s *[8]float64, x []float32) (n int) {
	if !wideSums {
		return 0
	}
	var a, b archsimd.Float64x4
	for ; n+8 <= len(x); n += 8 {
		v := (*[8]float32)(x[n:])
		a = a.Add(archsimd.LoadFloat32x4Array((*[4]float32)(v[:4])).ConvertToFloat64())
		b = b.Add(archsimd.LoadFloat32x4Array((*[4]float32)(v[4:])).ConvertToFloat64())
	}
	a.StoreArray((*[4]float64)(s[:4]))
	b.StoreArray((*[4]float64)(s[4:]))
	archsimd.ClearAVXUpperBits()
	return n
}

// sumSquaresVectors is sumVectors for SumSquares.
func sumSquaresVectors(s *[8]float64, x []float32, mean float64) (n int) {
	if !wideSums {
		return 0
	}
	var a, b archsimd.Float64x4
	m := archsimd.BroadcastFloat64x4(mean)
	for ; n+8 <= len(x); n += 8 {
		v := (*[8]float32)(x[n:])
		c := archsimd.LoadFloat32x4Array((*[4]float32)(v[:4])).ConvertToFloat64().Sub(m)
		d := archsimd.LoadFloat32x4Array((*[4]float32)(v[4:])).ConvertToFloat64().Sub(m)
		a, b = a.Add(c.Mul(c)), b.Add(d.Mul(d))
	}
	a.StoreArray((*[4]float64)(s[:4]))
	b.StoreArray((*[4]float64)(s[4:]))
	archsimd.ClearAVXUpperBits()
	return n
}

// sumProductsVectors is sumVectors for SumProducts.
func sumProductsVectors(s *[8]float64, x, y []float32) (n int) {
	if !wideSums {
		return 0
	}
	var a, b archsimd.Float64x4
	for ; n+8 <= len(x); n += 8 {
		v, w := (*[8]float32)(x[n:]), (*[8]float32)(y[n:])
		a = archsimd.LoadFloat32x4Array((*[4]float32)(v[:4])).ConvertToFloat64().MulAdd(
			archsimd.LoadFloat32x4Array((*[4]float32)(w[:4])).ConvertToFloat64(), a)
		b = archsimd.LoadFloat32x4Array((*[4]float32)(v[4:])).ConvertToFloat64().MulAdd(
			archsimd.LoadFloat32x4Array((*[4]float32)(w[4:])).ConvertToFloat64(), b)
	}
	a.StoreArray((*[4]float64)(s[:4]))
	b.StoreArray((*[4]float64)(s[4:]))
	archsimd.ClearAVXUpperBits()
	return n
}
