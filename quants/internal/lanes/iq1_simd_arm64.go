//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/pack"
)

// Steps of IQ1_S and IQ1_M with archsimd: see searchAsymNeon. A weight takes 361 instructions instead of 731 (IQ1_S; in
// scalar code 1633) and 469 instead of 791 (IQ1_M; 3144). Of the 361 fits take 107, neighbours 95, which took 306 one
// by one, sorting 24 instead of 60.

// neighboursIQ1 sets the codes of the items to neighbours, and l.failed where one had no finite error. It reports
// whether it did.
func neighboursIQ1(l *iq1Lanes, items []uint16, x, w []float32, groups int) bool {
	if tilesByNeon {
		neighboursIQ1Neon(l, items, x, w, groups)
	}
	return tilesByNeon
}

func neighboursIQ1Neon(l *iq1Lanes, items []uint16, x, w []float32, groups int) {
	lists := l.lists
	for _, item := range items {
		g, k := int(item>>8&3), int(item&(maxLanes-1))
		at := 8 * (groups*k + g)
		values := &l.values[-l.shift[g&(groups/2&1)][k]&1]
		x, w := (*[8]float32)(x[at:]), (*[8]float32)(w[at:])
		c0, c1, c2, c3 := costsIQ1(values, k, load4(x[:4]), load4(w[:4]))
		c4, c5, c6, c7 := costsIQ1(values, k, load4(x[4:]), load4(w[4:]))
		span := lists.spans[l.ranks[g][k]]
		list := lists.codes[span.off:][:neighbourChunk*int(span.n)]
		if win, ok := nearest8Neon(c0, c1, c2, c3, c4, c5, c6, c7, list); ok {
			l.codes[g][k] = uint32(list[win])
		} else {
			l.failed[k] = true
		}
	}
}

// costsIQ1 returns the costs of the levels, of 4 elements x of weights w.
func costsIQ1(values *[3][maxLanes]uint32, k int, x, w f32x4) (a, b, c, d u8x16) {
	e := archsimd.BroadcastUint32x4(values[0][k]).BitsToFloat32().Sub(x)
	r0 := w.Mul(e).Mul(e).ToBits()
	e = archsimd.BroadcastUint32x4(values[1][k]).BitsToFloat32().Sub(x)
	r1 := w.Mul(e).Mul(e).ToBits()
	e = archsimd.BroadcastUint32x4(values[2][k]).BitsToFloat32().Sub(x)
	r2 := w.Mul(e).Mul(e).ToBits()
	t, u := r0.InterleaveLo(r1).ReshapeToUint64s(), r0.InterleaveHi(r1).ReshapeToUint64s()
	v, z := r2.InterleaveLo(r2).ReshapeToUint64s(), r2.InterleaveHi(r2).ReshapeToUint64s()
	return t.InterleaveLo(v).ReshapeToUint8s(), t.InterleaveHi(v).ReshapeToUint8s(),
		u.InterleaveLo(z).ReshapeToUint8s(), u.InterleaveHi(z).ReshapeToUint8s()
}

// Where nearest8Neon finds 4 times each of the low bytes, or of the high bytes, of 4 codes.
var spreadCodes = [4][16]uint8{
	{0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6}, {1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7},
	{8, 8, 8, 8, 10, 10, 10, 10, 12, 12, 12, 12, 14, 14, 14, 14},
	{9, 9, 9, 9, 11, 11, 11, 11, 13, 13, 13, 13, 15, 15, 15, 15},
}

// The bytes of a float32 in a vector of 4, by the level times 4.
var byteOfFloat = [16]uint8{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}

