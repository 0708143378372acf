//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
)

// Runs with archsimd, as with AVX2: runs that one point wins at both ends need no more. In dimension 8 the terms of a
// level in A and B are looked up: 4 values of 4 bytes are a table. Lists of one point have no lines, and of
// up to 4 half as many. Shifts are by vectors, which are made once: ShiftAllLeft and ShiftAllRight take four
// instructions.
//
// Instructions for a weight, with importance: IQ2_XXS 917 instead of 1555 (in scalar code 4189), IQ2_S 642 instead of
// 1209 (2875), IQ3_S 934 instead of 1649 (4538). Of those of IQ3_S runs take 44%, rounding 12%, sums 10%.

// lastOf are the bits of the last of n candidates, by n.
var lastOf = func() (t [maxCandidates]uint32) {
	for n := range t {
		t[n] = 1 << n >> 1
	}
	return t
}()

// maskBits are the bits of a mask for the lanes of four vectors.
var maskBits = [4][4]int32{{1, 2, 4, 8}, {16, 32, 64, 128}, {256, 512, 1024, 2048}, {4096, 8192, 16384, 32768}}

// changes sets masks to the candidates t of n, by group, whose value is not that of t+1,
// and the last.
func changes(masks *[codebook.MaxGroups]uint32, rows *candidateRows, groups, n int) {
	if !tilesByNeon {
		changesScalar(masks, rows, groups, n)
		return
	}
	last := lastOf[n&(maxCandidates-1)]
	for g := range groups {
		r := &rows[g]
		same := sameAsNext((*[17]uint32)(r[0:17]))
		if n > 16 {
			same |= sameAsNext((*[17]uint32)(r[16:33])) << 16
		}
		masks[g] = ^same&(last-1) | last
	}
}

// sameAsNext returns which of 16 values is the next, too, as bits.
func sameAsNext(r *[17]uint32) uint32 {
	a := archsimd.LoadUint32x4Array((*[4]uint32)(r[0:4])).Equal(
		archsimd.LoadUint32x4Array((*[4]uint32)(r[1:5]))).ToInt32x4()
	b := archsimd.LoadUint32x4Array((*[4]uint32)(r[4:8])).Equal(
		archsimd.LoadUint32x4Array((*[4]uint32)(r[5:9]))).ToInt32x4()
	c := archsimd.LoadUint32x4Array((*[4]uint32)(r[8:12])).Equal(
		archsimd.LoadUint32x4Array((*[4]uint32)(r[9:13]))).ToInt32x4()
	d := archsimd.LoadUint32x4Array((*[4]uint32)(r[12:16])).Equal(
		archsimd.LoadUint32x4Array((*[4]uint32)(r[13:17]))).ToInt32x4()
	a = a.And(archsimd.LoadInt32x4Array(&maskBits[0])).Or(b.And(archsimd.LoadInt32x4Array(&maskBits[1])))
	c = c.And(archsimd.LoadInt32x4Array(&maskBits[2])).Or(d.And(archsimd.LoadInt32x4Array(&maskBits[3])))
	return uint32(a.Or(c).ReduceSum())
}

// oddLevels are the values of levels in dimension 8, and oddSquares their squares.
var oddLevels, oddSquares = [4]float32{1, 3, 5, 7}, [4]float32{1, 9, 25, 49}

// lineTables sets the terms of lines, and margin, for scales from smallest to largest; id is the inverse of the
// smallest scale.
func lineTables(s *gridLanes, dim, groups int, smallest, largest, id uint32) {
	if !tilesByNeon {
		marginLanes(s, dim, groups, smallest, largest, id)
		return
	}
	l := s.lines
	odd, square := archsimd.LoadFloat32x4Array(&oddLevels), archsimd.LoadFloat32x4Array(&oddSquares)
	inf := archsimd.BroadcastUint32x4(0x7F800000).BitsToFloat32()
	s1 := archsimd.BroadcastUint32x4(largest).BitsToFloat32().Mul(archsimd.BroadcastUint32x4(s.reach).BitsToFloat32())
	ids := archsimd.BroadcastUint32x4(id).BitsToFloat32()
	rate := ids.Mul(archsimd.BroadcastUint32x4(marginRate).BitsToFloat32())
	maxG := archsimd.BroadcastUint32x4(marginMaxG).BitsToFloat32()
	minM := archsimd.BroadcastUint32x4(marginMinM).BitsToFloat32()
	maxM := archsimd.BroadcastUint32x4(marginMaxM).BitsToFloat32()
	scales := archsimd.BroadcastUint32x4(smallest).BitsToFloat32().GreaterEqual(
		archsimd.BroadcastUint32x4(marginMinS).BitsToFloat32())
	for g := range groups {
		var m, most f32x4
		if dim == 8 {
			for i := 8 * g; i < 8*g+8; i++ {
				y := archsimd.LoadFloat32x4Array((*[4]float32)(s.ys[i&31][:4]))
				v := archsimd.LoadFloat32x4Array((*[4]float32)(s.vs[i&31][:4]))
				v.Mul(square).StoreArray((*[4]float32)(l.ta[i&31][:4]))
				vy := v.Mul(y)
				vy.Add(vy).Mul(odd).StoreArray((*[4]float32)(l.tb[i&31][:4]))
				e := y.Abs().Add(s1)
				most = most.Max(e)
				m = m.Add(v.Mul(e).Mul(e))
			}
		} else {
			for i := 4 * g; i < 4*g+4; i++ {
				y := archsimd.LoadFloat32x4Array((*[4]float32)(s.ys[i&31][:4]))
				v := archsimd.LoadFloat32x4Array((*[4]float32)(s.vs[i&31][:4]))
				vy := v.Mul(y)
				vy.Add(vy).StoreArray((*[4]float32)(l.vy[i&31][:4]))
				e := y.Abs().Add(s1)
				most = most.Max(e)
				m = m.Add(v.Mul(e).Mul(e))
			}
		}
		ok := scales.And(most.LessEqual(maxG)).And(most.Mul(ids).LessEqual(maxG)).And(m.GreaterEqual(minM)).And(
			m.LessEqual(maxM))
		m.Mul(rate).IfElse(ok, inf).StoreArray((*[4]float32)(l.margin[g&7][:4]))
	}
}

