//go:build goexperiment.simd && go1.27

package lanes

import (
	"math/bits"
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
)

// oddSquares are the squares of oddLevels.
var oddSquares = [2][8]float32{{1, 9, 25, 49, 1, 9, 25, 49}, {1, 9, 25, 49, 81, 121, 169, 225}}

// lastOf are the bits of the last of n candidates, by n.
var lastOf = func() (t [maxCandidates]uint32) {
	for n := range t {
		t[n] = 1 << n >> 1
	}
	return t
}()

// changes sets masks to the candidates t of n, by group, whose value is not that of t+1,
// and the last.
func changes(masks *[codebook.MaxGroups]uint32, rows *candidateRows, groups, n int) {
	if !nearByTable {
		changesScalar(masks, rows, groups, n)
		return
	}
	last := lastOf[n&(maxCandidates-1)]
	left := rows[:groups]
	for g := range masks[:groups] {
		r := &left[0] // see rowPointers
		left = left[1:]
		a := archsimd.LoadUint32x8Array((*[8]uint32)(r[0:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[1:]))).ToBits()
		b := archsimd.LoadUint32x8Array((*[8]uint32)(r[8:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[9:]))).ToBits()
		c := archsimd.LoadUint32x8Array((*[8]uint32)(r[16:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[17:]))).ToBits()
		d := archsimd.LoadUint32x8Array((*[8]uint32)(r[24:])).Equal(
			archsimd.LoadUint32x8Array((*[8]uint32)(r[25:]))).ToBits()
		masks[g] = ^(uint32(a)|uint32(b)<<8|uint32(c)<<16|uint32(d)<<24)&(last-1) | last
	}
}

// padLines are, by the number of points of a list modulo nearChunk, 0 for those of the last
// chunk and padLine for the rest.
var padLines = func() (t [nearChunk][nearChunk]uint32) {
	for n := 1; n < nearChunk; n++ {
		for i := n; i < nearChunk; i++ {
			t[n][i] = padLine
		}
	}
	return t
}()

// laneSign is -0.
var laneSign = [8]uint32{1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31, 1 << 31}

var laneInf = [8]uint32{0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000, 0x7F800000}

// chooseRuns sets the codes of the candidates of all runs.
func chooseRuns(dim int, s *gridLanes, points, one, more []uint16, n int) {
	if !nearByTable {
		chooseRunsLanes(dim, s, points, one, more)
		return
	}
	l := s.lines
	if dim == 8 {
		hard := settleAVX2Dim8(l, s, points, one, n)
		linesAVX2Dim8(l, s, points, more)
		chooseAVX2(l, s, points, l.hard[:hard])
	} else {
		hard := settleAVX2Dim4(l, s, points, one, n)
		linesAVX2Dim4(l, s, points, more)
		chooseAVX2(l, s, points, l.hard[:hard])
	}
	chooseAVX2(l, s, points, more)
}

// settleAVX2Dim8 sets the codes of the candidates of those runs, whose lists have no more than a
// chunk, if they have one point, and their chunk. The others are put into hard, whose length
// is returned. It stores codes for all candidates from the run on: the next runs of the group come
// later.
func settleAVX2Dim8(l *gridLines, s *gridLanes, points, runs []uint16, n int) (hard int) {
	for _, k := range runs {
		r := l.runAt[k&(maxRuns-1)]
		rows := s.rows.groups[r.group&7]
		ta, tb := rows.ta, rows.tb
		c := l.chunkAt[r.at&(maxChunks-1)]
		list := (*[8]uint16)(points[r.off:])
		if r.points == 1 && rows.bounded != 0 { // as most of them have
			fillAVX2(rows.codes, int(r.from&31), n, uint32(list[0])|r.flag)
			continue
		}
		p := archsimd.LoadUint16x8Array(list).ExtendToUint32()
		e := archsimd.LoadFloat32x8Array(&ta[0]).Permute(p)
		f := archsimd.LoadFloat32x8Array(&tb[0]).Permute(p)
		q := p.ShiftAllRight(2)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[1]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[1]).Permute(q))
		q = p.ShiftAllRight(4)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[2]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[2]).Permute(q))
		q = p.ShiftAllRight(6)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[3]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[3]).Permute(q))
		q = p.ShiftAllRight(8)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[4]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[4]).Permute(q))
		q = p.ShiftAllRight(10)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[5]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[5]).Permute(q))
		q = p.ShiftAllRight(12)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[6]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[6]).Permute(q))
		q = p.ShiftAllRight(14)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[7]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[7]).Permute(q))
		e = e.Max(archsimd.LoadUint32x8Array(&padLines[r.points&7]).BitsToFloat32())
		e.ToBits().StoreArray(&c.a)
		f.ToBits().StoreArray(&c.b)
		margin := archsimd.LoadFloat32x8Array((*[8]float32)(rows.margin[:8]))
		x := archsimd.BroadcastUint32x8(s.scale[r.from&31]).BitsToFloat32().Mul(e).Sub(f)
		z := archsimd.BroadcastUint32x8(s.scale[r.to&31]).BitsToFloat32().Mul(e).Sub(f)
		least := x.ConcatPermute128Scalars(0, 2, z).Min(x.ConcatPermute128Scalars(1, 3, z))
		least = least.Min(least.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		least = least.Min(least.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8()).Add(margin)
		left := ^x.Greater(least.ConcatPermute128Scalars(0, 0, least)).And(z.Greater(least.ConcatPermute128Scalars(1, 1,
			least))).ToBits()
		fillAVX2(rows.codes, int(r.from&31), n, uint32(list[bits.TrailingZeros8(left)&7])|r.flag)
		l.hard[hard&(maxRuns-1)] = k
		hard += int((uint32(left&(left-1)) + 255) >> 8)
	}
	return hard
}

