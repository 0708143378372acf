//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/codebook"
)

// The choice among near points with 256 bits. The cost of an element has 3 or 8
// values, by level: a permutation of 8 lanes (VPERMPS) looks up those of 8 points
// at once, with the codes shifted so that the level is in the low bits. It takes 3
// bits: of dimension 8, whose levels have 2, the table is there twice. Package simd
// has no permutation, hence archsimd; at 128 bits there is nearLanes.
//
// Lists are whole here, so that each sum is the reference's. What comes here is what
// codebook_runs_simd.go is in doubt about, one to three candidates of a group in a sub-block.

// Steps that are written for AVX2; see cpu.Machine.
var (
	nearByTable = cpu.Here().UsesAVX2()
	tilesByAVX2 = cpu.Here().UsesAVX2() && lane.Width() == 8 // the lanes of searchAsymAVX2

	tilesByAVX512 = lane.Width() == 16 && archsimd.X86.AVX512()
)

// clearUpper ends a run of vector functions: what follows has scalar floats, which
// the compiler makes legacy instructions. It also makes some of moves next to vectors of 128 bits, which makes
// kernels of that width 20 times as slow once anything has used the upper halves, such as a
// preemption, which saves and restores them: so every encoder calls this for every tile or so.
func clearUpper() { archsimd.ClearAVXUpperBits() }

// near sets the codes of those items to the near points whose values fit
// y best. It reports whether any had no near point with a finite error.
func near(cb *codebook.Codebook, lists *nearLists, s *gridLanes, items []uint16) (failed bool) {
	if !nearByTable {
		return nearLanes(cb, lists, s, items)
	}
	valuesAVX2(s, items, cb.Dim)
	if cb.Dim == 8 {
		return nearAVX2Dim8(lists, s, items)
	}
	return nearAVX2Dim4(lists, s, items)
}

// oddLevels are what levels stand for, twice those of dimension 8.
var oddLevels = [2][8]float32{{1, 3, 5, 7, 1, 3, 5, 7}, {1, 3, 5, 7, 9, 11, 13, 15}}

var laneIndex = [8]uint32{0, 1, 2, 3, 4, 5, 6, 7}
var laneCount = [8]uint32{8, 8, 8, 8, 8, 8, 8, 8}
var laneMax = [8]uint32{0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF}

// valuesAVX2 sets values to what levels stand for, of the candidates of those items.
func valuesAVX2(s *gridLanes, items []uint16, dim int) {
	odd := archsimd.LoadFloat32x8Array(&oddLevels[(8-dim)/4])
	for _, item := range items {
		t := item & (maxCandidates - 1)
		archsimd.BroadcastUint32x8(s.scale[t]).BitsToFloat32().Mul(odd).StoreArray((*[8]float32)(s.values[t][:8]))
	}
}