// chooseRuns sets the codes of the candidates of all runs.
func chooseRuns(dim int, s *gridLanes, points, one, more []uint16, _ int) {
	l := s.lines
	if !tilesByNeon {
		chooseRunsLanes(dim, s, points, one, more)
		return
	}
	hard := settleNeon(dim, s, points, one)
	for _, k := range more {
		r := &l.runs[k&(maxRuns-1)]
		chunks := l.chunks[r.at:][:(int(r.points)+neighbourChunk-1)/neighbourChunk]
		for i := range chunks {
			linesNeon(dim, s, int(r.group), points[int(r.off)+neighbourChunk*i:], &chunks[i],
				uint(r.points)-neighbourChunk*uint(i))
		}
	}
	chooseNeon(l, s, l.hard[:hard])
	chooseNeon(l, s, more)
}

// padsOf are, by the number of points of a chunk, 0 for these and padLine for the rest.
var padsOf = func() (t [neighbourChunk + 1][neighbourChunk]uint32) {
	for n := range t {
		for i := n; i < neighbourChunk; i++ {
			t[n][i] = padLine
		}
	}
	return t
}()

// linesNeon sets a chunk, of a group: of n points, or more.
func linesNeon(dim int, s *gridLanes, group int, points []uint16, c *lineChunk, n uint) {
	l := s.lines
	p := archsimd.LoadUint16x8Array((*[8]uint16)(points))
	pads := &padsOf[min(n, neighbourChunk)]
	lo := p.ExtendLo4ToUint32()
	lo.StoreArray((*[4]uint32)(c.codes[:4]))
	if dim == 8 {
		codes := p.ReshapeToUint8s()
		ta, tb := (*[8][8]float32)(l.ta[8*(group&3):]), (*[8][8]float32)(l.tb[8*(group&3):])
		a, b := lines8Neon(ta, tb, codes.LookupOrZero(archsimd.LoadUint8x16Array(&spreadCodes[0])),
			codes.LookupOrZero(archsimd.LoadUint8x16Array(&spreadCodes[1])))
		a.Max(archsimd.LoadUint32x4Array((*[4]uint32)(pads[:4])).BitsToFloat32()).ToBits().StoreArray(
			(*[4]uint32)(c.a[:4]))
		b.ToBits().StoreArray((*[4]uint32)(c.b[:4]))
		if n <= 4 {
			return
		}
		a, b = lines8Neon(ta, tb, codes.LookupOrZero(archsimd.LoadUint8x16Array(&spreadCodes[2])),
			codes.LookupOrZero(archsimd.LoadUint8x16Array(&spreadCodes[3])))
		a.Max(archsimd.LoadUint32x4Array((*[4]uint32)(pads[4:])).BitsToFloat32()).ToBits().StoreArray(
			(*[4]uint32)(c.a[4:]))
		b.ToBits().StoreArray((*[4]uint32)(c.b[4:]))
		p.HiToLo().ExtendLo4ToUint32().StoreArray((*[4]uint32)(c.codes[4:]))
		return
	}
	vs, vy := (*[4][maxLanes]float32)(s.vs[4*(group&7):]), (*[4][maxLanes]float32)(l.vy[4*(group&7):])
	a, b := lines4Neon(vs, vy, lo)
	a.Max(archsimd.LoadUint32x4Array((*[4]uint32)(pads[:4])).BitsToFloat32()).ToBits().StoreArray((*[4]uint32)(c.a[:4]))
	b.ToBits().StoreArray((*[4]uint32)(c.b[:4]))
	if n <= 4 {
		return
	}
	hi := p.HiToLo().ExtendLo4ToUint32()
	hi.StoreArray((*[4]uint32)(c.codes[4:]))
	a, b = lines4Neon(vs, vy, hi)
	a.Max(archsimd.LoadUint32x4Array((*[4]uint32)(pads[4:])).BitsToFloat32()).ToBits().StoreArray((*[4]uint32)(c.a[4:]))
	b.ToBits().StoreArray((*[4]uint32)(c.b[4:]))
}

