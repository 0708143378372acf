package vecmath

import "math"

// TriesSize is the largest number of places that Tries takes.
const TriesSize = 32

// TriesTogether is the number of scales and minima of a row that Tries measures at once: the places of a try wait for
// each other, so one alone leaves most of the processor idle.
const TriesTogether = 5

// Tries rounds numbers of some rows as Rounding does, but by the inverse of the scale, to measure scales and minima of
// each row.
type Tries struct {
	// Vectors come first, so that those of 64 bytes are in one cache line each if the struct begins with one.
	Scale, Min, Loss [TriesTogether][RoundingSize]float32
	// Near is as in Rounding, Cost has the bits of a factor for each place.
	Near [TriesSize][TriesSize]uint32
	Cost [TriesSize]uint32
	// Weight and Add come in.
	Weight, Add [TriesSize][RoundingSize]float32

	// off has the errors of places; of the place before the present one, measureTries keeps the sum there.
	off [TriesSize][TriesTogether][RoundingSize]float32

	Levels *Levels
	_      [56]byte
}

// Measure sets Loss to Σ Cost_p (Target_p - Value_p)² over the first n places, each product and each sum rounded, from
// the last place on.
func (x *Tries) Measure(n int) {
	for r := measureTries(x, n); r < RoundingSize; r++ {
		for k := range TriesTogether {
			scale, min := x.Scale[k][r], x.Min[k][r]
			loss, inverse := float32(0), 1/scale
			for p := n - 1; p >= 0; p-- {
				t := x.Add[p][r]
				for q := n - 1; q > p; q-- {
					t = MulAdd(math.Float32frombits(x.Near[q][p]), x.off[q][k][r], t)
				}
				t = x.Weight[p][r] + t
				v := float32(scale*x.Levels.level(float32((t+min)*inverse))) - min
				off := t - v
				loss += float32(math.Float32frombits(x.Cost[p]) * float32(off*off))
				x.off[p][k][r] = x.Weight[p][r] - v
			}
			x.Loss[k][r] = loss
		}
	}
}
