//go:build goexperiment.simd && go1.27

package vecmath

import "simd"

// roundVectors is Rounding.Round for as many rows as it returns: all.
func roundVectors(x *Rounding) (r int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || RoundingSize%width != 0 {
		return 0
	}
	for ; r < RoundingSize; r += width {
		scale, min := simd.LoadFloat32s(x.Scale[r:]), simd.LoadFloat32s(x.Min[r:])
		for p := RoundingSize - 1; p >= 0; p-- {
			w := simd.LoadFloat32s(x.Weight[p][r:])
			t := w.Add(simd.LoadFloat32s(x.Add[p][r:]))
			t.Store(x.Target[p][r:])
			level := nearestOf(x.Levels, t.Add(min).Div(scale))
			v := scale.Mul(level).Sub(min)
			level.Store(x.Level[p][r:])
			v.Store(x.Value[p][r:])
			e := w.Sub(v)
			for i, near := range x.Near[p][:p] {
				add := x.Add[i][r:]
				simd.BroadcastUint32s(near).BitsToFloat32().MulAdd(e, simd.LoadFloat32s(add)).Store(add)
			}
		}
	}
	clearUpper()
	return r
}

// nearestOf is Levels.level for a vector.
func nearestOf(x *Levels, v f32s) f32s {
	if x.even {
		var zero f32s
		first, last := get(&x.first), get(&x.last)
		v = v.Sub(first).Add(get(&consts.half))
		v = v.IfElse(v.Less(last), last)
		v = zero.IfElse(v.Less(zero), v)
		return first.Add(v.ConvertToInt32().ConvertToFloat32())
	}
	level := get(&x.values[0])
	for i := range x.middles {
		level = get(&x.values[i+1]).IfElse(v.Greater(get(&x.middles[i])), level)
	}
	return level
}

// measureVectors is Candidates.Measure for as many candidates as it returns, one in each lane.
func measureVectors(c *Candidates, n int, x, w []uint32) (k int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || len(c.Scale)%width != 0 {
		return 0
	}
	for ; k < n; k += width {
		scale, min := simd.LoadFloat32s(c.Scale[k:]), simd.LoadFloat32s(c.Min[k:])
		var sum f32s
		for i := range x {
			v, by := bits(x[i]), bits(w[i])
			e := v.Sub(scale.Mul(nearestOf(c.Levels, v.Add(min).Div(scale))).Sub(min))
			sum = sum.Add(by.Mul(e.Mul(e)))
		}
		sum.Store(c.Errors[k:])
	}
	clearUpper()
	return k
}