// fillAVX2 sets the codes of the candidates from t on, of which there are n.
func fillAVX2(row *[2 * maxCandidates]uint32, t, n int, code uint32) {
	v := archsimd.BroadcastUint32x8(code)
	v.StoreArray((*[8]uint32)(row[t : t+8]))
	v.StoreArray((*[8]uint32)(row[t+8 : t+16]))
	v.StoreArray((*[8]uint32)(row[t+16 : t+24]))
	if n > 24 {
		v.StoreArray((*[8]uint32)(row[t+24 : t+32]))
	}
}

// linesAVX2Dim8 sets the chunks of those runs.
func linesAVX2Dim8(l *gridLines, s *gridLanes, points, runs []uint16) {
	for _, k := range runs {
		r := l.runAt[k&(maxRuns-1)]
		rows := s.rows.groups[r.group&7]
		ta, tb := rows.ta, rows.tb
		list := points[r.off:][:(int(r.points)+7)&^7]
		chunks := l.chunks[r.at:][:len(list)/8]
		for k := range chunks {
			c := &chunks[k]
			p := archsimd.LoadUint16x8Array((*[8]uint16)(list[8*k:])).ExtendToUint32()
			e := archsimd.LoadFloat32x8Array(&ta[0]).Permute(p)
			f := archsimd.LoadFloat32x8Array(&tb[0]).Permute(p)
			q := p.ShiftAllRight(2)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[1]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[1]).Permute(q))
			q = p.ShiftAllRight(4)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[2]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[2]).Permute(q))
			q = p.ShiftAllRight(6)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[3]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[3]).Permute(q))
			q = p.ShiftAllRight(8)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[4]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[4]).Permute(q))
			q = p.ShiftAllRight(10)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[5]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[5]).Permute(q))
			q = p.ShiftAllRight(12)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[6]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[6]).Permute(q))
			q = p.ShiftAllRight(14)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[7]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[7]).Permute(q))
			e.ToBits().StoreArray(&c.a)
			f.ToBits().StoreArray(&c.b)
		}
		end := &chunks[len(chunks)-1].a
		pad := archsimd.LoadUint32x8Array(&padLines[r.points&7]).BitsToFloat32()
		archsimd.LoadUint32x8Array(end).BitsToFloat32().Max(pad).ToBits().StoreArray(end)
	}
}

// settleAVX2Dim4 is settleAVX2Dim8 for codebooks of dimension 4.
func settleAVX2Dim4(l *gridLines, s *gridLanes, points, runs []uint16, n int) (hard int) {
	for _, k := range runs {
		r := l.runAt[k&(maxRuns-1)]
		rows := s.rows.groups[r.group&7]
		ta, tb := rows.ta, rows.tb
		c := l.chunkAt[r.at&(maxChunks-1)]
		list := (*[8]uint16)(points[r.off:])
		p := archsimd.LoadUint16x8Array(list).ExtendToUint32()
		e := archsimd.LoadFloat32x8Array(&ta[0]).Permute(p)
		f := archsimd.LoadFloat32x8Array(&tb[0]).Permute(p)
		q := p.ShiftAllRight(3)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[1]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[1]).Permute(q))
		q = p.ShiftAllRight(6)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[2]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[2]).Permute(q))
		q = p.ShiftAllRight(9)
		e = e.Add(archsimd.LoadFloat32x8Array(&ta[3]).Permute(q))
		f = f.Add(archsimd.LoadFloat32x8Array(&tb[3]).Permute(q))
		e = e.Max(archsimd.LoadUint32x8Array(&padLines[r.points&7]).BitsToFloat32())
		e.ToBits().StoreArray(&c.a)
		f.ToBits().StoreArray(&c.b)
		margin := archsimd.LoadFloat32x8Array((*[8]float32)(rows.margin[:8]))
		x := archsimd.BroadcastUint32x8(s.scale[r.from&31]).BitsToFloat32().Mul(e).Sub(f)
		z := archsimd.BroadcastUint32x8(s.scale[r.to&31]).BitsToFloat32().Mul(e).Sub(f)
		least := x.ConcatPermute128Scalars(0, 2, z).Min(x.ConcatPermute128Scalars(1, 3, z))
		least = least.Min(least.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
		least = least.Min(least.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8()).Add(margin)
		left := ^x.Greater(least.ConcatPermute128Scalars(0, 0, least)).And(z.Greater(least.ConcatPermute128Scalars(1, 1,
			least))).ToBits()
		fillAVX2(rows.codes, int(r.from&31), n, uint32(list[bits.TrailingZeros8(left)&7])|r.flag)
		l.hard[hard&(maxRuns-1)] = k
		hard += int((uint32(left&(left-1)) + 255) >> 8)
	}
	return hard
}

