package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	tool "ggforge/cmd/internal/cli"
	"ggforge/quantize"
)

//go:generate go run ggforge/test/gen/hints -i ../../docs/quality.md -o hints_gen.go

// divergence holds the KL divergences of a recipe in nats per token: plain (with an importance matrix where it needs
// one), and with --effort high. "" is not measured.
type divergence struct{ plain, high string }

// recipeColumn is the column where the description of a recipe begins.
const recipeColumn = 43

// recipeHelp lists the recipes with their bits per weight and losses.
func recipeHelp() string {
	var b strings.Builder
	b.WriteString("TYPE is one of these, in any case, or its number; bits are bits per weight, and * marks the " +
		"least loss with so many whole bits.\n\n" +
		"Loss: KL divergence of the model's predictions from those of the base; 0 is none.\n\n")
	marked := recommended()
	fmt.Fprintf(&b, "  %-10s %2s %5s  %8s %8s\n", "TYPE", "no", "bits", "loss", "high")
	for _, r := range bySize() {
		number, bits, d := fmt.Sprint(r.FileType), "", divergences[r.Name]
		if r.Copy || r.Own {
			number = ""
		}
		if r.BPW > 0 {
			bits = fmt.Sprintf("%.2f", r.BPW)
		}
		mark := " "
		if marked[r.Name] {
			mark = "*"
		}
		line := fmt.Sprintf("  %-9s%s %2s %5s  %8s %8s", r.Name, mark, number, bits, d.plain, d.high)
		for _, text := range tool.Wrap(r.Desc, tool.HelpColumns-recipeColumn) {
			fmt.Fprintf(&b, "%-*s%s\n", recipeColumn, line, text)
			line = ""
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lossHelp explains the columns of losses.
const lossHelp = "Losses are Kullback-Leibler divergences in nats per token, measured with " + measuredModel +
	", a small model (" + measuredText + "); high is that with " +
	"--calibrate and --effort high. Types without one were not measured; docs/quality.md has more."

// bySize returns the recipes by their bits, those without a number last.
func bySize() []*quantize.Recipe {
	list := slices.Clone(quantize.Recipes())
	slices.SortStableFunc(list, func(a, b *quantize.Recipe) int { return cmp.Compare(size(a), size(b)) })
	return list
}

func size(r *quantize.Recipe) float64 {
	if r.BPW == 0 {
		return math.Inf(1)
	}
	return r.BPW
}

// recommended returns the recipes with the smallest measured loss at each whole number of bits.
func recommended() map[string]bool {
	best, least := map[int]string{}, map[int]float64{}
	for _, r := range quantize.Recipes() {
		loss, err := strconv.ParseFloat(divergences[r.Name].plain, 64)
		if err != nil {
			continue // not measured
		}
		bits := int(r.BPW)
		if _, ok := best[bits]; !ok || loss < least[bits] {
			best[bits], least[bits] = r.Name, loss
		}
	}
	names := map[string]bool{}
	for _, name := range best {
		names[name] = true
	}
	return names
}
