//go:build goexperiment.simd && go1.27

package vecmath

import "simd"

// measureTries is Tries.Measure for as many rows as it returns: all.
func measureTries(x *Tries, n int) (r int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || RoundingSize%width != 0 {
		return 0
	}
	for p := range n {
		x.add[p] = x.Add[p]
	}
	for ; r < RoundingSize; r += width {
		scale, min := simd.LoadFloat32s(x.Scale[r:]), simd.LoadFloat32s(x.Min[r:])
		var loss f32s
		for p := n - 1; p >= 0; p-- {
			w := simd.LoadFloat32s(x.Weight[p][r:])
			t := w.Add(simd.LoadFloat32s(x.add[p][r:]))
			v := scale.Mul(nearestOf(x.Levels, t.Add(min).Div(scale))).Sub(min)
			off := t.Sub(v)
			loss = loss.Add(bits(x.Cost[p]).Mul(off.Mul(off)))
			e := w.Sub(v)
			for i, near := range x.Near[p][:p] {
				add := x.add[i][r:]
				bits(near).MulAdd(e, simd.LoadFloat32s(add)).Store(add)
			}
		}
		loss.Store(x.Loss[r:])
	}
	clearUpper()
	return r
}
