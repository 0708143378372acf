package vecmath

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ggforge/internal/fused"
)

// TestRounding compares with rows that are rounded one by one, each place to the level whose
// value is the nearest one.
func TestRounding(t *testing.T) {
	for _, levels := range [][]int8{{-8, -7, -6, -5, -4}, {0, 1, 2, 3}, {-1, 1}, {-127, -104, -10, 1, 13, 113}} {
		r := rand.New(rand.NewPCG(1, uint64(len(levels))))
		var x Rounding
		x.SetLevels(levels)
		for i := range RoundingSize {
			x.Scale[i], x.Min[i] = float32(r.NormFloat64())/10, float32(i%3)/4
			for k := range RoundingSize {
				x.Near[i][k] = math.Float32bits(float32(r.NormFloat64()) / 4)
				x.Weight[i][k], x.Add[i][k] = float32(r.NormFloat64()), float32(r.NormFloat64())/8
			}
		}
		x.Scale[3], x.Scale[5] = 0, 1e-30
		add := x.Add
		x.Round()
		for row := range RoundingSize {
			scale, min := x.Scale[row], x.Min[row]
			for p := RoundingSize - 1; p >= 0; p-- {
				target, level, value := x.Target[p][row], x.Level[p][row], x.Value[p][row]
				if target != x.Weight[p][row]+add[p][row] || value != float32(scale*level)-min || !slices.Contains(levels, int8(level)) {
					t.Fatalf("%v: row %d, place %d: weight %v and %v: %v, level %v of %v less %v, %v", levels, row, p, x.Weight[p][row], add[p][row], target, level, scale, min, value)
				}
				for _, other := range levels {
					off := math.Abs(float64(target) - float64(float32(scale*float32(other))-min))
					if off < math.Abs(float64(target)-float64(value))-1e-6 {
						t.Fatalf("%v: row %d, place %d: level %v for %v, %v is nearer", levels, row, p, level, target, other)
					}
				}
				for i := range p {
					add[i][row] = fused.MulAdd(math.Float32frombits(x.Near[p][i]), x.Weight[p][row]-value, add[i][row])
				}
			}
		}
		if add != x.Add {
			t.Errorf("%v: what places before get: %v, want %v", levels, x.Add, add)
		}
	}
}
