package parts_test

import (
	"slices"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/parts"
)

// TestProjectors reads pairs that are not sorted: which tensors of the checkpoint go to
// which layer is up to their order, which the reference does not keep.
func TestProjectors(t *testing.T) {
	c, err := config.Parse(
		[]byte(`{"architectures": ["X"], "deepstack_layer_map": [[-1, 0], [-7, 3], [-3, -2]], "spatial_target_layers": [5, 1]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for reference, order := range map[bool][3]int64{false: {0, 1, 2}, true: {2, 0, 1}} {
		list, err := parts.Projectors(c.View(config.Options{Reference: reference}), 8)
		want := []parts.Projector{{-1, 0, false, order[0]}, {-1, 1, true, 1}, {-7, 3, false, order[1]},
			{-1, 5, true, 0}, {-3, 6, false, order[2]}}
		if err != nil || !slices.Equal(list, want) {
			t.Errorf("like the reference: %v: %v, %v, want %v", reference, list, err, want)
		}
	}
}