// levelShifts bring the level of an element of 4 to the second bit.
var levelShifts = [4][4]int32{{1, 1, 1, 1}, {-2, -2, -2, -2}, {-5, -5, -5, -5}, {-8, -8, -8, -8}}

// splatOf are the indices that give all lanes the value of one.
var splatOf = [4][16]uint8{
	{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, {4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7},
	{8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11, 8, 9, 10, 11},
	{12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15, 12, 13, 14, 15},
}

// leastNeon returns the least lane in all lanes.
func leastNeon(v f32x4) f32x4 {
	w := v.ToBits().ReshapeToUint8s()
	v = v.Min(w.ConcatShiftBytesRight(w, 8).ReshapeToUint32s().BitsToFloat32())
	w = v.ToBits().ReshapeToUint8s()
	return v.Min(w.ConcatShiftBytesRight(w, 4).ReshapeToUint32s().BitsToFloat32())
}

// settleNeon sets the codes of the candidates of those runs, whose lists have no more than a
// chunk, if they have one point, and their chunk. The others are put into hard, whose length
// is returned. It may store codes for three candidates after the run: the next runs of the group come
// later.
func settleNeon(dim int, s *gridLanes, points, runs []uint16) (hard int) {
	l := s.lines
	inf := archsimd.BroadcastUint32x4(0x7F800000).BitsToFloat32()
	first := archsimd.LoadUint8x16Array(&splatOf[0])
	lanes, lanes1 := archsimd.LoadInt32x4Array(&maskBits[0]), archsimd.LoadInt32x4Array(&maskBits[1])
	for _, k := range runs {
		r := &l.runs[k&(maxRuns-1)]
		n := uint(r.points)
		list := points[r.off:]
		margin := archsimd.LoadFloat32x4Array((*[4]float32)(l.margin[r.group&(codebook.MaxGroups-1)][:4]))
		from, to := int(r.from)&(maxCandidates-1), int(r.to)&(maxCandidates-1)
		won := uint(0)
		if n > 1 || margin.Less(inf).ToInt32x4().ReduceMax() == 0 {
			c := &l.chunks[r.at&(maxChunks-1)]
			linesNeon(dim, s, int(r.group), list, c, n)
			a, b := archsimd.LoadUint32x4Array((*[4]uint32)(c.a[:4])).BitsToFloat32(),
				archsimd.LoadUint32x4Array((*[4]uint32)(c.b[:4])).BitsToFloat32()
			s0 := archsimd.LoadUint32x4Array((*[4]uint32)(s.scale[from : from+4])).ReshapeToUint8s().LookupOrZero(
				first).ReshapeToUint32s().BitsToFloat32()
			s1 := archsimd.LoadUint32x4Array((*[4]uint32)(s.scale[to : to+4])).ReshapeToUint8s().LookupOrZero(
				first).ReshapeToUint32s().BitsToFloat32()
			x, z := s0.Mul(a).Sub(b), s1.Mul(a).Sub(b)
			beaten := uint32(0)
			if n <= 4 {
				mx, mz := leastNeon(x).Add(margin), leastNeon(z).Add(margin)
				beaten = uint32(x.Greater(mx).And(z.Greater(mz)).ToInt32x4().And(lanes).ReduceSum()) | 0xF0
			} else {
				a, b = archsimd.LoadUint32x4Array((*[4]uint32)(c.a[4:])).BitsToFloat32(),
					archsimd.LoadUint32x4Array((*[4]uint32)(c.b[4:])).BitsToFloat32()
				x1, z1 := s0.Mul(a).Sub(b), s1.Mul(a).Sub(b)
				mx, mz := leastNeon(x.Min(x1)).Add(margin), leastNeon(z.Min(z1)).Add(margin)
				beats := x.Greater(mx).And(z.Greater(mz)).ToInt32x4().And(lanes)
				beaten = uint32(beats.Or(x1.Greater(mx).And(z1.Greater(mz)).ToInt32x4().And(lanes1)).ReduceSum())
			}
			left := ^beaten & 0xFF
			if left&(left-1) != 0 {
				l.hard[hard&(maxRuns-1)] = k
				hard++
				continue
			}
			won = uint(bits.TrailingZeros8(uint8(left))) & 7
		}
		code := archsimd.BroadcastUint32x4(uint32((*[8]uint16)(list)[won]) | r.flag)
		row := &s.codes[r.group&(codebook.MaxGroups-1)]
		for t := from; t <= to; t += 4 {
			code.StoreArray((*[4]uint32)(row[t&(maxCandidates-1):]))
		}
	}
	return hard
}

// firstLanes are masks of the lanes up to one.
var firstLanes = [4][4]int32{{-1, 0, 0, 0}, {-1, -1, 0, 0}, {-1, -1, -1, 0}, {-1, -1, -1, -1}}
