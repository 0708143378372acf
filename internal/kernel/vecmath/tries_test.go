package vecmath

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTries compares losses with those of rows that are rounded one by one, for odd and even numbers of places,
// and checks that Weight and Add stay.
func TestTries(t *testing.T) {
	for _, levels := range [][]int8{{0, 1, 2, 3}, {-127, -104, -10, 1, 13, 113}} {
		for _, n := range []int{1, 15, 16, 32} {
			r := rand.New(rand.NewPCG(uint64(n), uint64(len(levels))))
			var x Tries
			x.Levels = NewLevels(levels)
			for k := range TriesTogether {
				for i := range RoundingSize {
					x.Scale[k][i], x.Min[k][i] = float32(r.NormFloat64())/10, float32(i%3)/4
				}
			}
			for i := range n {
				x.Cost[i] = math.Float32bits(r.Float32())
				for k := range n {
					x.Near[i][k] = math.Float32bits(float32(r.NormFloat64()) / 4)
				}
				for k := range RoundingSize {
					x.Weight[i][k], x.Add[i][k] = float32(r.NormFloat64()), float32(r.NormFloat64())/8
				}
			}
			x.Scale[0][5], x.Scale[3][6] = 1e-30, 0
			weight, add := x.Weight, x.Add
			x.Measure(n)
			if x.Weight != weight || x.Add != add {
				t.Fatalf("%v, %d places: Weight or Add changed", levels, n)
			}
			for i := range TriesTogether * RoundingSize {
				try, row := i/RoundingSize, i%RoundingSize
				scale, min := x.Scale[try][row], x.Min[try][row]
				want, add := float32(0), add
				for p := n - 1; p >= 0; p-- {
					target := weight[p][row] + add[p][row]
					value := float32(scale*x.Levels.level(float32((target+min)*(1/scale)))) - min
					off := target - value
					want += float32(math.Float32frombits(x.Cost[p]) * float32(off*off))
					for i := range p {
						add[i][row] = MulAdd(math.Float32frombits(x.Near[p][i]), weight[p][row]-value, add[i][row])
					}
				}
				if x.Loss[try][row] != want {
					t.Errorf("%v, %d places, try %d of row %d: loss %v, want %v", levels, n, try, row, x.Loss[try][row],
						want)
				}
			}
		}
	}
}
