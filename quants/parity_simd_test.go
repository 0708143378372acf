//go:build goexperiment.simd && go1.27

package quants

import (
	"testing"

	"ggforge/quants/internal/lanes"
	"ggforge/quants/internal/widths"
)

func init() { spoilScratch = append(spoilScratch, lanes.Spoil) }

// TestWidths runs the tests of encoders at every vector width.
func TestWidths(t *testing.T) {
	widths.Run(t, "TestGolden|TestParity.*|.*Arch|TestRowsAreIndependent|TestConcurrentUse|FuzzParity.*|FuzzQuantize")
}

// TestWidth fails if a process started by TestWidths does not run at its vector width, or has no vector encoder.
func TestWidth(t *testing.T) {
	widths.Check(t)
	n := 0
	for _, typ := range codecTypes() {
		n += len(fasterCodecs(typ))
	}
	t.Logf("%d encoders compared", n)
	if n == 0 {
		t.Error("no vector encoder")
	}
}
