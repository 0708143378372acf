//go:build goexperiment.simd && go1.27

package vecmath

import "simd"

// roundVectors is Rounding.Round for as many rows as it returns: all.
func roundVectors(x *Rounding) (r int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || RoundingSize%width != 0 {
		return 0
	}
	var zero f32s
	half := get(&cHalf)
	for ; r < RoundingSize; r += width {
		scale, min := simd.LoadFloat32s(x.Scale[r:]), simd.LoadFloat32s(x.Min[r:])
		for p := RoundingSize - 1; p >= 0; p-- {
			w := simd.LoadFloat32s(x.Weight[p][r:])
			t := w.Add(simd.LoadFloat32s(x.Add[p][r:]))
			t.Store(x.Target[p][r:])
			level := t.Add(min).Div(scale)
			if x.even {
				first, last := get(&x.first), get(&x.last)
				level = level.Sub(first).Add(half)
				level = level.IfElse(level.Less(last), last)
				level = zero.IfElse(level.Less(zero), level)
				level = first.Add(level.ConvertToInt32().ConvertToFloat32())
			} else {
				v := get(&x.values[0])
				for i := range x.middles {
					v = get(&x.values[i+1]).IfElse(level.Greater(get(&x.middles[i])), v)
				}
				level = v
			}
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
