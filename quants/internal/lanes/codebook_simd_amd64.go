//go:build goexperiment.simd && go1.27

package lanes

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu"
	"ggforge/internal/kernel/lane"
	"ggforge/quants/internal/codebook"
)

// The choice among neighbours with 256 bits. The cost of an element has 3 or 8
// values, by level: a permutation of 8 lanes (VPERMPS) looks up those of 8 points
// at once, with the codes shifted so that the level is in the low bits. It takes 3
// bits: of dimension 8, whose levels have 2, the table is there twice. Package simd
// has no permutation, hence archsimd; at 128 bits there is neighboursLanes.
//
// Lists are whole here, so that each sum is the reference's. It gets the candidates that codebook_runs_simd.go is in
// doubt about, one to three of a group in a sub-block.

// Steps that are written for AVX2; see cpu.Machine.
var (
	searchByAVX2 = cpu.Here().UsesAVX2()
	tilesByAVX2  = cpu.Here().UsesAVX2() && lane.Width() == 8 // the lanes of searchAsymAVX2

	tilesByAVX512 = lane.Width() == 16 && archsimd.X86.AVX512()
)

// clearUpper ends a run of vector functions: the code after it has scalar floats, for which the compiler uses legacy
// SSE instructions. It uses some for moves next to vectors of 128 bits, too, which makes kernels of that width 20 times
// as slow once anything has used the upper halves, such as a preemption, which saves and restores them: so every
// encoder calls this about once per tile.
func clearUpper() { archsimd.ClearAVXUpperBits() }

// neighbours sets the codes of those items to the neighbours whose values fit
// y best. It reports whether any had no neighbour with a finite error.
func neighbours(cb *codebook.Codebook, lists *neighbourLists, s *gridLanes, items []uint16) (failed bool) {
	if !searchByAVX2 {
		return neighboursLanes(cb, lists, s, items)
	}
	valuesAVX2(s, items, cb.Dim)
	if cb.Dim == 8 {
		return neighboursAVX2Dim8(lists, s, items)
	}
	return neighboursAVX2Dim4(lists, s, items)
}

// oddLevels are the values of levels, twice those of dimension 8.
var oddLevels = [2][8]float32{{1, 3, 5, 7, 1, 3, 5, 7}, {1, 3, 5, 7, 9, 11, 13, 15}}

var laneIndex = [8]uint32{0, 1, 2, 3, 4, 5, 6, 7}
var laneCount = [8]uint32{8, 8, 8, 8, 8, 8, 8, 8}
var laneMax = [8]uint32{0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF, 0x7F7FFFFF}

// valuesAVX2 sets values to the values of levels, of the candidates of those items.
func valuesAVX2(s *gridLanes, items []uint16, dim int) {
	odd := archsimd.LoadFloat32x8Array(&oddLevels[(8-dim)/4])
	for _, item := range items {
		t := item & (maxCandidates - 1)
		archsimd.BroadcastUint32x8(s.scale[t]).BitsToFloat32().Mul(odd).StoreArray((*[8]float32)(s.values[t][:8]))
	}
}
