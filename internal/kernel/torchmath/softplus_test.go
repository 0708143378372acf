package torchmath

import (
	_ "embed"
	"math"
	"testing"
)

//go:embed testdata/softplus.tsv
var softplusGolden string

// TestSoftplusGolden compares Softplus with PyTorch's own results: see compareGolden.
func TestSoftplusGolden(t *testing.T) {
	cases := compareGolden(t, softplusGolden, Softplus)
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

func TestSoftplusSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{-inf, inf, float32(math.NaN())}
	Softplus(x)
	if x[0] != 0 || x[1] != inf || x[2] == x[2] {
		t.Errorf("%v, want 0 +Inf NaN", x)
	}
}
