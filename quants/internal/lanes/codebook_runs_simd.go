//go:build goexperiment.simd && go1.27

package lanes

import (
	"math"
	"math/bits"
	"slices"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/search"
)

// The choice among neighbours for all candidates of a sub-block at once. Neighbouring candidates mostly round a group
// to the same vector and so have the same list of near points: such a run of candidates is decided as a whole. The
// choice is that of codebook.Nearest for every candidate; where that is not certain, neighboursAgain computes it as the
// reference does. TestRandomParity (make parity-long) and TestTileNearTies compare.
//
// # Lines
//
// In a group of n elements y with weights v (n is 4 or 8), the point with the odd numbers q_k has
// at scale s the weighted error
//
//	f(s) = sum v_k*(s*q_k - y_k)^2 = s*(s*A - B) + C
//	A = sum v_k*q_k^2, B = sum 2*v_k*y_k*q_k, C = sum v_k*y_k^2
//
// with the floats v, y and s as they are. So h(s) = s*A - B has the order of f among points, and
// is a line. Point p beats another at s if the other's h, rounded, is more than margin above
// that of p, where margin is such that the reference's rounded sums have the same order:
//
// Let u = 2^-24, s0 and s1 the smallest and the largest scale of the candidates, D the largest
// difference between a level of a vector and of a point of its list, G_k = |y_k| + s1*(1 + 2*D)
// and M = sum v_k*G_k^2. As levels are the nearest ones, or the first or last, all of s*q_k, |y_k| and
// |s*q_k - y_k| are at most G_k.
//
//   - The reference rounds s*q_k, its difference d to y_k, v_k*d, the product by d and n-1 sums
//     of numbers that are not negative. d is off by at most 2uG_k, d*d by 4.1uG_k^2, a term by
//     6.2u*v_k*G_k^2 and the sum by (n + 5.3)uM.
//   - Here n+1 roundings at most are in each term of A and of B, and two more in h, of s*A and of h
//     itself, which is (f - C)/s. In all h is off by (n + 1)u(sum s*v_k*q_k^2 + 2*v_k*|y_k|*q_k) + 2uM/s,
//     which is at most (3n + 5)uM/s.
//
// With margin = 96uM/s0 two points at a scale s >= s0 differ by more than (96 - 2*(3n + 5))uM/s0 in
// h, and as s/s0 >= 1 by at least that times s0 in f: 38uM for n = 8, of which the reference's sums
// need 2*(n + 5.3)uM = 26.6uM, and for n = 4 it is 62uM of 18.6uM. The rest is more than
// the roundings of M and margin (20u of them) and of the comparison (2uM/s0).
//
// As h are lines, a point that p beats at both ends of an interval of scales p beats everywhere
// in it, with the same rest. Hence a run of which one point beats all others at both ends has
// that point (settleAVX2Dim8); in the others, every candidate is looked at (chooseAVX2,
// chooseLanes). And a scale between two candidates that have the same vector and
// the same point has these, too (refitLanes).
//
// Underflow and overflow are kept out: margin is +Inf, with which nothing is beaten, unless
// G_k <= 2^20, G_k/s0 <= 2^20, s0 >= 2^-30 and 2^-70 <= M <= 2^60. Then s*q_k is normal, products
// that underflow err by less than 2^-149, which factors d and s^2 make at most 2^-106 in all, far less
// than uM >= 2^-94, and nothing overflows. NaNs are not more than anything, so that they
// are never beaten and beat nothing. No sum of the reference is infinite then: such a group cannot fail.
//
// # Short lists
//
// A point e shadows a point c in the list of a vector if each level of e is that of the vector, that
// of c or between them. It is nearer to the vector, so it comes first. And if no element is
// next to the edge of its level, c costs at least as much in each element: an element where
// their levels differ is nearer to e's level than to c's, by s/2^16 or more, or both are on
// the same side of it; rounding keeps the order of products, differences and sums of numbers
// that are not negative. So c is never chosen, and short lists do not have it. Lists of
// IQ2_XS have 14 points instead of 56, of IQ2_XXS 15 of 33, of IQ3_S 6.6 of 11, of IQ3_XXS 5 of 7,
// as runs have them; of IQ2_S all.
//
// Levels are the reference's: for y*id from 1 to the largest, y*id - 1 is exact, and so is its half, which one addition
// rounds as the reference does. Next to an edge: edges are even numbers, in units of scale; y*id is off by 50u from y/s
// at most. roundLanes8 has it with 16 bits after the point, too, and marks values less than 1.5 units of the last bit
// from an edge. Such candidates, about one of a sub-block of IQ3 (where 15/top*max is an edge) and few otherwise,
// get the whole list of the vector. Its points need no more than margin.
//
// # Candidates that are equal
//
// Candidates whose groups all have the codes of the one before, on or off grid as there, have its
// sums, and nothing would change if they were chosen after it or not: sums are for the others, but where sumAll says.
//
// Counts for Gaussian elements, per sub-block: of 152 groups of candidates IQ3_S has 107 off
// grid, in 19 runs, of which 12 have one point; IQ3_XXS 201 of 248, 31, 21; IQ2_S 22 of 38,
// 3.6, 1.8; IQ2_XS 25 of 38, 4.3, 2.5; IQ2_XXS 41 of 52, 8, 5.8. Of the candidates 9 of 19, 13 of
// 31, 4 of 19, 3 of 19 and 4 of 13 have codes of their own.

