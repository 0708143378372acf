//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
)

// Steps of the search of IQ2 and IQ3 with archsimd: see searchAsymNeon.

func clearUpper() {}

// searchByAVX2: neighbours are looked up with 256 bits.
const searchByAVX2 = false

func splitSigns(s *gridLanes, signs *[32]uint8, x []float32, even bool) {
	splitSignsScalar(s, signs, x, even)
}

// neighbours sets the codes of those items to the neighbours whose values fit
// y best. It reports whether any had no neighbour with a finite error.
func neighbours(cb *codebook.Codebook, lists *neighbourLists, s *gridLanes, items []uint16) (failed bool) {
	if !tilesByNeon || cb.Dim != 8 {
		return neighboursLanes(cb, lists, s, items)
	}
	return neighbours8Neon(lists, s, items)
}

func neighbours8Neon(lists *neighbourLists, s *gridLanes, items []uint16) (failed bool) {
	for _, item := range items {
		g, t := item>>8&3, item&(maxCandidates-1)
		ys, vs := (*[8][maxLanes]float32)(s.ys[8*g:]), (*[8][maxLanes]float32)(s.vs[8*g:])
		span := lists.spans[s.ranks[g][t]]
		list := lists.codes[span.off:][:neighbourChunk*int(span.n)]
		q := archsimd.BroadcastUint32x4(s.scale[t]).BitsToFloat32().Mul(archsimd.LoadFloat32x4Array(&oddLevels))
		win, ok := nearest8Neon(cost4(q, &ys[0], &vs[0]), cost4(q, &ys[1], &vs[1]), cost4(q, &ys[2], &vs[2]),
			cost4(q, &ys[3], &vs[3]),
			cost4(q, &ys[4], &vs[4]), cost4(q, &ys[5], &vs[5]), cost4(q, &ys[6], &vs[6]),
			cost4(q, &ys[7], &vs[7]), list)
		if !ok {
			failed, win = true, 0
		}
		s.codes[g][t] = uint32(list[win])
	}
	return failed
}

// cost4 returns the costs of the levels of an element, which stand for q.
func cost4(q f32x4, y, v *[maxLanes]float32) u8x16 {
	d := q.Sub(archsimd.LoadFloat32x4Array((*[4]float32)(y[:4])))
	return archsimd.LoadFloat32x4Array((*[4]float32)(v[:4])).Mul(d).Mul(d).ToBits().ReshapeToUint8s()
}

// spread is spreadLanes.
func spread(s *gridLanes, y, w, v []float32) {
	if !tilesByNeon {
		spreadLanes(s, y, w, v)
		return
	}
	w, v = w[:len(y)], v[:len(y)]
	p0, p1 := archsimd.LoadUint8x16Array(&splatOf[0]), archsimd.LoadUint8x16Array(&splatOf[1])
	p2, p3 := archsimd.LoadUint8x16Array(&splatOf[2]), archsimd.LoadUint8x16Array(&splatOf[3])
	for i := 0; i+4 <= len(y); i += 4 {
		ey, ew := load4(y[i:i+4]), load4(w[i:i+4])
		ey.ToBits().StoreArray((*[4]uint32)(s.yBits[i:]))
		spread4((*[4][maxLanes]float32)(s.ys[i:]), ey.ToBits().ReshapeToUint8s(), p0, p1, p2, p3)
		spread4((*[4][maxLanes]float32)(s.ws[i:]), ew.ToBits().ReshapeToUint8s(), p0, p1, p2, p3)
		spread4((*[4][maxLanes]float32)(s.vs[i:]), load4(v[i:i+4]).ToBits().ReshapeToUint8s(), p0, p1, p2, p3)
		spread4((*[4][maxLanes]float32)(s.wys[i:]), ew.Mul(ey).ToBits().ReshapeToUint8s(), p0, p1, p2, p3)
	}
}

// spread4 stores each lane of e in all lanes.
func spread4(rows *[4][maxLanes]float32, e, p0, p1, p2, p3 u8x16) {
	e.LookupOrZero(p0).ReshapeToUint32s().BitsToFloat32().StoreArray((*[4]float32)(rows[0][:4]))
	e.LookupOrZero(p1).ReshapeToUint32s().BitsToFloat32().StoreArray((*[4]float32)(rows[1][:4]))
	e.LookupOrZero(p2).ReshapeToUint32s().BitsToFloat32().StoreArray((*[4]float32)(rows[2][:4]))
	e.LookupOrZero(p3).ReshapeToUint32s().BitsToFloat32().StoreArray((*[4]float32)(rows[3][:4]))
}

// roundRows is roundLanes.
func roundRows(s *gridLanes, dim, groups, n int) {
	switch {
	case tilesByNeon:
		roundNeon(s, dim, groups, n)
	default:
		roundLanes(s, dim, groups, n)
	}
}

func roundNeon(s *gridLanes, dim, groups, n int) {
	one := archsimd.BroadcastUint32x4(0x3F800000).BitsToFloat32()
	top := archsimd.BroadcastUint32x4(s.top).BitsToFloat32()
	half := archsimd.BroadcastUint32x4(0x4BC00000).BitsToFloat32() // see roundLanes8
	magic := archsimd.BroadcastUint32x4(0x43400001).BitsToFloat32()
	low := archsimd.BroadcastUint32x4(1<<17 - 1)
	// The sum of the parts of levels above their bits, times the powers of the factor.
	ranks, sums := uint32(6561), uint32((6561-1)/2)
	factor := archsimd.BroadcastUint32x4(3)
	if dim == 4 {
		ranks, sums = 4096, (4096-1)/7
		factor = archsimd.BroadcastUint32x4(8)
	}
	excess, most := archsimd.BroadcastUint32x4(sums*0x4BC00000), archsimd.BroadcastUint32x4(ranks-1)
	near := archsimd.BroadcastInt32x4(3)
	at := archsimd.BroadcastUint32x4(edge)
	for t := 0; t < n; t += 4 {
		id := archsimd.LoadUint32x4Array((*[4]uint32)(s.id[t:])).BitsToFloat32()
		for g := range groups {
			ys := s.ys[dim*g:][:dim]
			var r archsimd.Uint32x4
			least := low.BitsToInt32()
			for i := dim - 1; i > 0; i -= 2 {
				v := id.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(ys[i][:4]))).Max(one).Min(top)
				least = least.Min(v.Add(magic).ToBits().And(low).BitsToInt32())
				r = r.MulAdd(factor, v.Sub(one).Add(half).ToBits())
				v = id.Mul(archsimd.LoadFloat32x4Array((*[4]float32)(ys[i-1][:4]))).Max(one).Min(top)
				least = least.Min(v.Add(magic).ToBits().And(low).BitsToInt32())
				r = r.MulAdd(factor, v.Sub(one).Add(half).ToBits())
			}
			r.Sub(excess).Min(most).Or(at.Masked(least.Less(near))).StoreArray((*[4]uint32)(s.ranks[g][t:]))
		}
	}
}

// sumRows is sumLanes.
func sumRows(s *gridLanes, dim, groups, n int) {
	switch {
	case tilesByNeon && dim == 8:
		sumNeon8(s, groups, n)
	case tilesByNeon:
		sumNeon4(s, groups, n)
	default:
		sumLanes(s, dim, groups, n)
	}
}
