package vecmath

import "math"

// TriesSize is the largest number of places that Tries takes.
const TriesSize = 32

// Tries rounds numbers of some rows as Rounding does, to measure a scale and minimum of each row.
type Tries struct {
	Levels           *Levels
	Scale, Min, Loss [RoundingSize]float32
	// Near is as in Rounding, Cost has the bits of a factor for each place.
	Near [TriesSize][TriesSize]uint32
	Cost [TriesSize]uint32
	// Weight and Add come in.
	Weight, Add [TriesSize][RoundingSize]float32

	add [TriesSize][RoundingSize]float32
}

// Measure sets Loss to Σ Cost_p (Target_p - Value_p)² over the first n places, each product and each sum rounded, from
// the last place on.
func (x *Tries) Measure(n int) {
	for r := measureTries(x, n); r < RoundingSize; r++ {
		for p := range n {
			x.add[p][r] = x.Add[p][r]
		}
		loss := float32(0)
		for p := n - 1; p >= 0; p-- {
			t := x.Weight[p][r] + x.add[p][r]
			v := float32(x.Scale[r]*x.Levels.level((t+x.Min[r])/x.Scale[r])) - x.Min[r]
			off := t - v
			loss += float32(math.Float32frombits(x.Cost[p]) * float32(off*off))
			e := x.Weight[p][r] - v
			for i, near := range x.Near[p][:p] {
				x.add[i][r] = MulAdd(math.Float32frombits(near), e, x.add[i][r])
			}
		}
		x.Loss[r] = loss
	}
}
