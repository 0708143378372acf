//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"simd"

	"ggforge/quants/internal/codebook"
)

// The choice among neighbours with vectors of 128 bits, of which one holds a chunk of codes,
// and no permutation: with amd64, and neighbours of dimension 4 with arm64, whose other steps are in
// codebook_simd_arm64.go and codebook_runs_simd_arm64.go.

// neighboursLanes is neighbours without a permutation. A lane has a point of even index, then that of odd
// index after it, and computes its values from its code: 9 operations for each element of 4
// points, where neighboursAVX2Dim8 and neighboursAVX2Dim4 take 3 for 8 points.
func neighboursLanes(cb *codebook.Codebook, lists *neighbourLists, s *gridLanes, items []uint16) (failed bool) {
	for _, item := range items {
		g, t := item>>8&(codebook.MaxGroups-1), item&(maxCandidates-1)
		span := lists.spans[s.ranks[g][t]]
		list := lists.codes[span.off:][:neighbourChunk*int(span.n)]
		if cb.Dim == 8 {
			neighboursLanes8(s, list, int(g), s.scale[t])
		} else {
			neighboursLanes4(s, list, int(g), s.scale[t])
		}
		// The first smallest. Sums are not negative, so their bits are in order.
		win := uint64(math.MaxUint64)
		for i, e := range s.least[:neighbourChunk/2] {
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

// evenFirst are the places of the points of a chunk of linesLanes8.
var evenFirst = [neighbourChunk]uint8{0, 4, 1, 5, 2, 6, 3, 7}

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
				c, at := &chunks[j/neighbourChunk], evenFirst[j%neighbourChunk]&(neighbourChunk-1)
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

// sumDoubts sets doubts to the doubts of all lanes together.
func sumDoubts(l *gridLines, width int) {
	for g := range l.doubts {
		for _, d := range l.doubtLanes[g][:width] {
			l.doubts[g] |= d
		}
	}
}