// Counts of shifts: left by 2, right by 2 and right by 4.
var byteShifts = [3][16]int8{
	{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
	{-2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2, -2},
	{-4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4},
}

// firstPoints are the indices of the first points of a chunk.
var firstPoints = [4]uint32{0, 1, 2, 3}

// firstLeast returns the smallest index of a least cost. As costs are not negative, or all are -0, their bits are in
// order.
func firstLeast(best0, best1 f32x4, index0, index1 i32x4) (win uint32, ok bool) {
	e0, e1 := best0.ToBits().BitsToInt32(), best1.ToBits().BitsToInt32()
	least := e0.Min(e1).ReduceMin()
	m, none := archsimd.BroadcastInt32x4(least), ints4(absBits)
	index := index0.IfElse(e0.Equal(m), none).Min(index1.IfElse(e1.Equal(m), none))
	return uint32(index.ReduceMin()), least < 0x7F7FFFFF
}

// cutsIQ1_S is scanIQ1_S.
func cutsIQ1_S(l *iq1Lanes) {
	if tilesByNeon {
		scanIQ1_SNeon(l)
	} else {
		scanIQ1_S(l)
	}
}

// cutsIQ1_M is scanIQ1_M.
func cutsIQ1_M(l *iq1Lanes) {
	if tilesByNeon {
		scanIQ1_MNeon(l)
	} else {
		scanIQ1_M(l)
	}
}

func scanIQ1_SNeon(l *iq1Lanes) {
	const cuts = pack.QK + 1
	shifted := load4(l.consts[:])
	clear(l.tops[1][:4*cuts])
	firsts, seconds, tops, ends := (*[12 * cuts]float32)(l.first[:]), (*[12 * cuts]float32)(l.second[:]), l.tops[0][:],
		(*[4 * cuts]float32)(l.tops[1][:])
	for i := 0; i <= 4*cuts-4; i += 4 {
		f := (*[12]float32)(firsts[3*i:])
		c, e0, e1 := load4(f[:4]), load4(f[4:8]), load4(f[8:])
		var top f32x4
		for k := i; k <= 4*cuts-4; k += 4 {
			s, t := (*[12]float32)(seconds[3*k:]), (*[4]float32)(ends[k:k+4])
			a := c.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[:4])))
			a1 := a.Sub(shifted)
			b0, b1 := e0.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[4:8]))),
				e1.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[8:])))
			m := a.Mul(a).Div(b0).Max(a1.Mul(a1).Div(b1))
			top = top.Max(m)
			archsimd.LoadFloat32x4Array(t).Max(m).StoreArray(t)
		}
		store4(tops[i:], top)
	}
}

func scanIQ1_MNeon(l *iq1Lanes) {
	const cuts = 17
	k0, k1, k2, k3 := load4(l.consts[:]), load4(l.consts[4:]), load4(l.consts[8:]), load4(l.consts[12:])
	clear(l.tops[1][:4*cuts])
	firsts, seconds, tops, ends := (*[20 * cuts]float32)(l.first[:]), (*[20 * cuts]float32)(l.second[:]), l.tops[0][:],
		(*[4 * cuts]float32)(l.tops[1][:])
	for i := 0; i <= 4*cuts-4; i += 4 {
		f := (*[20]float32)(firsts[5*i:])
		x, e0, e1, e2, e3 := load4(f[:4]), load4(f[4:8]), load4(f[8:12]), load4(f[12:16]), load4(f[16:])
		var top f32x4
		for k := i; k <= 4*cuts-4; k += 4 {
			s, t := (*[20]float32)(seconds[5*k:]), (*[4]float32)(ends[k:k+4])
			v := x.Add(archsimd.LoadFloat32x4Array((*[4]float32)(s[:4])))
			a0, a1, a2, a3 := k0.Sub(v), k1.Sub(v), k2.Sub(v), k3.Sub(v)
			m := a0.Mul(a0).Div(e0.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[4:8]))))
			m = m.Max(a1.Mul(a1).Div(e1.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[8:12])))))
			m = m.Max(a2.Mul(a2).Div(e2.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[12:16])))))
			m = m.Max(a3.Mul(a3).Div(e3.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(s[16:])))))
			top = top.Max(m)
			archsimd.LoadFloat32x4Array(t).Max(m).StoreArray(t)
		}
		store4(tops[i:], top)
	}
}

// sortKeys is sortTile.
func sortKeys(keys []int32, pairs [][2]uint8, width int) {
	if !tilesByNeon {
		sortTile(keys, pairs, width)
		return
	}
	rows := (*[4 * pack.QK]int32)(keys[:4*pack.QK])
	for _, p := range pairs {
		i, k := 4*(int(p[0])&(pack.QK-1)), 4*(int(p[1])&(pack.QK-1))
		a, b := (*[4]int32)(rows[i:]), (*[4]int32)(rows[k:])
		v, w := archsimd.LoadInt32x4Array(a), archsimd.LoadInt32x4Array(b)
		v.Min(w).StoreArray(a)
		v.Max(w).StoreArray(b)
	}
}
