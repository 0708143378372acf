package vecmath

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRounding compares Round with rows that are rounded one by one, each element to the level with the nearest value.
func TestRounding(t *testing.T) {
	for _, levels := range [][]int8{{-8, -7, -6, -5, -4}, {0, 1, 2, 3}, {-1, 1}, {-127, -104, -10, 1, 13, 113}} {
		r := rand.New(rand.NewPCG(1, uint64(len(levels))))
		var x Rounding
		x.Levels = NewLevels(levels)
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
				if target != x.Weight[p][row]+add[p][row] || value != float32(scale*level)-min ||
					!slices.Contains(levels, int8(level)) {
					t.Fatalf("%v: row %d, place %d: weight %v and %v: %v, level %v of %v less %v, %v", levels, row, p,
						x.Weight[p][row], add[p][row], target, level, scale, min, value)
				}
				for _, other := range levels {
					off := math.Abs(float64(target) - float64(float32(scale*float32(other))-min))
					if off < math.Abs(float64(target)-float64(value))-1e-6 {
						t.Fatalf("%v: row %d, place %d: level %v for %v, %v is nearer", levels, row, p, level,
							target, other)
					}
				}
				for i := range p {
					add[i][row] = MulAdd(math.Float32frombits(x.Near[p][i]), x.Weight[p][row]-value, add[i][row])
				}
			}
		}
		if add != x.Add {
			t.Errorf("%v: Add is %v, want %v", levels, x.Add, add)
		}
	}
}

// TestCandidates compares the errors of several candidates with those of each candidate alone.
func TestCandidates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, levels := range [][]int8{{0, 1, 2, 3}, {-127, -104, -10, 1, 13, 113}} {
		c := Candidates{Levels: NewLevels(levels)}
		x, w := make([]float32, 33), make([]float32, 33)
		for i := range x {
			x[i], w[i] = float32(r.NormFloat64()), r.Float32()
		}
		for k := range c.Scale {
			c.Scale[k], c.Min[k] = float32(k)/32, float32(k%5)/8
		}
		const n = 25
		bits := func(list []float32) (all []uint32) {
			for _, v := range list {
				all = append(all, math.Float32bits(v))
			}
			return all
		}
		c.Measure(n, bits(x), bits(w))
		for k := range n {
			var want float32
			for i, v := range x {
				least := float32(math.Inf(1))
				for _, l := range levels {
					e := v - (float32(c.Scale[k]*float32(l)) - c.Min[k])
					least = min(least, float32(e*e))
				}
				want += float32(w[i] * least)
			}
			if got := c.Errors[k]; math.Abs(float64(got-want)) > 1e-5*float64(want) &&
				!(got > c.Errors[0] && want > c.Errors[0]) {
				t.Errorf("%v: candidate %d: %v, want %v", levels, k, got, want)
			}
		}
	}
}
