//go:build goexperiment.simd && go1.27

package vecmath

import "simd"

// measureTries is Tries.Measure for as many rows as it returns: all. Five tries are written out, so that each place's
// steps of one are done while the others wait: one by one they took 2.5 times as long on Zen 5. The errors of later
// places are added to the sums of two places at a time, which stay in registers: in memory, each error would be a load
// and a store of the sums of all places before it.
func measureTries(x *Tries, n int) (r int) {
	width := simd.BroadcastInt32s(0).Len()
	if simd.Emulated() || RoundingSize%width != 0 {
		return 0
	}
	even := x.Levels.even
	for ; r < RoundingSize; r += width {
		s0, m0 := simd.LoadFloat32s(x.Scale[0][r:]), simd.LoadFloat32s(x.Min[0][r:])
		s1, m1 := simd.LoadFloat32s(x.Scale[1][r:]), simd.LoadFloat32s(x.Min[1][r:])
		s2, m2 := simd.LoadFloat32s(x.Scale[2][r:]), simd.LoadFloat32s(x.Min[2][r:])
		s3, m3 := simd.LoadFloat32s(x.Scale[3][r:]), simd.LoadFloat32s(x.Min[3][r:])
		s4, m4 := simd.LoadFloat32s(x.Scale[4][r:]), simd.LoadFloat32s(x.Min[4][r:])
		one := get(&consts.one)
		i0, i1, i2, i3, i4 := one.Div(s0), one.Div(s1), one.Div(s2), one.Div(s3), one.Div(s4)
		var l0, l1, l2, l3, l4 f32s
		for p := n - 1; p >= 0; p-- {
			var t0, t1, t2, t3, t4 f32s
			if (n-1-p)%2 == 0 {
				before := max(p-1, 0)
				t0 = simd.LoadFloat32s(x.Add[p][r:])
				t1, t2, t3, t4 = t0, t0, t0, t0
				b0 := simd.LoadFloat32s(x.Add[before][r:])
				b1, b2, b3, b4 := b0, b0, b0, b0
				for q := n - 1; q > p; q-- {
					near, off := &x.Near[q], &x.off[q]
					by, other := bits(near[p]), bits(near[before])
					e := simd.LoadFloat32s(off[0][r:])
					t0, b0 = e.MulAdd(by, t0), e.MulAdd(other, b0)
					e = simd.LoadFloat32s(off[1][r:])
					t1, b1 = e.MulAdd(by, t1), e.MulAdd(other, b1)
					e = simd.LoadFloat32s(off[2][r:])
					t2, b2 = e.MulAdd(by, t2), e.MulAdd(other, b2)
					e = simd.LoadFloat32s(off[3][r:])
					t3, b3 = e.MulAdd(by, t3), e.MulAdd(other, b3)
					e = simd.LoadFloat32s(off[4][r:])
					t4, b4 = e.MulAdd(by, t4), e.MulAdd(other, b4)
				}
				sum := &x.off[before]
				b0.Store(sum[0][r:])
				b1.Store(sum[1][r:])
				b2.Store(sum[2][r:])
				b3.Store(sum[3][r:])
				b4.Store(sum[4][r:])
			} else {
				by, off, sum := bits(x.Near[p+1][p]), &x.off[p+1], &x.off[p]
				t0 = by.MulAdd(simd.LoadFloat32s(off[0][r:]), simd.LoadFloat32s(sum[0][r:]))
				t1 = by.MulAdd(simd.LoadFloat32s(off[1][r:]), simd.LoadFloat32s(sum[1][r:]))
				t2 = by.MulAdd(simd.LoadFloat32s(off[2][r:]), simd.LoadFloat32s(sum[2][r:]))
				t3 = by.MulAdd(simd.LoadFloat32s(off[3][r:]), simd.LoadFloat32s(sum[3][r:]))
				t4 = by.MulAdd(simd.LoadFloat32s(off[4][r:]), simd.LoadFloat32s(sum[4][r:]))
			}
			w, to := simd.LoadFloat32s(x.Weight[p][r:]), &x.off[p]
			t0, t1, t2, t3, t4 = w.Add(t0), w.Add(t1), w.Add(t2), w.Add(t3), w.Add(t4)
			v0, v1, v2 := t0.Add(m0).Mul(i0), t1.Add(m1).Mul(i1), t2.Add(m2).Mul(i2)
			v3, v4 := t3.Add(m3).Mul(i3), t4.Add(m4).Mul(i4)
			if even { // as nearestOf
				var zero f32s
				first, last, half := get(&x.Levels.first), get(&x.Levels.last), get(&consts.half)
				v0, v1, v2 = v0.Sub(first).Add(half), v1.Sub(first).Add(half), v2.Sub(first).Add(half)
				v3, v4 = v3.Sub(first).Add(half), v4.Sub(first).Add(half)
				v0, v1, v2 = v0.IfElse(v0.Less(last), last), v1.IfElse(v1.Less(last), last), v2.IfElse(v2.Less(last), last)
				v3, v4 = v3.IfElse(v3.Less(last), last), v4.IfElse(v4.Less(last), last)
				v0, v1, v2 = zero.IfElse(v0.Less(zero), v0), zero.IfElse(v1.Less(zero), v1), zero.IfElse(v2.Less(zero), v2)
				v3, v4 = zero.IfElse(v3.Less(zero), v3), zero.IfElse(v4.Less(zero), v4)
				v0 = first.Add(v0.ConvertToInt32().ConvertToFloat32())
				v1 = first.Add(v1.ConvertToInt32().ConvertToFloat32())
				v2 = first.Add(v2.ConvertToInt32().ConvertToFloat32())
				v3 = first.Add(v3.ConvertToInt32().ConvertToFloat32())
				v4 = first.Add(v4.ConvertToInt32().ConvertToFloat32())
			} else {
				v0, v1, v2 = nearestOf(x.Levels, v0), nearestOf(x.Levels, v1), nearestOf(x.Levels, v2)
				v3, v4 = nearestOf(x.Levels, v3), nearestOf(x.Levels, v4)
			}
			v0, v1, v2 = s0.Mul(v0).Sub(m0), s1.Mul(v1).Sub(m1), s2.Mul(v2).Sub(m2)
			v3, v4 = s3.Mul(v3).Sub(m3), s4.Mul(v4).Sub(m4)
			t0, t1, t2, t3, t4 = t0.Sub(v0), t1.Sub(v1), t2.Sub(v2), t3.Sub(v3), t4.Sub(v4)
			cost := bits(x.Cost[p])
			l0, l1, l2 = l0.Add(cost.Mul(t0.Mul(t0))), l1.Add(cost.Mul(t1.Mul(t1))), l2.Add(cost.Mul(t2.Mul(t2)))
			l3, l4 = l3.Add(cost.Mul(t3.Mul(t3))), l4.Add(cost.Mul(t4.Mul(t4)))
			w.Sub(v0).Store(to[0][r:])
			w.Sub(v1).Store(to[1][r:])
			w.Sub(v2).Store(to[2][r:])
			w.Sub(v3).Store(to[3][r:])
			w.Sub(v4).Store(to[4][r:])
		}
		l0.Store(x.Loss[0][r:])
		l1.Store(x.Loss[1][r:])
		l2.Store(x.Loss[2][r:])
		l3.Store(x.Loss[3][r:])
		l4.Store(x.Loss[4][r:])
	}
	clearUpper()
	return r
}
