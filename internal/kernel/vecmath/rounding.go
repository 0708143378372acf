package vecmath

import (
	"math"
)

// RoundingSize is the number of rows that Rounding takes, and of places in each.
const RoundingSize = 16

// bySize has a number for each place and row, next to each other those of all rows.
type bySize [RoundingSize][RoundingSize]float32

// Rounding rounds numbers of some rows to levels, place after place from the last to the first: Weight plus Add becomes
// Value, and its error, times Near, is added to Add of the places before.
type Rounding struct {
	// Scale and Min are of each row: a value is Scale times a level, rounded, less Min.
	Scale, Min [RoundingSize]float32
	// Near has, for a place p and another i < p, the bits of the factor of p's error in Add of i.
	Near [RoundingSize][RoundingSize]uint32
	// Weight and Add come in; Target is their sum.
	Weight, Add, Target, Value, Level bySize

	Levels *Levels
	_      [56]byte // as in Tries
}

// Levels are the values that numbers are rounded to.
type Levels struct {
	even            bool // levels are 1 apart
	first, last     constant
	values, middles []constant // of each level; between it and the next
}

// NewLevels returns the levels of a list in rising order.
func NewLevels(list []int8) *Levels {
	n := len(list) - 1
	x := &Levels{even: int(list[n])-int(list[0]) == n, first: each(float32(list[0])), last: each(float32(n))}
	for i, v := range list {
		x.values = append(x.values, each(float32(v)))
		if i < n {
			x.middles = append(x.middles, each(float32(int(v)+int(list[i+1]))/2))
		}
	}
	return x
}

// Round rounds. Where Scale is 0 the level is any of the levels, which all have the same value.
func (x *Rounding) Round() {
	for r := roundVectors(x); r < RoundingSize; r++ {
		for p := RoundingSize - 1; p >= 0; p-- {
			t := x.Weight[p][r] + x.Add[p][r]
			level := x.Levels.level((t + x.Min[r]) / x.Scale[r])
			v := float32(x.Scale[r]*level) - x.Min[r]
			x.Target[p][r], x.Level[p][r], x.Value[p][r] = t, level, v
			e := x.Weight[p][r] - v
			for i, near := range x.Near[p][:p] {
				x.Add[i][r] = MulAdd(math.Float32frombits(near), e, x.Add[i][r])
			}
		}
	}
}

// level returns the level next to a number.
func (x *Levels) level(v float32) float32 {
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

// Candidates are scales and minima that numbers could be rounded with.
type Candidates struct {
	Levels             *Levels
	Scale, Min, Errors [32]float32
}

// Measure sets Errors of the first n candidates, x and w being bits of numbers, to Σ w_i (x_i - v_i)², each product and
// each sum rounded, where v_i is Scale times the level nearest to x_i, less Min. An error
// above the first one's may be computed too small, but not smaller than the first one's.
func (c *Candidates) Measure(n int, x, w []uint32) {
	w = w[:len(x)]
	for k := measureVectors(c, n, x, w); k < n; k++ {
		scale, min := c.Scale[k], c.Min[k]
		c.Errors[k] = 0
		for i := range x {
			v := math.Float32frombits(x[i])
			e := v - (float32(scale*c.Levels.level((v+min)/scale)) - min)
			if c.Errors[k] += float32(math.Float32frombits(w[i]) * float32(e*e)); c.Errors[k] > c.Errors[0] {
				break
			}
		}
	}
}
