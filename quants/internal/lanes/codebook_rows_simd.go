//go:build goexperiment.simd && go1.27 && !amd64

package lanes

import "ggforge/quants/internal/arith"

// rowPointers is empty: only the kernels of amd64 reach arrays through pointers.
type rowPointers struct{}

func (s *gridLanes) point(int) {}

// sumAll returns false: only distinct candidates are summed.
func sumAll(int) bool { return false }

func largest(s *gridLanes, size int) { largestLanes(s, size) }

// signsAndSum is splitSigns of x, all signs free, and arith.SumSquares.
func signsAndSum(s *gridLanes, signs *[32]uint8, x []float32) float32 {
	splitSigns(s, signs, x, false)
	clearUpper()
	return arith.SumSquares(x)
}
