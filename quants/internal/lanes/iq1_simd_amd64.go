//go:build goexperiment.simd && go1.27

package lanes

// neighboursIQ1 sets the codes of the items to neighbours, and l.failed where one had no finite error. It reports
// whether it did.
func neighboursIQ1(l *iq1Lanes, items []uint16, x, w []float32, groups int) bool {
	if searchByAVX2 {
		neighboursIQ1AVX2(l, items, x, w, groups)
	}
	return searchByAVX2
}

// cutsIQ1_S is scanIQ1_S.
func cutsIQ1_S(l *iq1Lanes) {
	switch {
	case tilesByAVX2:
		scanIQ1_SAVX2(l)
	case tilesByAVX512:
		scanIQ1_SAVX512(l)
	default:
		scanIQ1_S(l)
	}
}

// cutsIQ1_M is scanIQ1_M.
func cutsIQ1_M(l *iq1Lanes) {
	switch {
	case tilesByAVX2:
		scanIQ1_MAVX2(l)
	case tilesByAVX512:
		scanIQ1_MAVX512(l)
	default:
		scanIQ1_M(l)
	}
}

func sortKeys(keys []int32, pairs [][2]uint8, width int) { sortTile(keys, pairs, width) }
