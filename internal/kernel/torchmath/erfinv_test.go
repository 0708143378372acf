package torchmath

import (
	_ "embed"
	"math"
	"testing"
)

//go:embed testdata/erfinv.tsv
var erfinvGolden string

// TestQuantileGolden compares quantiles with PyTorch's own results: see compareGolden.
func TestQuantileGolden(t *testing.T) {
	cases := compareGolden(t, erfinvGolden, func(x []float32) {
		for i, p := range x {
			x[i] = NormalQuantile(p)
		}
	})
	if cases < 30 {
		t.Errorf("%d cases", cases)
	}
}

func TestQuantileSpecial(t *testing.T) {
	inf := math.Inf(1)
	for p, want := range map[float32]float64{0: -inf, 1: inf, 0.5: 0} {
		if got := float64(NormalQuantile(p)); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
	}
	for _, p := range []float32{-0.1, 1.1, float32(inf), float32(math.NaN())} {
		if got := NormalQuantile(p); got == got {
			t.Errorf("%v: %v, want NaN", p, got)
		}
	}
}
