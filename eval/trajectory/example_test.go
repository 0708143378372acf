package trajectory_test

import (
	"fmt"

	"ggforge/eval/trajectory"
)

// Of four paths of 32 tokens a model follows two to their end.
func ExampleFiguresOf() {
	f := trajectory.FiguresOf([]int{32, 32, 10, 0}, 32)
	fmt.Printf("%.2f %.1f\n", f.Whole.Mean, f.Length.Mean)
	// Output: 0.50 18.5
}
