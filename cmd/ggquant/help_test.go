package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/quantize"
)

// TestTypesHelp checks that the help lists all types by their bits, marks a few of the measured ones, and explains
// the loss in a line.
func TestTypesHelp(t *testing.T) {
	short, all := must(t, "--help"), must(t, "--help-all")
	row := regexp.MustCompile(`(?m)^  ([A-Z0-9_]+) *(\*?) +(\d+ +)?(\d+\.\d\d) `)
	var bits []float64
	var marked []string
	rows := row.FindAllStringSubmatch(short, -1)
	for _, m := range rows {
		n, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		bits = append(bits, n)
		if m[2] != "" {
			marked = append(marked, m[1])
		}
	}
	if len(rows) != len(quantize.Recipes())-1 || !slices.IsSorted(bits) { // COPY has no bits
		t.Errorf("%d types with bits %v", len(rows), bits)
	}
	if want := []string{"IQ2_XS", "IQ3_XXS", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"}; !slices.Equal(marked, want) {
		t.Errorf("marked are %v, want %v", marked, want)
	}
	if strings.Count(short, "\nLoss: ") != 1 || !strings.Contains(all, measuredModel) {
		t.Error("the help does not explain the loss")
	}
	for _, flag := range []string{"--fuse-qkv", "--prune-layers", "--manifest"} {
		if strings.Contains(short, "  "+flag) || !strings.Contains(all, "  "+flag) {
			t.Errorf("%s: want it in --help-all only", flag)
		}
	}
	if !strings.Contains(all, "(also --split-max-size)") {
		t.Error("--help-all does not list the aliases of flags")
	}
}
