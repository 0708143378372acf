package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/publish/card"
	"ggforge/publish/release"
)

// indexOf returns the page that compares the models of a release: divergence against size, and links to the pages.
func indexOf(_ context.Context, index release.Index) ([]byte, error) {
	entries := slices.Clone(index.Entries)
	slices.SortStableFunc(entries, func(a, b release.IndexEntry) int { return cmp.Compare(b.Bytes, a.Bytes) })
	results := cmp.Or(index.Results, new(card.Result))
	table := &page.Table{Title: "Models", Note: "Each name leads to a page about the model.",
		Head: []string{"file", "type", "size"}}
	unit, largest := "GB", int64(0)
	for _, e := range entries {
		largest = max(largest, e.Bytes)
	}
	scale := 1e9
	if largest < 1e9 {
		unit, scale = "MB", 1e6
	}
	series := map[string]*page.Series{}
	measured := false
	for _, e := range entries {
		m, ok := results.Files[path.Base(e.Path)]
		measured = measured || ok && m.Divergence != nil
	}
	if measured {
		table.Head = append(table.Head, "KL divergence, nats per token", "same most probable token", "perplexity")
	}
	for _, e := range entries {
		row := []string{path.Base(e.Path), e.Type, tool.Bytes(e.Bytes)}
		if m := results.Files[path.Base(e.Path)]; measured {
			divergence, top, ppl := "", "", ""
			if m.Divergence != nil {
				divergence = card.DivergenceText(*m.Divergence)
				if m.Divergence.Mean >= leastShown {
					of := series[family(e.Type)]
					if of == nil {
						of = &page.Series{Name: family(e.Type), Shape: page.Dots}
						series[of.Name] = of
					}
					of.X, of.Y = append(of.X, float64(e.Bytes)/scale), append(of.Y, m.Divergence.Mean)
					of.Labels = append(of.Labels, e.Type)
				}
			}
			if m.Top != nil {
				top = fmt.Sprintf("%.2f %%", 100*m.Top.Mean)
			}
			if m.PPL != nil {
				ppl = fmt.Sprintf("%.4f", m.PPL.Mean)
			}
			row = append(row, divergence, top, ppl)
		}
		table.Rows = append(table.Rows, row)
		table.Links = append(table.Links, linkTo(e.Page))
	}
	p := &page.Page{Title: index.Model + ": all files"}
	if measured {
		p.About = append(p.About, page.Fact{Name: "text", Value: results.Text},
			page.Fact{Name: "predicted tokens", Value: fmt.Sprint(results.Predicted)})
		plot := &page.Plot{Title: "Divergence against size",
			Note: "Lower is nearer to the model before quantization, further left is smaller. A dot shows its type.",
			X:    page.Axis{Name: "size, " + unit}, Y: page.Axis{Name: "KL divergence, nats per token", Log: true}}
		for _, name := range slices.Sorted(maps.Keys(series)) {
			plot.Series = append(plot.Series, *series[name])
		}
		p.Parts = append(p.Parts, plot)
	}
	p.Parts = append(p.Parts, table)
	var b bytes.Buffer
	if err := page.Write(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// leastShown is the least divergence in the plot, in nats per token: less is that of files that are not quantized.
const leastShown = 1e-6

// family returns the kind of types that a type belongs to.
func family(name string) string {
	switch {
	case strings.HasPrefix(name, "IQ"):
		return "IQ types"
	case strings.Contains(name, "_K"):
		return "K types"
	case strings.HasPrefix(name, "Q"):
		return "types of one scale for a block"
	}
	return "other types"
}

// linkTo returns the address of a page below the index.
func linkTo(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		parts = append(parts, url.PathEscape(part))
	}
	return "./" + strings.Join(parts, "/")
}
