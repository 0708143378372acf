package eval

import (
	"slices"
	"testing"

	"ggforge/arch/graph"
)

// TestChoose checks that experts with subnormal probabilities are still chosen in the order of their
// probabilities, and experts with probability 0 by index, as in the reference.
func TestChoose(t *testing.T) {
	x := &experts{score: graph.Softmax}
	for _, c := range []struct {
		logits []float32
		want   []int32
	}{
		{[]float32{0, -95, -90, -100}, []int32{0, 2, 1, 3}},
		{[]float32{-200, -150, 0, -100}, []int32{2, 3, 0, 1}},
	} {
		to := make([]choice, len(c.want))
		if err := x.choose(to, slices.Clone(c.logits)); err != nil {
			t.Fatal(err)
		}
		for i := range to {
			if to[i].expert != c.want[i] {
				t.Errorf("%v: choice %d is %d, want %d", c.logits, i, to[i].expert, c.want[i])
			}
		}
	}
}
