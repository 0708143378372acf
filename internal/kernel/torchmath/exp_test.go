package torchmath

import (
	_ "embed"
	"math"
	"testing"
)

//go:embed testdata/exp.tsv
var expGolden string

// TestExpGolden compares Exp with PyTorch's own results, for tensors of all lengths around
// those of vectors: see compareGolden.
func TestExpGolden(t *testing.T) {
	cases := compareGolden(t, expGolden, Exp)
	if cases < 300 {
		t.Errorf("%d cases", cases)
	}
}

func TestExpSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := float32(math.NaN())
	x := []float32{0, float32(math.Copysign(0, -1)), inf, -inf, nan}
	Exp(x)
	if x[0] != 1 || x[1] != 1 || x[2] != inf || x[3] != 0 || x[4] == x[4] {
		t.Errorf("exponentials %v, want 1 1 +Inf 0 NaN", x)
	}
}
