//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package lanes

import (
	"ggforge/quants/internal/codebook"
)

func clearUpper() {}

func neighbours(cb *codebook.Codebook, lists *neighbourLists, s *gridLanes, items []uint16) (failed bool) {
	return neighboursLanes(cb, lists, s, items)
}

func lineTables(s *gridLanes, dim, groups int, smallest, largest, id uint32) {
	marginLanes(s, dim, groups, smallest, largest, id)
}

func chooseRuns(dim int, s *gridLanes, points, one, more []uint16, _ int) {
	chooseRunsLanes(dim, s, points, one, more)
}

func changes(masks *[codebook.MaxGroups]uint32, rows *candidateRows, groups, n int) {
	changesScalar(masks, rows, groups, n)
}

func splitSigns(s *gridLanes, signs *[32]uint8, x []float32, even bool) {
	splitSignsScalar(s, signs, x, even)
}

func spread(s *gridLanes, y, w, v []float32) { spreadLanes(s, y, w, v) }

func roundRows(s *gridLanes, dim, groups, n int) { roundLanes(s, dim, groups, n) }

func sumRows(s *gridLanes, dim, groups, n int) { sumLanes(s, dim, groups, n) }

// searchByAVX2: the functions with AVX2 in their names exist.
const searchByAVX2 = false
