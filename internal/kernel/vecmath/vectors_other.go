//go:build !goexperiment.simd || !go1.27

package vecmath

// There are no vectors in this build.
var expVectors, tanhVectors, erfVectors, sigmoidVectors, siluVectors, geluVectors, geluErfVectors, geluQuickVectors,
	reluVectors func(dst, src []float32) int

func addVectors(_, _ []float32) int                        { return 0 }
func mulVectors(_, _ []float32) int                        { return 0 }
func scaleVectors(_, _ []float32, _ uint32) int            { return 0 }
func addScaledVectors(_, _ []float32, _ uint32) int        { return 0 }
func addSquaresVectors(_, _ []float32) int                 { return 0 }
func combineVectors(_, _ []float32, _ int, _ []uint32) int { return 0 }
func combineAtVectors(_, _ []float32, _ int, _ []int32, _ []uint32) int {
	return 0
}
func roundVectors(_ *Rounding) int                           { return 0 }
func measureVectors(_ *Candidates, _ int, _, _ []uint32) int { return 0 }
func measureTries(_ *Tries, _ int) int                       { return 0 }
