//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"testing"

	"ggforge/internal/lane"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/scalar"
	"ggforge/quants/internal/widths"
)

// Rare paths of the tiles are reached by what the parity tests feed them.
func TestTileRarePaths(t *testing.T) {
	s, width := new(kScratch), lane.Width()
	x := make([]float32, pack.QK_K)
	for i := range x {
		x[i] = float32(i%7-3) * math.SmallestNonzeroFloat32
	}
	q4_KKernel.fit(s, x, nil, width)
	if !s.anyOneByOne {
		t.Error("a step that overflows was not searched one by one")
	}
	for i := range x {
		x[i] = float32(i%7-3) * 0.01
	}
	q4_KKernel.fit(s, x, nil, width)
	if s.anyOneByOne {
		t.Error("ordinary values were searched one by one")
	}
}

// nearIQ4Tile needs middles so far apart that no product meets two of them between
// the smallest and the largest scale of the candidates.
func TestTileMiddlesIQ4(t *testing.T) {
	n := &iq4Const.numerators
	ratio := n[0][0] / n[len(n)-1][0]
	for i := range 14 {
		a, b := scalar.MiddlesIQ4[i], scalar.MiddlesIQ4[i+1]
		if a < 0 {
			a, b = -b, -a
		}
		if a > 0 && b/a <= 1.01*ratio {
			t.Errorf("middles %g and %g: ratio %g, want more than %g", scalar.MiddlesIQ4[i], scalar.MiddlesIQ4[i+1], b/a, ratio)
		}
	}
}

// TestWidths runs the tests of tiles at every vector width.
func TestWidths(t *testing.T) { widths.Run(t, "TestTile.*") }

func TestWidth(t *testing.T) { widths.Check(t) }
