package quants

import "testing"

// TestCosts checks that every type that can be made has a cost.
func TestCosts(t *testing.T) {
	for i := range registry {
		if c := &registry[i]; c.CanQuantize() && (c.Cost(false) <= 0 || c.Cost(true) < c.Cost(false)) {
			t.Errorf("%v: %d without importance, %d with", c.typ, c.Cost(false), c.Cost(true))
		}
	}
}
