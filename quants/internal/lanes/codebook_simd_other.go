//go:build goexperiment.simd && go1.27 && !amd64

package lanes

import (
	"ggforge/quants/internal/codebook"
)

func clearUpper() {}

func near(cb *codebook.Codebook, lists *nearLists, s *gridLanes, groups, n int) (failed bool) {
	one, more := s.sortByLength(lists, groups, n)
	failed = nearLanes(cb, lists, s, one)
	return nearLanes(cb, lists, s, more) || failed
}

func nearAVX2Dim8(*nearLists, *gridLanes, []uint16) (failed bool) { panic("quants: no AVX2") }

// nearByTable: there is nearAVX2Dim8.
const nearByTable = false
