package scalar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/quants/internal/pack"
)

// A search for cuts from a lower bound gives the fit of the search without, or
// reports a doubt. Both happen.
func TestCutBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	same, doubtful := 0, 0
	for range 300 {
		var c CutsIQ1_S
		var x [pack.QK]float32
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		slices.Sort(x[:])
		for i, v := range x {
			w := r.Float32()
			c.Sx[i+1], c.Sw[i+1] = c.Sx[i]+float32(w*v), c.Sw[i]+w
		}
		const all = 1<<(pack.QK+1) - 1
		c.Tables(all)
		search := func(f CutFit) CutFit {
			for i1 := range pack.QK + 1 {
				c.Row(&f, i1, all)
			}
			return f
		}
		want := search(NoCuts)
		for e := 4; e < 24; e++ {
			best := want.Best * float32(1-math.Ldexp(1, -e))
			f := search(FitFrom(best))
			switch {
			case f.Bounded || f.Doubtful:
				doubtful++
			case f.Cut1 != want.Cut1 || f.Cut2 != want.Cut2 || f.kind != want.kind || f.scale != want.scale:
				t.Errorf("bound 1 - 2^-%d: got %+v, want %+v", e, f, want)
			default:
				same++
			}
		}
	}
	t.Logf("%d searches with the same fit, %d in doubt", same, doubtful)
	if same == 0 || doubtful == 0 {
		t.Error("one kind was not tested")
	}
}
