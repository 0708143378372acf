//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"
	"simd/archsimd"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// Rounding, sums and tables with 256 bits, for package simd with 256 or 512: as roundLanes8 and its like, which take
// two to three times as many instructions, half of them for addresses. Here arrays of a group are
// reached through pointers that are loaded: the compiler adds what it knows of an address in instructions of
// their own, unless all that it adds is a constant.

// rowPointers are the arrays of the groups: ranks, codes and own by candidate, the others by
// element. For codebooks of dimension 4, those of the next group follow.
type rowPointers struct {
	dim    int
	groups [codebook.MaxGroups]*groupRows
	all    [codebook.MaxGroups]groupRows
}

type groupRows struct {
	ys, ws, vs, wys    *[8][maxLanes]float32
	ta, tb             *[8][8]float32
	margin             *[maxLanes]float32
	bounded            uint8                      // not 0: margin is finite
	ranks, codes, sums *[2 * maxCandidates]uint32 // sums: own, or codes if sumAll
}

// point sets the pointers for codebooks of a dimension.
func (s *gridLanes) point(dim int) {
	if s.rows.dim == dim || !nearByTable {
		return
	}
	s.rows.dim = dim
	for g := range s.rows.all {
		at, sums := min(dim*g, len(s.ys)-8), &s.own[g]
		if sumAll(dim) {
			sums = &s.codes[g]
		}
		s.rows.all[g] = groupRows{
			(*[8][maxLanes]float32)(s.ys[at:]), (*[8][maxLanes]float32)(s.ws[at:]), (*[8][maxLanes]float32)(s.vs[at:]),
			(*[8][maxLanes]float32)(s.wys[at:]),
			(*[8][8]float32)(s.lines.ta[at:]), (*[8][8]float32)(s.lines.tb[at:]), &s.lines.margin[g], 0, &s.ranks[g],
			&s.codes[g], sums,
		}
		s.rows.groups[g] = &s.rows.all[g]
	}
}

// sumAll reports whether sums are of all candidates: with 256 bits and dimension 4 that is faster than to find those
// that are not equal, a third to a half.
func sumAll(dim int) bool { return nearByTable && dim == 4 }

// roundRows is roundLanes.
func roundRows(s *gridLanes, dim, groups, n int) {
	switch {
	case nearByTable && dim == 8:
		roundAVX2Dim8(s, groups, n)
	case nearByTable:
		roundAVX2Dim4(s, groups, n)
	default:
		roundLanes(s, dim, groups, n)
	}
}

// sumRows is sumLanes.
func sumRows(s *gridLanes, dim, groups, n int) {
	switch {
	case nearByTable && dim == 8:
		sumAVX2Dim8(s, groups, n)
	case nearByTable:
		sumAVX2Dim4(s, groups, n)
	default:
		sumLanes(s, dim, groups, n)
	}
}

