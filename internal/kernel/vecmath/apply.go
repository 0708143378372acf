package vecmath

import (
	"math"
)

// A Function is a function of float32 for whole slices.
type Function struct {
	name string
	one  func(float32) float32
	all  func(dst, src []float32) int // returns the number of elements done; nil for none
	// slope sets dst to derivatives; nil for none
	slope func(dst, src []float32)
}

// The functions of this package for slices, with the same bits.
var (
	ExpOf         = Function{"Exp", Exp, expVectors, expSlope}
	TanhOf        = Function{"Tanh", Tanh, tanhVectors, tanhSlope}
	ErfOf         = Function{"Erf", Erf, erfVectors, erfSlope}
	SigmoidOf     = Function{"Sigmoid", Sigmoid, sigmoidVectors, sigmoidSlope}
	SiLUOf        = Function{"SiLU", SiLU, siluVectors, siluSlope}
	GELUOf        = Function{"GELU", GELU, geluVectors, geluSlope}
	GELUErfOf     = Function{"GELUErf", GELUErf, geluErfVectors, geluErfSlope}
	GELUQuickOf   = Function{"GELUQuick", GELUQuick, geluQuickVectors, geluQuickSlope}
	ReLUOf        = Function{"ReLU", ReLU, reluVectors, reluSlope}
	ReLUSquaredOf = Function{"relu_squared", ReLUSquared, nil, reluSquaredSlope}
)

// Is reports whether both are the same function.
func (f Function) Is(g Function) bool { return f.name == g.name }

// Known reports whether f is a function of this package, not the zero value.
func (f Function) Known() bool { return f.one != nil }

// Apply sets dst to the function of each element of src. They have the same length and
// may be the same slice.
func (f Function) Apply(dst, src []float32) {
	n := 0
	if f.all != nil {
		n = f.all(dst, src)
	}
	for i := n; i < len(src); i++ {
		dst[i] = f.one(src[i])
	}
}

// constant is a number for each lane of a vector of any width.
type constant [16]float32

func each(v float32) (c constant) {
	for i := range c {
		c[i] = v
	}
	return c
}

// Add adds src to dst, element by element.
func Add(dst, src []float32) {
	for i := addVectors(dst, src); i < len(src); i++ {
		dst[i] += src[i]
	}
}

// Mul multiplies dst by src, element by element.
func Mul(dst, src []float32) {
	for i := mulVectors(dst, src); i < len(src); i++ {
		dst[i] *= src[i]
	}
}

// Scale sets dst to f times src. Both may be the same slice.
func Scale(dst, src []float32, f float32) {
	for i := scaleVectors(dst, src, math.Float32bits(f)); i < len(src); i++ {
		dst[i] = src[i] * f
	}
}

// AddScaled adds f times src to dst, rounded once.
func AddScaled(dst, src []float32, f float32) {
	for i := addScaledVectors(dst, src, math.Float32bits(f)); i < len(src); i++ {
		dst[i] = MulAdd(src[i], f, dst[i])
	}
}

// Combine adds rows of m, ld apart, each times a factor, to dst: as AddScaled does one after
// the other. Factors are the bits of float32 numbers.
func Combine(dst, m []float32, ld int, factors []uint32) {
	for i := combineVectors(dst, m, ld, factors); i < len(dst); i++ {
		for r, f := range factors {
			dst[i] = MulAdd(m[r*ld+i], math.Float32frombits(f), dst[i])
		}
	}
}

// CombineAt is Combine for the rows that at lists.
func CombineAt(dst, m []float32, ld int, at []int32, factors []uint32) {
	for i := combineAtVectors(dst, m, ld, at, factors); i < len(dst); i++ {
		for k, f := range factors {
			dst[i] = MulAdd(m[int(at[k])*ld+i], math.Float32frombits(f), dst[i])
		}
	}
}

// AddSquares adds the squares of src to dst, element by element: each is rounded, and so is
// the sum.
func AddSquares(dst, src []float32) {
	for i := addSquaresVectors(dst, src); i < len(src); i++ {
		dst[i] += float32(src[i] * src[i])
	}
}

// Finite reports whether no value of x is infinite or not a number.
func Finite(x []float32) bool {
	const exponent = 0x7F800000
	var found uint32 // 1 in the sign's place
	for ; len(x) >= 8; x = x[8:] {
		v := (*[8]float32)(x)
		for _, f := range v {
			found |= math.Float32bits(f)&exponent + 1<<23
		}
	}
	for _, f := range x {
		found |= math.Float32bits(f)&exponent + 1<<23
	}
	return found>>31 == 0
}

// Max returns the largest of x, which is not empty, and whether all are numbers.
func Max(x []float32) (most float32, ok bool) {
	most = x[0]
	bad := false
	for _, v := range x {
		if v > most {
			most = v
		}
		bad = bad || v != v
	}
	return most, !bad
}
