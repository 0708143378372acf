package main

import (
	"fmt"
	"math"
	"slices"

	tool "ggforge/cmd/internal/cli"
	"ggforge/cmd/internal/page"
	"ggforge/eval"
	"ggforge/model"
)

// about returns the text and the cost of the run that a page shows.
func about(r pairsResult, c costResult) []page.Fact {
	facts := []page.Fact{{Name: "text", Value: page.Names(r.File)[0]},
		{Name: "chunks", Value: fmt.Sprintf("%d of %d tokens", r.Chunks, r.Chunk)}}
	if r.LossOf != "" {
		facts[1] = page.Fact{Name: "conversations", Value: fmt.Sprint(r.Conversations)}
	}
	if r.Stride > 0 {
		facts[1].Value += fmt.Sprintf(", %d apart", r.Stride)
	}
	predicted := fmt.Sprint(r.Predicted)
	if r.LossOf != "" {
		predicted += ": " + r.predictedOf()
	}
	return append(facts, page.Fact{Name: "tokens predicted", Value: predicted},
		page.Fact{Name: "run", Value: c.String()},
		page.Fact{Name: "program", Value: "ggeval " + tool.Version})
}

// perplexityPage returns the page of a model.
func perplexityPage(r *perplexityResult, m *model.Model, p *eval.Perplexity, run eval.Run) *page.Page {
	unit := "chunk"
	if run.Lengths != nil {
		unit = "conversation"
	}
	chunks := make([]float64, len(r.Running))
	values := make([]float64, len(r.Running))
	for i, v := range r.Running {
		chunks[i], values[i] = float64(i+1), float64(v)
	}
	edges, shares := histogram([][]float64{p.Losses}, lowLoss)
	name := page.Names(r.Model)[0]
	of := &page.Page{
		Title: "Perplexity of " + name,
		About: about(r.pairsResult, r.costResult),
		Parts: []page.Part{
			&page.Table{Title: "Figures", Note: "After ± is one standard error.",
				Head: []string{"model", "size", "bits per weight", "perplexity", "mean loss", "architecture"},
				Rows: [][]string{{name, tool.Bytes(m.Bytes), fmt.Sprintf("%.3f", m.BPW()),
					page.Perplexity(p.Value, p.Error), fmt.Sprintf("%.5f", float64(r.Loss)), r.Architecture}}},
			&page.Plot{Title: "Perplexity of the first " + unit + "s",
				Note: fmt.Sprintf("How the figure settles: over %s 1, %[1]ss 1 and 2, and so on.", unit),
				X:    page.Axis{Name: unit + "s"}, Y: page.Axis{Name: "perplexity"},
				Series: []page.Series{{Name: name, X: chunks, Y: values}}},
			&page.Plot{Title: "How often which loss",
				Note: "Shares of all tokens; the first step also has those that are lower.",
				X:    page.Axis{Name: "loss", Log: true}, Y: page.Axis{Name: "share", Zero: true},
				Series: []page.Series{{Name: name, Shape: page.Steps, X: edges, Y: shares[0]}}},
		},
	}
	if run.Lengths == nil { // chunks of one length
		x, y := byPosition(p.Losses, run)
		of.Parts = slices.Insert(of.Parts, 2, page.Part(&page.Plot{Title: "Loss by position",
			Note: "Mean of -ln p of the token at a position of the chunk, over all chunks, some positions together.",
			X:    page.Axis{Name: "position"}, Y: page.Axis{Name: "loss", Zero: true},
			Series: []page.Series{{Name: name, X: x, Y: y}}}))
	}
	of.Parts = slices.Insert(of.Parts, 1, categoryPart(r.Categories)...)
	if c := r.F16Cache; c != nil {
		of.Parts = slices.Insert(of.Parts, 1, page.Part(&page.Table{Title: "KV cache",
			Note: "Compared with the model with a cache of F16: the divergence of Kullback and Leibler, in nats; the ratio is " +
				"of perplexities. After ± is one standard error.",
			Head: []string{"cache", "divergence", "perplexity with F16", "ratio", "top 1"},
			Rows: [][]string{{r.Cache.String(), page.Divergence(float64(c.Divergence.Mean), float64(c.Divergence.Error)),
				page.Perplexity(float64(c.PPL), float64(c.Error)),
				page.PlusMinus("%.5f", 1, float64(c.Ratio.Mean), float64(c.Ratio.Error)),
				page.PlusMinus("%.2f", 100, float64(c.Top.Mean), float64(c.Top.Error)) + " %"}}}))
	}
	return of
}