func roundAVX2Dim8(s *gridLanes, groups, n int) {
	one := archsimd.BroadcastUint32x8(0x3F800000).BitsToFloat32()
	top := archsimd.BroadcastUint32x8(s.top).BitsToFloat32()
	half := archsimd.BroadcastUint32x8(0x4BC00000).BitsToFloat32() // see roundLanes8
	magic := archsimd.BroadcastUint32x8(0x43400001).BitsToFloat32()
	low := archsimd.BroadcastUint32x8(1<<17 - 1).BitsToInt32()
	excess := archsimd.BroadcastUint32x8((6561 - 1) / 2 * 0x4BC00000 & math.MaxUint32)
	near, most := archsimd.BroadcastInt32x8(3), archsimd.BroadcastUint32x8(6561-1)
	at := archsimd.BroadcastUint32x8(edge)
	for _, r := range s.rows.groups[:groups] {
		ys, ranks := r.ys, r.ranks
		for t := 0; t < n; t += 8 {
			id := archsimd.LoadUint32x8Array((*[8]uint32)(s.id[t&31:])).BitsToFloat32()
			v := id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[7][:8]))).Max(one).Min(top)
			least := v.Add(magic).ToBits().BitsToInt32().And(low)
			rank := v.Sub(one).Add(half).ToBits()
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[6][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[5][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[4][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[3][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[2][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[1][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[0][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.Add(rank).Add(rank).Add(v.Sub(one).Add(half).ToBits())
			rank.Sub(excess).Min(most).Or(at.Masked(least.Less(near))).StoreArray((*[8]uint32)(ranks[t&31:]))
		}
	}
}

// roundAVX2Dim4 is roundAVX2Dim8 for codebooks of dimension 4.
func roundAVX2Dim4(s *gridLanes, groups, n int) {
	one := archsimd.BroadcastUint32x8(0x3F800000).BitsToFloat32()
	top := archsimd.BroadcastUint32x8(s.top).BitsToFloat32()
	half := archsimd.BroadcastUint32x8(0x4BC00000).BitsToFloat32() // see roundLanes8
	magic := archsimd.BroadcastUint32x8(0x43400001).BitsToFloat32()
	low := archsimd.BroadcastUint32x8(1<<17 - 1).BitsToInt32()
	excess := archsimd.BroadcastUint32x8((4096 - 1) / 7 * 0x4BC00000 & math.MaxUint32)
	near, most := archsimd.BroadcastInt32x8(3), archsimd.BroadcastUint32x8(4096-1)
	at := archsimd.BroadcastUint32x8(edge)
	for _, r := range s.rows.groups[:groups] {
		ys, ranks := r.ys, r.ranks
		for t := 0; t < n; t += 8 {
			id := archsimd.LoadUint32x8Array((*[8]uint32)(s.id[t&31:])).BitsToFloat32()
			v := id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[3][:8]))).Max(one).Min(top)
			least := v.Add(magic).ToBits().BitsToInt32().And(low)
			rank := v.Sub(one).Add(half).ToBits()
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[2][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.ShiftAllLeft(3).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[1][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.ShiftAllLeft(3).Add(v.Sub(one).Add(half).ToBits())
			v = id.Mul(archsimd.LoadFloat32x8Array((*[8]float32)(ys[0][:8]))).Max(one).Min(top)
			least = least.Min(v.Add(magic).ToBits().BitsToInt32().And(low))
			rank = rank.ShiftAllLeft(3).Add(v.Sub(one).Add(half).ToBits())
			rank.Sub(excess).Min(most).Or(at.Masked(least.Less(near))).StoreArray((*[8]uint32)(ranks[t&31:]))
		}
	}
}

func sumAVX2Dim8(s *gridLanes, groups, n int) {
	odd := archsimd.LoadFloat32x8Array(&oddLevels[0])
	for t := 0; t < n; t += 8 {
		var a, b archsimd.Float32x8
		for _, r := range s.rows.groups[:groups] {
			ws, wys := r.ws, r.wys
			code := archsimd.LoadUint32x8Array((*[8]uint32)(r.sums[t&31:]))
			q := odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[0][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[0][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[1][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[1][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[2][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[2][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[3][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[3][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[4][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[4][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[5][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[5][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[6][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[6][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(2)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[7][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[7][:8])).Mul(q).Mul(q))
		}
		a.StoreArray((*[8]float32)(s.a[t&31:]))
		b.StoreArray((*[8]float32)(s.b[t&31:]))
	}
}

// sumAVX2Dim4 is sumAVX2Dim8 for codebooks of dimension 4.
func sumAVX2Dim4(s *gridLanes, groups, n int) {
	odd := archsimd.LoadFloat32x8Array(&oddLevels[1])
	for t := 0; t < n; t += 8 {
		var a, b archsimd.Float32x8
		for _, r := range s.rows.groups[:groups] {
			ws, wys := r.ws, r.wys
			code := archsimd.LoadUint32x8Array((*[8]uint32)(r.sums[t&31:]))
			q := odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[0][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[0][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(3)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[1][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[1][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(3)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[2][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[2][:8])).Mul(q).Mul(q))
			code = code.ShiftAllRight(3)
			q = odd.Permute(code)
			a = a.Add(archsimd.LoadFloat32x8Array((*[8]float32)(wys[3][:8])).Mul(q))
			b = b.Add(archsimd.LoadFloat32x8Array((*[8]float32)(ws[3][:8])).Mul(q).Mul(q))
		}
		a.StoreArray((*[8]float32)(s.a[t&31:]))
		b.StoreArray((*[8]float32)(s.b[t&31:]))
	}
}

// lineTables sets what lines are made of, and margin, for scales from smallest to largest, of
// which id is the inverse of the smallest.
func lineTables(s *gridLanes, dim, groups int, smallest, largest, id uint32) {
	if !nearByTable {
		marginLanes(s, dim, groups, smallest, largest, id)
		return
	}
	odd := archsimd.LoadFloat32x8Array(&oddLevels[(8-dim)/4])
	square := archsimd.LoadFloat32x8Array(&oddSquares[(8-dim)/4])
	sign := archsimd.LoadUint32x8Array(&laneSign)
	inf := archsimd.LoadUint32x8Array(&laneInf).BitsToFloat32()
	s1 := archsimd.BroadcastUint32x8(largest).BitsToFloat32().Mul(archsimd.BroadcastUint32x8(s.reach).BitsToFloat32())
	ids := archsimd.BroadcastUint32x8(id).BitsToFloat32()
	rate := ids.Mul(archsimd.BroadcastUint32x8(marginRate).BitsToFloat32())
	maxG := archsimd.BroadcastUint32x8(marginMaxG).BitsToFloat32()
	minM := archsimd.BroadcastUint32x8(marginMinM).BitsToFloat32()
	maxM := archsimd.BroadcastUint32x8(marginMaxM).BitsToFloat32()
	scales := archsimd.BroadcastUint32x8(smallest).BitsToFloat32().GreaterEqual(
		archsimd.BroadcastUint32x8(marginMinS).BitsToFloat32())
	for _, r := range s.rows.groups[:groups] {
		ys, vs, ta, tb := r.ys, r.vs, r.ta, r.tb
		var m, most archsimd.Float32x8
		y := archsimd.LoadFloat32x8Array((*[8]float32)(ys[0][:8]))
		v := archsimd.LoadFloat32x8Array((*[8]float32)(vs[0][:8]))
		v.Mul(square).StoreArray(&ta[0])
		vy := v.Mul(y)
		vy.Add(vy).Mul(odd).StoreArray(&tb[0])
		e := y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
		most = most.Max(e)
		m = m.Add(v.Mul(e).Mul(e))
		y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[1][:8]))
		v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[1][:8]))
		v.Mul(square).StoreArray(&ta[1])
		vy = v.Mul(y)
		vy.Add(vy).Mul(odd).StoreArray(&tb[1])
		e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
		most = most.Max(e)
		m = m.Add(v.Mul(e).Mul(e))
		y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[2][:8]))
		v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[2][:8]))
		v.Mul(square).StoreArray(&ta[2])
		vy = v.Mul(y)
		vy.Add(vy).Mul(odd).StoreArray(&tb[2])
		e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
		most = most.Max(e)
		m = m.Add(v.Mul(e).Mul(e))
		y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[3][:8]))
		v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[3][:8]))
		v.Mul(square).StoreArray(&ta[3])
		vy = v.Mul(y)
		vy.Add(vy).Mul(odd).StoreArray(&tb[3])
		e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
		most = most.Max(e)
		m = m.Add(v.Mul(e).Mul(e))
		if dim == 8 {
			y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[4][:8]))
			v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[4][:8]))
			v.Mul(square).StoreArray(&ta[4])
			vy = v.Mul(y)
			vy.Add(vy).Mul(odd).StoreArray(&tb[4])
			e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
			most = most.Max(e)
			m = m.Add(v.Mul(e).Mul(e))
			y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[5][:8]))
			v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[5][:8]))
			v.Mul(square).StoreArray(&ta[5])
			vy = v.Mul(y)
			vy.Add(vy).Mul(odd).StoreArray(&tb[5])
			e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
			most = most.Max(e)
			m = m.Add(v.Mul(e).Mul(e))
			y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[6][:8]))
			v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[6][:8]))
			v.Mul(square).StoreArray(&ta[6])
			vy = v.Mul(y)
			vy.Add(vy).Mul(odd).StoreArray(&tb[6])
			e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
			most = most.Max(e)
			m = m.Add(v.Mul(e).Mul(e))
			y = archsimd.LoadFloat32x8Array((*[8]float32)(ys[7][:8]))
			v = archsimd.LoadFloat32x8Array((*[8]float32)(vs[7][:8]))
			v.Mul(square).StoreArray(&ta[7])
			vy = v.Mul(y)
			vy.Add(vy).Mul(odd).StoreArray(&tb[7])
			e = y.ToBits().AndNot(sign).BitsToFloat32().Add(s1)
			most = most.Max(e)
			m = m.Add(v.Mul(e).Mul(e))
		}
		ok := scales.And(most.LessEqual(maxG)).And(most.Mul(ids).LessEqual(maxG)).And(m.GreaterEqual(minM)).And(
			m.LessEqual(maxM))
		m.Mul(rate).IfElse(ok, inf).StoreArray((*[8]float32)(r.margin[:8]))
		r.bounded = ok.ToBits()
	}
}

