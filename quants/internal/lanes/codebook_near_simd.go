//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"

	"ggforge/quants/internal/codebook"
)

// nearLanes is near without a permutation: for vectors of 128 bits, of which one
// holds a chunk of codes. A lane has a point of even index, then that of odd index
// after it, and computes its values from its code: 9 operations for each element
// of 4 points. That is why it gains less than nearAVX2Dim8 and nearAVX2Dim4, which
// take 3 for 8 points.
//
// Selecting among the three costs of an element would take 7 operations and three
// loads, and 72 operations to prepare: by count no gain for lists of 30, not tried.
//
// IQ2_XXS 19 MB/s of float32 (scalar 12), IQ2_XS 11 (7.4), IQ2_S 32 (15.5), IQ3_XXS
// 14 (6.9), IQ3_S 21 (10.6), with Go 1.27.4 on Zen 3 at 128 bits; with nearScalar 13,
// 8.5, 20, 8.2 and 12.6.
func nearLanes(cb *codebook.Codebook, lists *nearLists, s *gridLanes, items []uint16) (failed bool) {
	if simd.VectorBitSize() != 16*nearChunk {
		return nearScalar(cb, s, items)
	}
	for _, item := range items {
		g, t := item>>8&(codebook.MaxGroups-1), item&(maxCandidates-1)
		span := lists.spans[s.ranks[g][t]]
		list := lists.codes[span.off:][:nearChunk*int(span.n)]
		if cb.Dim == 8 {
			nearLanes8(s, list, int(g), s.scale[t])
		} else {
			nearLanes4(s, list, int(g), s.scale[t])
		}
		// The first smallest. Sums are not negative, so their bits are in order.
		win := uint64(math.MaxUint64)
		for i, e := range s.least[:nearChunk/2] {
			win = min(win, uint64(e)<<32|uint64(s.index[i]))
		}
		if win>>32 >= 0x7F7FFFFF { // the largest float32
			failed = true
			win = 0
		}
		s.codes[g][t] = uint32(list[uint32(win)])
	}
	return failed
}

// evenIndex are the indices of the points of even index in a chunk.
var evenIndex = [maxLanes]uint32{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}

// nearLanes8 sets least and index to the smallest sum of each lane, as bits, and
// the index of its point.
func nearLanes8(s *gridLanes, list []uint16, g int, scaleBits uint32) {
	ys, vs := (*[8][maxLanes]float32)(s.ys[8*g:]), (*[8][maxLanes]float32)(s.vs[8*g:])
	scale := simd.BroadcastUint32s(scaleBits).BitsToFloat32()
	best := simd.BroadcastUint32s(0x7F7FFFFF).BitsToFloat32()
	one, mask, chunk := simd.BroadcastUint32s(1), simd.BroadcastUint32s(6), simd.BroadcastUint32s(nearChunk)
	next := simd.LoadUint32s(evenIndex[:])
	index := next
	for ; len(list) >= nearChunk; list = list[nearChunk:] {
		p := simd.LoadUint16s(list).ReshapeToUint32s()
		lo, hi := p.ShiftAllLeft(1), p.ShiftAllRight(15)
		var a, b simd.Float32s
		for k := range ys {
			y, v := simd.LoadFloat32s(ys[k][:]), simd.LoadFloat32s(vs[k][:])
			d := lo.And(mask).Or(one).BitsToInt32().ConvertToFloat32().Mul(scale).Sub(y)
			a = a.Add(v.Mul(d).Mul(d))
			d = hi.And(mask).Or(one).BitsToInt32().ConvertToFloat32().Mul(scale).Sub(y)
			b = b.Add(v.Mul(d).Mul(d))
			lo, hi = lo.ShiftAllRight(2), hi.ShiftAllRight(2)
		}
		less := a.Less(best)
		best, index = a.IfElse(less, best), next.IfElse(less, index)
		less = b.Less(best)
		best, index = b.IfElse(less, best), next.Add(one).IfElse(less, index)
		next = next.Add(chunk)
	}
	best.ToBits().Store(s.least[:])
	index.Store(s.index[:])
}

// nearLanes4 is nearLanes8 for codebooks of dimension 4.
func nearLanes4(s *gridLanes, list []uint16, g int, scaleBits uint32) {
	ys, vs := (*[4][maxLanes]float32)(s.ys[4*g:]), (*[4][maxLanes]float32)(s.vs[4*g:])
	scale := simd.BroadcastUint32s(scaleBits).BitsToFloat32()
	best := simd.BroadcastUint32s(0x7F7FFFFF).BitsToFloat32()
	one, mask, chunk := simd.BroadcastUint32s(1), simd.BroadcastUint32s(14), simd.BroadcastUint32s(nearChunk)
	next := simd.LoadUint32s(evenIndex[:])
	index := next
	for ; len(list) >= nearChunk; list = list[nearChunk:] {
		p := simd.LoadUint16s(list).ReshapeToUint32s()
		lo, hi := p.ShiftAllLeft(1), p.ShiftAllRight(15)
		var a, b simd.Float32s
		for k := range ys {
			y, v := simd.LoadFloat32s(ys[k][:]), simd.LoadFloat32s(vs[k][:])
			d := lo.And(mask).Or(one).BitsToInt32().ConvertToFloat32().Mul(scale).Sub(y)
			a = a.Add(v.Mul(d).Mul(d))
			d = hi.And(mask).Or(one).BitsToInt32().ConvertToFloat32().Mul(scale).Sub(y)
			b = b.Add(v.Mul(d).Mul(d))
			lo, hi = lo.ShiftAllRight(3), hi.ShiftAllRight(3)
		}
		less := a.Less(best)
		best, index = a.IfElse(less, best), next.IfElse(less, index)
		less = b.Less(best)
		best, index = b.IfElse(less, best), next.Add(one).IfElse(less, index)
		next = next.Add(chunk)
	}
	best.ToBits().Store(s.least[:])
	index.Store(s.index[:])
}
