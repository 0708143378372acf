//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"

	"ggforge/quants/internal/codebook"
)

// The choice among near points with vectors of 128 bits, of which one holds a chunk of codes,
// and no permutation: with amd64, and near points of dimension 4 with arm64, whose other steps are in
// codebook_simd_arm64.go and codebook_runs_simd_arm64.go.

// nearLanes is near without a permutation. A lane has a point of even index, then that of odd
// index after it, and computes its values from its code: 9 operations for each element of 4
// points, where nearAVX2Dim8 and nearAVX2Dim4 take 3 for 8 points.
func nearLanes(cb *codebook.Codebook, lists *nearLists, s *gridLanes, items []uint16) (failed bool) {
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

// marginLanes sets margin and vy.
func marginLanes(s *gridLanes, dim, groups int, smallest, largest, id uint32) {
	l := s.lines
	s1 := simd.BroadcastUint32s(largest).BitsToFloat32().Mul(simd.BroadcastUint32s(s.reach).BitsToFloat32())
	inf := simd.BroadcastUint32s(0x7F800000).BitsToFloat32()
	ids := simd.BroadcastUint32s(id).BitsToFloat32()
	rate := ids.Mul(simd.BroadcastUint32s(marginRate).BitsToFloat32())
	maxG := simd.BroadcastUint32s(marginMaxG).BitsToFloat32()
	minM := simd.BroadcastUint32s(marginMinM).BitsToFloat32()
	maxM := simd.BroadcastUint32s(marginMaxM).BitsToFloat32()
	scales := simd.BroadcastUint32s(smallest).BitsToFloat32().GreaterEqual(
		simd.BroadcastUint32s(marginMinS).BitsToFloat32())
	for g := range groups {
		ys, vs, vy := s.ys[dim*g:][:dim], s.vs[dim*g:][:dim], l.vy[dim*g:][:dim]
		var m, most simd.Float32s
		for i := range ys {
			y, v := simd.LoadFloat32s(ys[i][:]), simd.LoadFloat32s(vs[i][:])
			e := v.Mul(y)
			e.Add(e).Store(vy[i][:])
			e = y.Abs().Add(s1)
			most = most.Max(e)
			m = m.Add(v.Mul(e).Mul(e))
		}
		ok := scales.And(most.LessEqual(maxG)).And(most.Mul(ids).LessEqual(maxG)).And(m.GreaterEqual(minM)).And(
			m.LessEqual(maxM))
		m.Mul(rate).IfElse(ok, inf).Store(l.margin[g][:])
	}
}

// chooseRunsLanes is chooseRuns for any machine.
func chooseRunsLanes(dim int, s *gridLanes, points, one, more []uint16) {
	for _, runs := range [...][]uint16{one, more} {
		if dim == 8 {
			linesLanes8(s, points, runs)
		} else {
			linesLanes4(s, points, runs)
		}
	}
	chooseLanes(s)
}

// linesLanes8 sets the chunks of the runs, for vectors of 128 bits: of points of even index, then
// of odd index.
func linesLanes8(s *gridLanes, points, runs []uint16) {
	l := s.lines
	one, mask, low := simd.BroadcastUint32s(1), simd.BroadcastUint32s(6), simd.BroadcastUint32s(0xFFFF)
	for _, k := range runs {
		r := &l.runs[k&(maxRuns-1)]
		vs, vy := (*[8][maxLanes]float32)(s.vs[8*(r.group&3):]), (*[8][maxLanes]float32)(l.vy[8*(r.group&3):])
		list := points[r.off:][:(int(r.points)+nearChunk-1)&^(nearChunk-1)]
		chunks := l.chunks[r.at:][:len(list)/nearChunk]
		for k := range chunks {
			c := &chunks[k]
			p := simd.LoadUint16s(list[nearChunk*k:]).ReshapeToUint32s()
			p.And(low).Store(c.codes[:])
			p.ShiftAllRight(16).Store(c.codes[nearChunk/2:])
			lo, hi := p.ShiftAllLeft(1), p.ShiftAllRight(15)
			var a, b, e, f simd.Float32s
			for j := range vs {
				v, w := simd.LoadFloat32s(vs[j][:]), simd.LoadFloat32s(vy[j][:])
				q := lo.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				a = a.Add(v.Mul(q).Mul(q))
				b = b.Add(w.Mul(q))
				q = hi.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				e = e.Add(v.Mul(q).Mul(q))
				f = f.Add(w.Mul(q))
				lo, hi = lo.ShiftAllRight(2), hi.ShiftAllRight(2)
			}
			a.ToBits().Store(c.a[:])
			e.ToBits().Store(c.a[nearChunk/2:])
			b.ToBits().Store(c.b[:])
			f.ToBits().Store(c.b[nearChunk/2:])
		}
	}
}

// linesLanes4 is linesLanes8 for codebooks of dimension 4.
func linesLanes4(s *gridLanes, points, runs []uint16) {
	l := s.lines
	one, mask, low := simd.BroadcastUint32s(1), simd.BroadcastUint32s(14), simd.BroadcastUint32s(0xFFFF)
	for _, k := range runs {
		r := &l.runs[k&(maxRuns-1)]
		vs, vy := (*[4][maxLanes]float32)(s.vs[4*(r.group&7):]), (*[4][maxLanes]float32)(l.vy[4*(r.group&7):])
		list := points[r.off:][:(int(r.points)+nearChunk-1)&^(nearChunk-1)]
		chunks := l.chunks[r.at:][:len(list)/nearChunk]
		for k := range chunks {
			c := &chunks[k]
			p := simd.LoadUint16s(list[nearChunk*k:]).ReshapeToUint32s()
			p.And(low).Store(c.codes[:])
			p.ShiftAllRight(16).Store(c.codes[nearChunk/2:])
			lo, hi := p.ShiftAllLeft(1), p.ShiftAllRight(15)
			var a, b, e, f simd.Float32s
			for j := range vs {
				v, w := simd.LoadFloat32s(vs[j][:]), simd.LoadFloat32s(vy[j][:])
				q := lo.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				a = a.Add(v.Mul(q).Mul(q))
				b = b.Add(w.Mul(q))
				q = hi.And(mask).Or(one).BitsToInt32().ConvertToFloat32()
				e = e.Add(v.Mul(q).Mul(q))
				f = f.Add(w.Mul(q))
				lo, hi = lo.ShiftAllRight(3), hi.ShiftAllRight(3)
			}
			a.ToBits().Store(c.a[:])
			e.ToBits().Store(c.a[nearChunk/2:])
			b.ToBits().Store(c.b[:])
			f.ToBits().Store(c.b[nearChunk/2:])
		}
	}
}

// evenFirst are the places of the points of a chunk of linesLanes8.
var evenFirst = [nearChunk]uint8{0, 4, 1, 5, 2, 6, 3, 7}

// upTo are masks: those of the lanes up to i begin at maxLanes-1-i.
var upTo = func() (t [2 * maxLanes]uint32) {
	for i := range maxLanes {
		t[i] = unsure
	}
	return t
}()

// chooseLanes sets the codes of the candidates of all runs. Vectors go on after a run; the next
// of its group has its candidates later.
func chooseLanes(s *gridLanes) {
	l := s.lines
	inf := simd.BroadcastUint32s(0x7F800000).BitsToFloat32()
	doubt := simd.BroadcastUint32s(unsure)
	width := inf.Len()
	var any simd.Uint32s
	runs := l.runs[:l.found]
	for i := range runs {
		r := &runs[i]
		chunks := l.chunks[r.at:]
		margin := simd.LoadFloat32s(l.margin[r.group&(codebook.MaxGroups-1)][:])
		flag := simd.BroadcastUint32s(r.flag)
		row := &s.codes[r.group&(codebook.MaxGroups-1)]
		if r.from == 0 {
			any = simd.Uint32s{}
		}
		for t := int(r.from); t <= int(r.to); t += width {
			scale := simd.LoadUint32s(s.scale[t&(maxCandidates-1):]).BitsToFloat32()
			best, second := inf, inf
			code := flag.BitsToInt32()
			for j := range int(r.points) {
				c, at := &chunks[j/nearChunk], evenFirst[j%nearChunk]&(nearChunk-1)
				e := scale.Mul(simd.BroadcastUint32s(c.a[at]).BitsToFloat32()).Sub(
					simd.BroadcastUint32s(c.b[at]).BitsToFloat32())
				code = code.Max(simd.BroadcastUint32s(c.codes[at] | r.flag).BitsToInt32().And(e.Less(best).ToInt32s()))
				second = second.Min(e.Max(best))
				best = best.Min(e)
			}
			found := code.ToBits()
			found = found.IfElse(second.Greater(best.Add(margin)), found.Or(doubt))
			found.Store(row[t&(maxCandidates-1):])
			any = any.Or(found.And(simd.LoadUint32s(upTo[maxLanes-1-min(int(r.to)-t, maxLanes-1):])))
		}
		any.Store(l.doubtLanes[r.group&(codebook.MaxGroups-1)][:])
	}
	sumDoubts(l, width)
}

// sumDoubts sets doubts to what any lane has.
func sumDoubts(l *gridLines, width int) {
	for g := range l.doubts {
		for _, d := range l.doubtLanes[g][:width] {
			l.doubts[g] |= d
		}
	}
}
