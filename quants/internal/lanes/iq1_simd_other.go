//go:build goexperiment.simd && go1.27 && !amd64 && !arm64

package lanes

func neighboursIQ1(*iq1Lanes, []uint16, []float32, []float32, int) bool { return false }

func cutsIQ1_S(l *iq1Lanes) { scanIQ1_S(l) }

func cutsIQ1_M(l *iq1Lanes) { scanIQ1_M(l) }

func sortKeys(keys []int32, pairs [][2]uint8, width int) { sortTile(keys, pairs, width) }