// gridRun is a run of candidates that round a group to the same vector.
type gridRun struct {
	off      uint32 // of the points in shortLists.codes
	at       uint32 // of their lines in gridLines.chunks
	flag     uint32 // offGrid, or 0
	points   uint16
	group    uint8
	from, to uint8 // candidates, both included
}

const (
	// offGrid is set in codes of points that rounding did not give, unsure in those that
	// are not known to be the reference's.
	offGrid, unsure = 1 << 16, 1 << 17
	// edge is set in ranks if an element was next to the edge of its level. It is above all ranks.
	edge = 1 << 13

	// Bits of the bounds of the head of the file: 96u, 2^20, 2^-70, 2^60, 2^-30.
	marginRate, marginMaxG, marginMinM, marginMaxM, marginMinS = 0x36C00000, 0x49800000, 0x1C800000,
		0x5D800000, 0x30800000

	maxRuns = codebook.MaxGroups * maxCandidates
	// maxChunks bounds the chunks of a sub-block: there are at most 38 runs of 292 points in IQ2_XS,
	// 52 of 150 in IQ2_XXS and 248 of 36 in IQ3_XXS.
	maxChunks = 2048
)

// gridLines are the runs of a sub-block and the lines of their points, vectors first.
type gridLines struct {
	// By element: the terms of levels in A and B; twice those of dimension 8.
	ta, tb [search.MaxLen + 4][8]float32
	vy     [search.MaxLen][maxLanes]float32 // 2*v*y in all lanes, where there are no tables
	margin [codebook.MaxGroups][maxLanes]float32
	chunks [maxChunks]lineChunk

	doubtLanes [codebook.MaxGroups][maxLanes]uint32 // see chooseLanes
	doubts     [codebook.MaxGroups]uint32           // not 0: the group has unsure codes
	runs       [maxRuns]gridRun
	found      int             // runs
	hard       [maxRuns]uint16 // runs with several points, or maybe

	// Where these are: see rowPointers.
	runAt   [maxRuns]*gridRun
	chunkAt [maxChunks]*lineChunk
}

// newGridLines returns lines that have their pointers.
func newGridLines() *gridLines {
	l := new(gridLines)
	for i := range l.runAt {
		l.runAt[i] = &l.runs[i]
	}
	for i := range l.chunkAt {
		l.chunkAt[i] = &l.chunks[i]
	}
	return l
}

// lineChunk has the lines of some points: A and B, as bits, and the code.
type lineChunk struct{ a, b, codes [neighbourChunk]uint32 }

// padLine is put in place of A where a chunk has no point: no h is above its own.
const padLine = 0x7F7FFFFF // the largest float32

// shortSpan is where the list of a vector is in shortLists.codes.
type shortSpan struct {
	off    uint32
	points uint16
	flag   uint8 // 1: off grid
}

// shortLists are the lists of a codebook without points that others shadow, by rank, and with
// them, by rank|edge; those of points have only these.
type shortLists struct {
	reach uint32 // bits of 1 + twice the largest distance of a point from its vector, in levels
	spans [2 * edge]shortSpan
	codes []uint16 // and a chunk more
}

// shortened returns the short lists of a codebook.
func shortened(cb *codebook.Codebook, spans []neighbourSpan) *shortLists {
	s := new(shortLists)
	var left []uint32
	far := 0
	for rank := range spans {
		code := spans[rank].code
		list := cb.List(code)
		span := shortSpan{off: uint32(len(s.codes)), flag: 1}
		if len(list) == 0 {
			list, span.flag = []uint16{code}, 0
		}
		left = left[:0]
	points:
		for _, c := range list {
			far = max(far, farthest(cb, c, code))
			between := thermometer(cb, c) ^ thermometer(cb, code)
			for _, e := range left {
				if e&^between == 0 {
					continue points
				}
			}
			left = append(left, between)
			s.codes = append(s.codes, c)
		}
		span.points = uint16(len(left))
		slices.Sort(s.codes[span.off:])
		s.spans[rank] = span
		if len(left) < len(list) {
			span.off, span.points = uint32(len(s.codes)), uint16(len(list))
			s.codes = append(s.codes, list...)
			slices.Sort(s.codes[span.off:])
		}
		s.spans[edge|rank] = span
	}
	s.codes = append(s.codes, make([]uint16, neighbourChunk)...)
	s.reach = math.Float32bits(float32(1 + 2*far))
	return s
}

// farthest returns the largest difference of levels of one element.
func farthest(cb *codebook.Codebook, a, b uint16) (most int) {
	for k := range cb.Dim {
		mask := 1<<cb.Bits - 1
		d := int(a>>(cb.Bits*k))&mask - int(b>>(cb.Bits*k))&mask
		most = max(most, d, -d)
	}
	return most
}