// positions is the largest number of points, means over positions, in a plot.
const positions = 64

// byPosition returns the mean of values over all chunks for each predicted position, some positions together. values
// has the predicted positions of one chunk after the other.
func byPosition(values []float64, run eval.Run) (x, y []float64) {
	first := run.First
	if first == 0 {
		first = run.Chunk / 2
	}
	per := run.Chunk - 1 - first
	chunks := len(values) / per
	bins := min(per, positions)
	for b := range bins {
		from, to := b*per/bins, (b+1)*per/bins
		sum := 0.0
		for c := range chunks {
			for _, v := range values[c*per+from : c*per+to] {
				sum += v
			}
		}
		x = append(x, float64(first+1)+float64(from+to-1)/2)
		y = append(y, sum/float64(chunks*(to-from)))
	}
	return x, y
}

// The lowest edges of histograms. Divergences below about 1e-8 are noise of the float32 arithmetic.
const (
	lowLoss       = 1e-3
	lowDivergence = 1e-8
)

// perDecade is the number of steps of a histogram for a factor of ten.
const perDecade = 6

// histogram returns edges, and for each list the shares of its values between them. Values below the lowest edge
// count in the first step.
func histogram(lists [][]float64, low float64) (edges []float64, shares [][]float64) {
	most := low
	for _, values := range lists {
		most = max(most, slices.Max(values))
	}
	bin := func(v float64) int { return max(0, int(math.Floor(math.Log10(v/low)*perDecade))) }
	n := bin(most) + 1
	for i := range n + 1 {
		edges = append(edges, low*math.Pow(10, float64(i)/perDecade))
	}
	for _, values := range lists {
		share := make([]float64, n)
		for _, v := range values {
			i := 0
			if v > low {
				i = bin(v)
			}
			share[i] += 1 / float64(len(values))
		}
		shares = append(shares, share)
	}
	return edges, shares
}