// linesAVX2Dim4 is linesAVX2Dim8 for codebooks of dimension 4.
func linesAVX2Dim4(l *gridLines, s *gridLanes, points, runs []uint16) {
	for _, k := range runs {
		r := l.runAt[k&(maxRuns-1)]
		rows := s.rows.groups[r.group&7]
		ta, tb := rows.ta, rows.tb
		list := points[r.off:][:(int(r.points)+7)&^7]
		chunks := l.chunks[r.at:][:len(list)/8]
		for k := range chunks {
			c := &chunks[k]
			p := archsimd.LoadUint16x8Array((*[8]uint16)(list[8*k:])).ExtendToUint32()
			e := archsimd.LoadFloat32x8Array(&ta[0]).Permute(p)
			f := archsimd.LoadFloat32x8Array(&tb[0]).Permute(p)
			q := p.ShiftAllRight(3)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[1]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[1]).Permute(q))
			q = p.ShiftAllRight(6)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[2]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[2]).Permute(q))
			q = p.ShiftAllRight(9)
			e = e.Add(archsimd.LoadFloat32x8Array(&ta[3]).Permute(q))
			f = f.Add(archsimd.LoadFloat32x8Array(&tb[3]).Permute(q))
			e.ToBits().StoreArray(&c.a)
			f.ToBits().StoreArray(&c.b)
		}
		end := &chunks[len(chunks)-1].a
		pad := archsimd.LoadUint32x8Array(&padLines[r.points&7]).BitsToFloat32()
		archsimd.LoadUint32x8Array(end).BitsToFloat32().Max(pad).ToBits().StoreArray(end)
	}
}

// laneSplat are the indices that give all lanes the value of one.
var laneSplat = func() (t [nearChunk][nearChunk]uint32) {
	for n := range t {
		for i := range t[n] {
			t[n][i] = uint32(n)
		}
	}
	return t
}()

// splatAt is where laneSplat is: see rowPointers.
var splatAt = &laneSplat