// spread is spreadLanes, by permutations.
func spread(s *gridLanes, y, w, v []float32) {
	if !nearByTable || simd.VectorBitSize() > 256 {
		spreadLanes(s, y, w, v)
		return
	}
	w, v = w[:len(y)], v[:len(y)]
	step := 8 / s.rows.dim
	for i, g := 0, 0; i+8 <= len(y); i, g = i+8, g+step {
		ey, ew := archsimd.LoadFloat32x8Array((*[8]float32)(y[i:])), archsimd.LoadFloat32x8Array((*[8]float32)(w[i:]))
		ev, ewy := archsimd.LoadFloat32x8Array((*[8]float32)(v[i:])), ew.Mul(ey)
		ey.ToBits().StoreArray((*[8]uint32)(s.yBits[i:]))
		r := s.rows.groups[g&7]
		ys, ws, vs, wys := r.ys, r.ws, r.vs, r.wys
		at := archsimd.LoadUint32x8Array(&laneSplat[0])
		ey.Permute(at).StoreArray((*[8]float32)(ys[0][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[0][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[0][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[0][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[1])
		ey.Permute(at).StoreArray((*[8]float32)(ys[1][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[1][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[1][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[1][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[2])
		ey.Permute(at).StoreArray((*[8]float32)(ys[2][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[2][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[2][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[2][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[3])
		ey.Permute(at).StoreArray((*[8]float32)(ys[3][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[3][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[3][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[3][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[4])
		ey.Permute(at).StoreArray((*[8]float32)(ys[4][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[4][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[4][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[4][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[5])
		ey.Permute(at).StoreArray((*[8]float32)(ys[5][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[5][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[5][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[5][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[6])
		ey.Permute(at).StoreArray((*[8]float32)(ys[6][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[6][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[6][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[6][:8]))
		at = archsimd.LoadUint32x8Array(&laneSplat[7])
		ey.Permute(at).StoreArray((*[8]float32)(ys[7][:8]))
		ew.Permute(at).StoreArray((*[8]float32)(ws[7][:8]))
		ev.Permute(at).StoreArray((*[8]float32)(vs[7][:8]))
		ewy.Permute(at).StoreArray((*[8]float32)(wys[7][:8]))
	}
}

// largest is largestLanes.
func largest(s *gridLanes, size int) {
	if !nearByTable {
		largestLanes(s, size)
		return
	}
	y := s.y[:]
	for j := range s.largest[:pack.QK_K/size] {
		var m archsimd.Float32x8
		for range size / 8 {
			e := archsimd.LoadFloat32x8Array((*[8]float32)(y))
			m = e.IfElse(e.Greater(m), m)
			y = y[8:]
		}
		m = m.Max(m.ConcatPermute128Scalars(1, 0, m)) // not negative, nor NaN
		m = m.Max(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		m = m.Max(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
		s.largest[j] = m.ToBits().GetLo().GetElem(0)
	}
}

// signsAndSum is splitSigns of x, all signs free, and arith.SumSquares. The sum has its order in every lane;
// its additions wait for each other, so that the rest takes next to no time.
func signsAndSum(s *gridLanes, signs *[32]uint8, x []float32) float32 {
	if !nearByTable {
		splitSigns(s, signs, x, false)
		clearUpper()
		return arith.SumSquares(x)
	}
	var sum archsimd.Float32x8
	splat := splatAt
	sign := archsimd.LoadUint32x8Array(&laneSign)
	y := s.y[:]
	for g := range signs {
		e := archsimd.LoadFloat32x8Array((*[8]float32)(x))
		negative := e.ToBits().AsInt32x8().Less(archsimd.Int32x8{})
		// not of -0
		negative = negative.And(e.ToBits().ShiftAllLeft(1).Equal(archsimd.Uint32x8{}).ToInt32x8().Not().ToMask())
		signs[g] = negative.ToBits()
		e.ToBits().Xor(sign.Masked(negative)).BitsToFloat32().StoreArray((*[8]float32)(y))
		e = e.Mul(e)
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[0])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[1])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[2])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[3])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[4])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[5])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[6])))
		sum = sum.Add(e.Permute(archsimd.LoadUint32x8Array(&splat[7])))
		x, y = x[8:], y[8:]
	}
	bits := sum.ToBits().GetLo().GetElem(0)
	clearUpper()
	return math.Float32frombits(bits)
}