func nearAVX2Dim8(lists *nearLists, s *gridLanes, work []uint16) (failed bool) {
	first := archsimd.LoadUint32x8Array(&laneIndex)
	count := archsimd.LoadUint32x8Array(&laneCount)
	none := archsimd.LoadUint32x8Array(&laneMax).BitsToFloat32()
	var at [8]uint32
	for _, item := range work {
		g, t := item>>8&7, item&31
		ys, vs := (*[8][maxLanes]float32)(s.ys[8*g:]), (*[8][maxLanes]float32)(s.vs[8*g:])
		span := lists.spans[s.ranks[g][t]]
		q := archsimd.LoadFloat32x8Array((*[8]float32)(s.values[t][:8]))
		d := q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[0][:8])))
		c0 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[0][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[1][:8])))
		c1 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[1][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[2][:8])))
		c2 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[2][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[3][:8])))
		c3 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[3][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[4][:8])))
		c4 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[4][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[5][:8])))
		c5 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[5][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[6][:8])))
		c6 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[6][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[7][:8])))
		c7 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[7][:8])).Mul(d).Mul(d)

		list := lists.codes[span.off:][:8*int(span.n)]
		best, index, i := none, first, first
		for k := 0; k+8 <= len(list); k += 8 {
			p := archsimd.LoadUint16x8Array((*[8]uint16)(list[k:])).ExtendToUint32()
			e := c0.Permute(p)
			e = e.Add(c1.Permute(p.ShiftAllRight(2)))
			e = e.Add(c2.Permute(p.ShiftAllRight(4)))
			e = e.Add(c3.Permute(p.ShiftAllRight(6)))
			e = e.Add(c4.Permute(p.ShiftAllRight(8)))
			e = e.Add(c5.Permute(p.ShiftAllRight(10)))
			e = e.Add(c6.Permute(p.ShiftAllRight(12)))
			e = e.Add(c7.Permute(p.ShiftAllRight(14)))
			less := e.Less(best)
			best = e.IfElse(less, best)
			index = i.IfElse(less, index)
			i = i.Add(count)
		}
		m := best.Min(best.ConcatPermute128Scalars(1, 0, best))
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
		index.StoreArray(&at)
		if m.Less(none).ToBits() == 0 {
			failed = true
			s.codes[g][t] = uint32(list[0])
			continue
		}
		lanes := m.Equal(best).ToBits()
		win := at[bits.TrailingZeros8(lanes)&7]
		for lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1 {
			win = min(win, at[bits.TrailingZeros8(lanes)&7])
		}
		s.codes[g][t] = uint32(list[win])
	}
	return failed
}

func nearAVX2Dim4(lists *nearLists, s *gridLanes, work []uint16) (failed bool) {
	first := archsimd.LoadUint32x8Array(&laneIndex)
	count := archsimd.LoadUint32x8Array(&laneCount)
	none := archsimd.LoadUint32x8Array(&laneMax).BitsToFloat32()
	var at [8]uint32
	for _, item := range work {
		g, t := item>>8&7, item&31
		ys, vs := (*[4][maxLanes]float32)(s.ys[4*g:]), (*[4][maxLanes]float32)(s.vs[4*g:])
		span := lists.spans[s.ranks[g][t]]
		q := archsimd.LoadFloat32x8Array((*[8]float32)(s.values[t][:8]))
		d := q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[0][:8])))
		c0 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[0][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[1][:8])))
		c1 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[1][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[2][:8])))
		c2 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[2][:8])).Mul(d).Mul(d)
		d = q.Sub(archsimd.LoadFloat32x8Array((*[8]float32)(ys[3][:8])))
		c3 := archsimd.LoadFloat32x8Array((*[8]float32)(vs[3][:8])).Mul(d).Mul(d)

		list := lists.codes[span.off:][:8*int(span.n)]
		best, index, i := none, first, first
		for k := 0; k+8 <= len(list); k += 8 {
			p := archsimd.LoadUint16x8Array((*[8]uint16)(list[k:])).ExtendToUint32()
			e := c0.Permute(p)
			e = e.Add(c1.Permute(p.ShiftAllRight(3)))
			e = e.Add(c2.Permute(p.ShiftAllRight(6)))
			e = e.Add(c3.Permute(p.ShiftAllRight(9)))
			less := e.Less(best)
			best = e.IfElse(less, best)
			index = i.IfElse(less, index)
			i = i.Add(count)
		}
		m := best.Min(best.ConcatPermute128Scalars(1, 0, best))
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
		index.StoreArray(&at)
		if m.Less(none).ToBits() == 0 {
			failed = true
			s.codes[g][t] = uint32(list[0])
			continue
		}
		lanes := m.Equal(best).ToBits()
		win := at[bits.TrailingZeros8(lanes)&7]
		for lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1 {
			win = min(win, at[bits.TrailingZeros8(lanes)&7])
		}
		s.codes[g][t] = uint32(list[win])
	}
	return failed
}