// chooseAVX2 sets the codes of the candidates of those runs, 8 candidates at a time. Points are
// permuted out of vectors: a broadcast from memory goes through registers that are spilled
// by legacy instructions. Of a chunk, which is the last point that was better than all before, 0 if none was.
func chooseAVX2(l *gridLines, s *gridLanes, points, runs []uint16) {
	inf := archsimd.LoadUint32x8Array(&laneInf).BitsToFloat32()
	splat := splatAt
	doubt := archsimd.LoadUint32x8Array(&laneUnsure)
	for _, k := range runs {
		r := l.runAt[k&(maxRuns-1)]
		rows := s.rows.groups[r.group&7]
		margin := archsimd.LoadFloat32x8Array((*[8]float32)(rows.margin[:8]))
		flag := archsimd.LoadUint32x8Array(&laneFlags[r.flag>>16&1])
		row := rows.codes
		for t := int(r.from); t <= int(r.to); t += 8 {
			scale := archsimd.LoadUint32x8Array((*[8]uint32)(s.scale[t&31:])).BitsToFloat32()
			best, second := inf, inf
			code := archsimd.Uint32x8{}
			chunk, list := r.at, points[r.off:]
			for left := int(r.points); left > 0; left -= 8 {
				c := l.chunkAt[chunk&(maxChunks-1)]
				a := archsimd.LoadUint32x8Array(&c.a).BitsToFloat32()
				b := archsimd.LoadUint32x8Array(&c.b).BitsToFloat32()
				before := best
				which := archsimd.Int32x8{}
				at := archsimd.LoadUint32x8Array(&splat[0])
				e := scale.Mul(a.Permute(at)).Sub(b.Permute(at))
				which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
				second = second.Min(e.Max(best))
				best = best.Min(e)
				at = archsimd.LoadUint32x8Array(&splat[1])
				e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
				which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
				second = second.Min(e.Max(best))
				best = best.Min(e)
				at = archsimd.LoadUint32x8Array(&splat[2])
				e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
				which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
				second = second.Min(e.Max(best))
				best = best.Min(e)
				at = archsimd.LoadUint32x8Array(&splat[3])
				e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
				which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
				second = second.Min(e.Max(best))
				best = best.Min(e)
				if left > 4 {
					at := archsimd.LoadUint32x8Array(&splat[4])
					e := scale.Mul(a.Permute(at)).Sub(b.Permute(at))
					which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
					second = second.Min(e.Max(best))
					best = best.Min(e)
					at = archsimd.LoadUint32x8Array(&splat[5])
					e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
					which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
					second = second.Min(e.Max(best))
					best = best.Min(e)
					at = archsimd.LoadUint32x8Array(&splat[6])
					e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
					which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
					second = second.Min(e.Max(best))
					best = best.Min(e)
					at = archsimd.LoadUint32x8Array(&splat[7])
					e = scale.Mul(a.Permute(at)).Sub(b.Permute(at))
					which = which.Max(at.BitsToInt32().And(e.Less(best).ToInt32x8()))
					second = second.Min(e.Max(best))
					best = best.Min(e)
				}
				p := archsimd.LoadUint16x8Array((*[8]uint16)(list)).ExtendToUint32().Permute(which.ToBits())
				code = p.IfElse(best.Less(before), code)
				chunk, list = chunk+1, list[8:]
			}
			sure := second.Greater(best.Add(margin))
			found := code.Or(flag)
			found = found.IfElse(sure, found.Or(doubt))
			dst := (*[8]uint32)(row[t&31:])
			lanes := archsimd.LoadInt32x8Array(&firstLanes[min(int(r.to)-t, 7)&7]).ToMask()
			found.IfElse(lanes, archsimd.LoadUint32x8Array(dst)).StoreArray(dst)
			l.doubts[r.group&7] |= uint32(^sure.ToBits() & lanes.ToBits())
		}
	}
}

var laneUnsure = [8]uint32{unsure, unsure, unsure, unsure, unsure, unsure, unsure, unsure}

// laneFlags are the flags of codes, by what a shortSpan has.
var laneFlags = [2][8]uint32{{}, {offGrid, offGrid, offGrid, offGrid, offGrid, offGrid, offGrid, offGrid}}

// firstLanes are masks of the lanes up to one.
var firstLanes = func() (t [8][8]int32) {
	for n := range t {
		for i := range n + 1 {
			t[n][i] = -1
		}
	}
	return t
}()

// splitSigns sets y to the magnitudes of x, and signs, by 8 elements.
func splitSigns(s *gridLanes, signs *[32]uint8, x []float32, even bool) {
	if !nearByTable {
		clearUpper()
		splitSignsScalar(s, signs, x, even)
		return
	}
	sign := archsimd.LoadUint32x8Array(&laneSign)
	for g := range signs {
		e := archsimd.LoadFloat32x8Array((*[8]float32)(x[8*g:]))
		y, w := (*[8]float32)(s.y[8*g:]), (*[8]float32)(s.w[8*g:])
		negative := e.ToBits().AsInt32x8().Less(archsimd.Int32x8{})
		// not of -0
		negative = negative.And(e.ToBits().ShiftAllLeft(1).Equal(archsimd.Uint32x8{}).ToInt32x8().Not().ToMask())
		b := negative.ToBits()
		flip := sign.Masked(negative)
		if even && b != codebook.Signs7[b&127] {
			c := archsimd.LoadFloat32x8Array(w).Mul(e).Mul(e)
			m := c.Min(c.ConcatPermute128Scalars(1, 0, c))
			m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(2, 3, 0, 1).AsFloat32x8())
			m = m.Min(m.AsUint32x8().PermuteScalarsGrouped(1, 0, 3, 2).AsFloat32x8())
			at := bits.TrailingZeros8(c.Equal(m).ToBits())
			if c.Equal(c).ToBits() != 0xFF { // a NaN, of infinite weights
				at = 8
			}
			if at == 8 {
				clearUpper()
				signs[g] = codebook.EvenSigns(y[:], x[8*g:][:8], w[:])
				continue
			}
			lane := archsimd.LoadUint32x8Array(&laneOnly[at&7])
			flip = flip.Xor(lane)
			b ^= bitOnly[at&7]
		}
		signs[g] = b
		e.ToBits().Xor(flip).BitsToFloat32().StoreArray(y)
	}
}

var bitOnly = [8]uint8{1, 2, 4, 8, 16, 32, 64, 128}

// laneOnly have -0 in one lane.
var laneOnly = func() (t [8][8]uint32) {
	for n := range t {
		t[n][n] = 1 << 31
	}
	return t
}()
