package main

import (
	"fmt"
	"strings"

	tool "ggforge/internal/cli"
	"ggforge/quantize"
)

//go:generate go run ggforge/internal/gen/hints -i ../../docs/quality.md -o hints_gen.go

// divergence is what a recipe loses, in nats for a token: as it is (with an importance matrix
// where it needs one), and with --effort high. "" is not measured.
type divergence struct{ plain, high string }

// recipeColumn is where the text about a recipe begins.
const recipeColumn = 42

// recipeHelp lists the recipes with their sizes and what they lose.
func recipeHelp() string {
	var b strings.Builder
	b.WriteString("TYPE is one of these, in any case, or its number. Bits are those for each weight, as the reference names them. " +
		"Loss is the Kullback-Leibler divergence that we have measured, in nats for a token, of a small model, " + measuredModel + " (" + measuredText + "); " +
		"high is that with --calibrate and --effort high. Where there is none, none was measured; docs/quality.md has more.\n\n")
	fmt.Fprintf(&b, "  %-9s %2s %5s  %8s %8s\n", "TYPE", "no", "bits", "loss", "high")
	for _, r := range quantize.Recipes() {
		number, bits, d := fmt.Sprint(r.FileType), "", divergences[r.Name]
		if r.Copy {
			number = ""
		}
		if r.BPW > 0 {
			bits = fmt.Sprintf("%.2f", r.BPW)
		}
		line := fmt.Sprintf("  %-9s %2s %5s  %8s %8s", r.Name, number, bits, d.plain, d.high)
		for _, text := range tool.Wrap(r.Desc, tool.HelpColumns-recipeColumn) {
			fmt.Fprintf(&b, "%-*s%s\n", recipeColumn, line, text)
			line = ""
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}
