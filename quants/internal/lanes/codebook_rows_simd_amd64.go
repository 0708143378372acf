//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// Rounding, sums and tables with 256 bits, for package simd with 256 or 512: the versions of codebook_simd.go take two
// to three times as many instructions, half of them for addresses. Here arrays of a group are reached through pointers
// that are loaded: the compiler computes other addresses by separate instructions, unless the offset is a constant.

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
	if s.rows.dim == dim || !searchByAVX2 {
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

// sumAll reports whether all candidates are summed: with 256 bits and dimension 4 that is faster than finding the
// distinct ones, a third to a half of all.
func sumAll(dim int) bool { return searchByAVX2 && dim == 4 }

// roundRows is roundLanes.
func roundRows(s *gridLanes, dim, groups, n int) {
	switch {
	case searchByAVX2 && dim == 8:
		roundAVX2Dim8(s, groups, n)
	case searchByAVX2:
		roundAVX2Dim4(s, groups, n)
	default:
		roundLanes(s, dim, groups, n)
	}
}

// sumRows is sumLanes.
func sumRows(s *gridLanes, dim, groups, n int) {
	switch {
	case searchByAVX2 && dim == 8:
		sumAVX2Dim8(s, groups, n)
	case searchByAVX2:
		sumAVX2Dim4(s, groups, n)
	default:
		sumLanes(s, dim, groups, n)
	}
}

// largest is largestLanes.
func largest(s *gridLanes, size int) {
	if !searchByAVX2 {
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
