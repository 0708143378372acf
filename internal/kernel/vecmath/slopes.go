package vecmath

// Functions for use in derivatives. The exported ones refer to their derivatives: using them here would be an
// initialization cycle.
var (
	expOnly     = Function{one: Exp, all: expVectors}
	tanhOnly    = Function{one: Tanh, all: tanhVectors}
	erfOnly     = Function{one: Erf, all: erfVectors}
	sigmoidOnly = Function{one: Sigmoid, all: sigmoidVectors}
	reluOnly    = Function{one: ReLU, all: reluVectors}
)

// HasSlope reports whether f has a derivative here.
func (f Function) HasSlope() bool { return f.slope != nil }

// Slope sets dst to the derivative of the function at each element of src; where it has a
// corner, to that of its left side. They have the same length and are not the same slice.
// Functions without a derivative here panic: see HasSlope.
func (f Function) Slope(dst, src []float32) { f.slope(dst, src) }

func expSlope(dst, src []float32) { expOnly.Apply(dst, src) }

// 1 - tanh²
func tanhSlope(dst, src []float32) {
	tanhOnly.Apply(dst, src)
	for i, t := range dst {
		dst[i] = (1 - t) * (1 + t)
	}
}

// 2/√π · e^(-x²)
func erfSlope(dst, src []float32) {
	const twoByRootPi = 1.1283791670955125738961589031215
	for i, x := range src {
		dst[i] = -x * x
	}
	expOnly.Apply(dst, dst)
	Scale(dst, dst, twoByRootPi)
}

// s · (1 - s)
func sigmoidSlope(dst, src []float32) {
	sigmoidOnly.Apply(dst, src)
	for i, s := range dst {
		dst[i] = s * (1 - s)
	}
}

// s + x · s · (1 - s)
func siluSlope(dst, src []float32) {
	sigmoidOnly.Apply(dst, src)
	for i, s := range dst {
		dst[i] = s + float32(float32(s*(1-s))*src[i])
	}
}

// s + c·x · s · (1 - s), of s at c·x
func geluQuickSlope(dst, src []float32) {
	Scale(dst, src, -geluQuick)
	sigmoidOnly.Apply(dst, dst)
	for i, s := range dst {
		dst[i] = s + float32(float32(s*(1-s))*float32(-geluQuick*src[i]))
	}
}

// (1 + t)/2 + x/2 · (1 - t²) · u', where t is tanh(u)
func geluSlope(dst, src []float32) {
	for i, x := range src {
		dst[i] = float32(root2ByPi*x) * (1 + float32(float32(geluCube*x)*x))
	}
	tanhOnly.Apply(dst, dst)
	for i, t := range dst {
		x := src[i]
		inner := root2ByPi * (1 + float32(float32(3*geluCube*x)*x))
		if q := (1 - t) * (1 + t); q != 0 { // x² may be infinite
			dst[i] = float32(0.5*(1+t)) + float32(float32(0.5*x)*float32(q*inner))
		} else {
			dst[i] = 0.5 * (1 + t)
		}
	}
}

// (1 + erf(x/√2))/2 + x · e^(-x²/2)/√(2π)
func geluErfSlope(dst, src []float32) {
	const byRoot2Pi = 0.39894228040143267793994605993438
	var bell [64]float32
	for len(src) > 0 {
		n := min(len(bell), len(src))
		for i, x := range src[:n] {
			bell[i] = float32(-0.5*x) * x
		}
		expOnly.Apply(bell[:n], bell[:n])
		Scale(dst[:n], src[:n], rootHalf)
		erfOnly.Apply(dst[:n], dst[:n])
		for i, x := range src[:n] {
			dst[i] = float32(0.5*(1+dst[i])) + float32(float32(byRoot2Pi*bell[i])*x)
		}
		dst, src = dst[n:], src[n:]
	}
}

func reluSlope(dst, src []float32) {
	for i, x := range src {
		dst[i] = 0
		if x > 0 {
			dst[i] = 1
		}
	}
}

func reluSquaredSlope(dst, src []float32) {
	reluOnly.Apply(dst, src)
	Scale(dst, dst, 2)
}
