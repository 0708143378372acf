//go:build goexperiment.simd && go1.27 && !arm64 && !amd64

package lanes

import "ggforge/quants/internal/arith"

// roundRows is roundLanes8 or roundLanes4.
func roundRows(s *gridLanes, dim, groups, n int) {
	if dim == 8 {
		roundLanes8(s, groups, n)
	} else {
		roundLanes4(s, groups, n)
	}
}

// sumRows is sumLanes8 or sumLanes4.
func sumRows(s *gridLanes, dim, groups, n int) {
	if dim == 8 {
		sumLanes8(s, groups, n)
	} else {
		sumLanes4(s, groups, n)
	}
}

// rowPointers are none where arrays are reached without them.
type rowPointers struct{}

func (s *gridLanes) point(int) {}

func largest(s *gridLanes, size int) { largestLanes(s, size) }

// signsAndSum is splitSigns of x, all signs free, and arith.SumSquares.
func signsAndSum(s *gridLanes, signs *[32]uint8, x []float32) float32 {
	splitSigns(s, signs, x, false)
	clearUpper()
	return arith.SumSquares(x)
}

// sumAll: sums are of candidates that are not equal.
func sumAll(int) bool { return false }
