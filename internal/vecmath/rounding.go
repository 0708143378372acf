package vecmath

import (
	"math"

	"ggforge/internal/fused"
)

// RoundingSize is how many rows Rounding takes, and how many places of each.
const RoundingSize = 16

// bySize has a number for each place and row, next to each other those of all rows.
type bySize [RoundingSize][RoundingSize]float32

// Rounding rounds numbers of some rows to levels, place after place from the last to the
// first: Weight plus Add becomes Value, and by how much that is off the weight, times
// Near, is added to Add of the places before.
type Rounding struct {
	// Scale and Min are of each row: a value is Scale times a level, rounded, less Min.
	Scale, Min [RoundingSize]float32
	// Near has, for a place p and another i < p, the bits of what Add of i gets of p's error.
	Near [RoundingSize][RoundingSize]uint32
	// Weight and Add come in; Target is their sum.
	Weight, Add, Target, Value, Level bySize

	even        bool // levels are 1 apart
	first, last constant
	values      []constant
	middles     []constant // between each value and the next
}

// SetLevels sets what levels can be, rising.
func (x *Rounding) SetLevels(levels []int8) {
	n := len(levels) - 1
	x.even = int(levels[n])-int(levels[0]) == n
	x.first, x.last = each(float32(levels[0])), each(float32(n))
	x.values, x.middles = nil, nil
	for i, v := range levels {
		x.values = append(x.values, each(float32(v)))
		if i < n {
			x.middles = append(x.middles, each(float32(int(v)+int(levels[i+1]))/2))
		}
	}
}

// Round rounds. Where Scale is 0 the level is one of those that can be, and the value is that
// of all levels.
func (x *Rounding) Round() {
	for r := roundVectors(x); r < RoundingSize; r++ {
		for p := RoundingSize - 1; p >= 0; p-- {
			t := x.Weight[p][r] + x.Add[p][r]
			level := x.level((t + x.Min[r]) / x.Scale[r])
			v := float32(x.Scale[r]*level) - x.Min[r]
			x.Target[p][r], x.Level[p][r], x.Value[p][r] = t, level, v
			e := x.Weight[p][r] - v
			for i, near := range x.Near[p][:p] {
				x.Add[i][r] = fused.MulAdd(math.Float32frombits(near), e, x.Add[i][r])
			}
		}
	}
}

// level returns the level next to a number.
func (x *Rounding) level(v float32) float32 {
	if x.even {
		first, last := x.first[0], x.last[0]
		if v = v - first + 0.5; !(v < last) {
			v = last
		}
		if v < 0 {
			v = 0
		}
		return first + float32(int32(v))
	}
	level := x.values[0][0]
	for i := range x.middles {
		if v > x.middles[i][0] {
			level = x.values[i+1][0]
		}
	}
	return level
}