// comparePage returns the page of models and their base.
func comparePage(r *compareResult, run eval.Run) *page.Page {
	figures := &page.Table{Title: "Figures",
		Note: "Divergence is that of Kullback and Leibler from the base, in nats; the ratio is of perplexities, to " +
			"the base's. After ± is one standard error.",
		Head: []string{"model", "size", "bits per weight", "divergence", "perplexity", "ratio"}}
	tokens := &page.Table{Title: "Tokens",
		Note: "Top 1: both find the same token the most probable; top 5: the share that the five most probable ones " +
			"have in common. Δp is the change of the probability of the right token, RMS its root mean square.",
		Head: []string{"model", "top 1", "top 5", "Δp", "RMS Δp"}}
	quantiles := &page.Table{Title: "Quantiles of the divergence",
		Note: "A share of the positions is as close to the base, or closer.", Head: []string{"model"}}
	median := slices.Index(eval.Ranks, 0.5) // those below tell little
	for _, rank := range eval.Ranks[median:] {
		name := fmt.Sprintf("%.4g %%", 100*rank)
		switch rank {
		case 0.5:
			name = "median"
		case 1:
			name = "largest"
		}
		quantiles.Head = append(quantiles.Head, name)
	}
	byPos := &page.Plot{Title: "Divergence by position",
		Note: "Mean over all chunks, by the position of the predicted token in its chunk, some positions together. " +
			"Less than 1e-8, the noise of float32, is shown as that.",
		X: page.Axis{Name: "position"}, Y: page.Axis{Name: "divergence", Log: true}}
	byLayer := &page.Plot{Title: "Error by layer",
		Note: "How far hidden states are from the base's, in relation to them: root of the mean square. 0 is the " +
			"embeddings, then what comes out of each layer.",
		X: page.Axis{Name: "layer"}, Y: page.Axis{Name: "relative error", Log: true}}
	often := &page.Plot{Title: "How often which divergence",
		Note: "Shares of all positions; the first step also has those that are lower.",
		X:    page.Axis{Name: "divergence", Log: true}, Y: page.Axis{Name: "share", Zero: true}}
	bySize := &page.Plot{Title: "Divergence by size", X: page.Axis{Name: "bits per weight"},
		Y: page.Axis{Name: "divergence", Log: true}}
	var all [][]float64
	for i := range r.Models {
		all = append(all, r.Models[i].found.Divergences)
	}
	edges, shares := histogram(all, lowDivergence)
	base, names := r.names()
	figures.Rows = [][]string{{base + " (base)", "", "", "",
		page.Perplexity(float64(r.Base.PPL), float64(r.Base.Error)), ""}}
	if r.Base.Architecture != "" { // a saved base has none
		figures.Rows[0][1], figures.Rows[0][2] = tool.Bytes(r.Base.Bytes), fmt.Sprintf("%.3f", r.Base.BPW)
	}
	for i := range r.Models {
		m, name := &r.Models[i], names[i]
		c := m.found
		figures.Rows = append(figures.Rows, []string{name, tool.Bytes(m.Bytes), fmt.Sprintf("%.3f", m.BPW),
			page.Divergence(c.Divergence.Mean, c.Divergence.Error),
			page.Perplexity(c.Model.Value, c.Model.Error),
			page.PlusMinus("%.5f", 1, float64(m.Ratio.Mean), float64(m.Ratio.Error))})
		tokens.Rows = append(tokens.Rows, []string{name, page.PlusMinus("%.2f", 100, c.Top.Mean, c.Top.Error) + " %",
			page.PlusMinus("%.2f", 100, c.Top5.Mean, c.Top5.Error) + " %",
			page.PlusMinus("%.3f", 100, c.DeltaP.Mean, c.DeltaP.Error) + " %",
			page.PlusMinus("%.3f", 100, c.DeltaPRMS.Mean, c.DeltaPRMS.Error) + " %"})
		row := []string{name}
		for _, q := range c.Quantiles[median:] {
			row = append(row, page.Small(q))
		}
		quantiles.Rows = append(quantiles.Rows, row)
		if run.Lengths == nil { // chunks of one length
			x, y := byPosition(c.Divergences, run)
			for k, v := range y {
				y[k] = max(v, lowDivergence)
			}
			byPos.Series = append(byPos.Series, page.Series{Name: name, X: x, Y: y})
		}
		layers := page.Series{Name: name, Shape: page.Dots}
		for k, d := range c.Layers {
			layers.X, layers.Y = append(layers.X, float64(k)), append(layers.Y, d.RMS)
		}
		byLayer.Series = append(byLayer.Series, layers)
		often.Series = append(often.Series, page.Series{Name: name, Shape: page.Steps, X: edges, Y: shares[i]})
		bySize.Series = append(bySize.Series, page.Series{Name: name, Shape: page.Alone, X: []float64{m.BPW},
			Y: []float64{max(c.Divergence.Mean, lowDivergence)}})
	}
	p := &page.Page{Title: "Compared with " + base, About: about(r.pairsResult, r.costResult),
		Parts: []page.Part{figures}}
	if len(r.Models) > 1 && slices.ContainsFunc(r.Models, func(m modelResult) bool {
		return m.Cache == nil || m.BPW != r.Models[0].BPW
	}) {
		p.Parts = append(p.Parts, bySize)
	}
	p.Parts = append(p.Parts, r.categoryPart(names)...)
	if byPos.Series != nil {
		p.Parts = append(p.Parts, byPos)
	}
	if slices.ContainsFunc(r.Models, func(m modelResult) bool { return m.found.Layers != nil }) {
		p.Parts = append(p.Parts, byLayer)
	}
	p.Parts = append(p.Parts, often, tokens, quantiles)
	return p
}

// names returns the names of the base and the models in a page, without folders.
func (r *compareResult) names() (base string, models []string) {
	paths := []string{r.Base.Model}
	for i := range r.Models {
		path := r.Models[i].Model
		if r.Models[i].Recipe != "" {
			path = r.Base.Model
		}
		paths = append(paths, path)
	}
	names := page.Names(paths...)
	for i := range r.Models {
		if recipe := r.Models[i].Recipe; recipe != "" {
			names[i+1] += " as " + recipe
		}
		names[i+1] += r.Models[i].Cache.named()
	}
	names[0] += r.Base.Cache.named()
	return names[0], names[1:]
}
