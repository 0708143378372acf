package eval

import (
	"math"
	"testing"
)

// TestActivationDerivatives compares derivatives with differences.
func TestActivationDerivatives(t *testing.T) {
	gate, up := []float32{-3, -1, -0.25, 0.5, 2, 5}, []float32{0.5, -2, 3, -0.75, 1, 0.125}
	n := len(gate)
	for name, u := range map[string]ffnActivation{"SiTU": situ{4, 25}, "SiTU of the gate": situ{4, 0},
		"SwiGLU-OAI": swigluOAI{1.702, 7}, "limited": limitedSwiGLU{6, false}, "limited late": limitedSwiGLU{4, true}} {
		dgate, dup := make([]float32, n), make([]float32, n)
		u.derivatives(dgate, dup, gate, up)
		for i := range n {
			const step = 1.0 / 64
			at := func(dg, du float32) float64 {
				y := make([]float32, 1)
				u.apply(y, []float32{gate[i] + dg}, []float32{up[i] + du})
				return float64(y[0])
			}
			for which, d := range map[string][2]float64{
				"gate": {float64(dgate[i]), (at(step, 0) - at(-step, 0)) / (2 * step)},
				"up":   {float64(dup[i]), (at(0, step) - at(0, -step)) / (2 * step)},
			} {
				if math.Abs(d[0]-d[1]) > 1e-3*max(1, math.Abs(d[1])) {
					t.Errorf("%s, gate %v, up %v: derivative by %s is %v, want %v", name, gate[i], up[i], which, d[0], d[1])
				}
			}
		}
	}
}

// TestSiTU compares with the formula.
func TestSiTU(t *testing.T) {
	y := make([]float32, 2)
	situ{4, 25}.apply(y, []float32{2, -3}, []float32{30, 1})
	for i, x := range [][2]float64{{2, 30}, {-3, 1}} {
		want := 4 * math.Tanh(x[0]/4) / (1 + math.Exp(-x[0])) * 25 * math.Tanh(x[1]/25)
		if math.Abs(float64(y[i])-want) > 1e-5*math.Abs(want) {
			t.Errorf("%v: %v, want %v", x, y[i], want)
		}
	}
}