// thermometer has as many bits set as the level has steps, for each element.
func thermometer(cb *codebook.Codebook, code uint16) (t uint32) {
	top := 2
	if cb.Dim == 4 {
		top = 7
	}
	for k := range cb.Dim {
		l := code >> (cb.Bits * k) & (1<<cb.Bits - 1)
		t |= (1<<l - 1) << (top * k)
	}
	return t
}

// neighboursOfRuns sets the codes of n candidates to those of the vectors of their ranks or, where
// these are no points, to the neighbours whose values fit y best, and offGrid with
// them. It reports whether any had no neighbour with a finite error.
func neighboursOfRuns(p *codebook.GridSearch, lists *neighbourLists, s *gridLanes, groups, n int) (failed bool) {
	one, more := s.findRuns(lists, groups, n)
	chooseRuns(p.Cb.Dim, s, lists.short.codes, one, more, n)
	any := uint32(0)
	for _, d := range s.lines.doubts[:groups] {
		any |= d
	}
	if any == 0 {
		return false
	}
	clearUpper()
	return neighboursAgain(p, lists, s, groups, n)
}

// neighboursAgain repeats the choice as the reference makes it, for candidates with unsure codes, of groups with
// doubts. edge is set in their ranks.
func neighboursAgain(p *codebook.GridSearch, lists *neighbourLists, s *gridLanes, groups, n int) (failed bool) {
	items := s.roundAgain(p, lists, groups, n)
	if len(items) > 0 {
		failed = neighbours(p.Cb, lists, s, items)
	}
	for _, item := range items {
		g, t := item>>8&(codebook.MaxGroups-1), item&(maxCandidates-1)
		s.codes[g][t] |= offGrid
		s.ranks[g][t] |= edge
	}
	return failed
}

// roundAgain rounds those groups as the reference does that are unsure, and returns those of
// them that are off grid, as group<<8 | candidate.
func (s *gridLanes) roundAgain(p *codebook.GridSearch, lists *neighbourLists, groups, n int) []uint16 {
	dim, top := p.Cb.Dim, int32(p.Top)>>1
	k := 0
	for g, d := range s.lines.doubts[:groups] {
		if d == 0 {
			continue
		}
		for t, code := range s.codes[g][:n] {
			if code&unsure == 0 {
				continue
			}
			var exact uint16
			for i := range dim {
				y := math.Float32frombits(s.yBits[dim*g+i])
				l := min(max(arith.RoundEven(0.5*(float32(math.Float32frombits(s.id[t])*y)-1)), 0), top)
				exact |= uint16(l) << (i * p.Cb.Bits)
			}
			rank := p.Cb.Rank(exact)
			s.ranks[g][t], s.codes[g][t] = uint32(rank), uint32(exact)
			if lists.spans[rank].n == 0 {
				s.ranks[g][t] |= edge
				continue
			}
			s.items[k&(maxRuns-1)] = uint16(g<<8 | t)
			k++
		}
	}
	return s.items[:k]
}

// findRuns sets runs and returns the numbers of those whose lists have no more than a chunk, and
// of the others. No branch depends on lengths, which are hard to predict.
func (s *gridLanes) findRuns(lists *neighbourLists, groups, n int) (one, more []uint16) {
	var masks [codebook.MaxGroups]uint32
	changes(&masks, &s.ranks, groups, n)
	spans, l := &lists.short.spans, s.lines
	clear(l.doubts[:])
	k, at, n1, n2 := 0, uint32(0), uint32(0), uint32(0)
	for g := range groups {
		ranks, from := &s.ranks[g], 0
		for m := masks[g]; m != 0; m &= m - 1 {
			to := bits.TrailingZeros32(m)
			span := &spans[ranks[to]&(2*edge-1)]
			r := l.runAt[k&(maxRuns-1)] // field by field: a struct is copied with legacy instructions
			r.off, r.at, r.flag = span.off, at, uint32(span.flag)*offGrid
			r.points, r.group, r.from, r.to = span.points, uint8(g), uint8(from), uint8(to)
			at += (uint32(span.points) + neighbourChunk - 1) / neighbourChunk
			s.one[n1&(maxRuns-1)] = uint16(k)
			s.items[n2&(maxRuns-1)] = uint16(k)
			long := (neighbourChunk - uint32(span.points)) >> 31
			n1 += 1 - long
			n2 += long
			from = to + 1
			k++
		}
	}
	l.found = k
	return s.one[:n1], s.items[:n2]
}

// changesScalar is changes without a way to make bits of a mask.
func changesScalar(masks *[codebook.MaxGroups]uint32, rows *candidateRows, groups, n int) {
	for g := range groups {
		row := rows[g][:n]
		m, last := uint32(0), row[0]
		for t, e := range row {
			d := e ^ last
			m |= (d | -d) >> 31 << t
			last = e
		}
		masks[g] = m>>1 | 1<<(n-1)
	}
}
