package vecmath

import (
	"math"
	"testing"
)

// TestSlopes compares derivatives with finite differences (of fourth order, in float64) of
// the exact functions.
func TestSlopes(t *testing.T) {
	for _, c := range append(functions[:len(functions):len(functions)], struct {
		name     string
		f        Function
		exact    func(float64) float64
		from, to float32
		units    float64
	}{"relu_squared", ReLUSquaredOf, func(x float64) float64 { return max(x, 0) * max(x, 0) }, -3, 3, 0}) {
		if !c.f.HasSlope() {
			t.Errorf("%s: no derivative", c.name)
			continue
		}
		var src []float32
		for x := max(c.from, -12); x <= min(c.to, 12); x += 0.0173 {
			src = append(src, x)
		}
		dst := make([]float32, len(src))
		c.f.Slope(dst, src)
		worst := 0.0
		for i, x := range src {
			const h = 1e-3
			at := func(k float64) float64 { return c.exact(float64(x) + k*h) }
			if math.Abs(float64(x)) <= 2*h {
				continue // the derivative may have a step here
			}
			want := (8*(at(1)-at(-1)) - (at(2) - at(-2))) / (12 * h)
			worst = max(worst, math.Abs(float64(dst[i])-want)/max(1, math.Abs(want)))
		}
		t.Logf("%s: %.2g", c.name, worst)
		if worst > 1e-6 {
			t.Errorf("%s: the derivative is off by %.3g", c.name, worst)
		}
	}
	out := make([]float32, 3)
	ReLUOf.Slope(out, []float32{-1, 0, 2})
	if out[0] != 0 || out[1] != 0 || out[2] != 1 {
		t.Errorf("relu: %v", out)
	}
	for _, f := range []Function{GELUOf, GELUErfOf, GELUQuickOf, SiLUOf, TanhOf, ErfOf, SigmoidOf} {
		f.Slope(out, []float32{-1e30, 1e30, 300})
		for _, v := range out {
			if v != v || math.IsInf(float64(v), 0) {
				t.Errorf("%s: %v", f.name, out)
			}
		}
	}
}

// TestSumProducts checks sums of all lengths around 8 against those in index order.
func TestSumProducts(t *testing.T) {
	for n := range 40 {
		x, y := make([]float32, n), make([]float32, n)
		var want float64
		for i := range x {
			x[i], y[i] = float32(i*7%11)-3.5, float32(i*5%13)/3
			want += float64(x[i]) * float64(y[i])
		}
		if got := SumProducts(x, y); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d: %v, want %v", n, got, want)
		}
	}
}
