package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/urfave/cli/v3"

	"ggforge/eval"
	tool "ggforge/internal/cli"
	"ggforge/internal/page"
	"ggforge/model"
	"ggforge/writer"
)

// pageOutput is where a page with the figures goes.
type pageOutput struct {
	HTML  string // "" for nowhere
	Force bool
}

func pageFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "html", Usage: "write the figures with plots to `FILE`, too: a page that refers to nothing outside of it"},
		tool.ForceFlag(),
	}
}

// parsePage reads the flags of pageFlags.
func parsePage(cmd *cli.Command) (p pageOutput, err error) {
	p.Force = cmd.Bool("force")
	p.HTML, err = tool.File(cmd, "html")
	return p, err
}

// check refuses a page that could not be written; inputs are what it must not replace.
func (p *pageOutput) check(inputs []string) error {
	if p.HTML == "" {
		return nil
	}
	return writer.Writable(p.HTML, writer.Options{Force: p.Force, Inputs: inputs})
}

// write writes the page, if one is wanted.
func (p *pageOutput) write(ctx context.Context, inputs []string, content func() *page.Page) error {
	if p.HTML == "" {
		return nil
	}
	var b bytes.Buffer
	if err := page.Write(&b, content()); err != nil {
		return err
	}
	return writer.WriteBytes(ctx, p.HTML, b.Bytes(), writer.Options{Force: p.Force, Inputs: inputs})
}

// about says what the figures of a page are of.
func about(r textResult, c costResult) []page.Fact {
	facts := []page.Fact{{Name: "text", Value: r.File}, {Name: "chunks", Value: fmt.Sprintf("%d of %d tokens", r.Chunks, r.Chunk)}}
	if r.Stride > 0 {
		facts[1].Value += fmt.Sprintf(", %d apart", r.Stride)
	}
	return append(facts, page.Fact{Name: "tokens predicted", Value: fmt.Sprint(r.Predicted)}, page.Fact{Name: "run", Value: c.String()},
		page.Fact{Name: "program", Value: "ggeval " + tool.Version})
}

// perplexityPage is the page of a model.
func perplexityPage(r *perplexityResult, m *model.Model, p *eval.Perplexity, run eval.Run) *page.Page {
	x, y := byPosition(p.Losses, run)
	chunks := make([]float64, len(r.Running))
	values := make([]float64, len(r.Running))
	for i, v := range r.Running {
		chunks[i], values[i] = float64(i+1), float64(v)
	}
	edges, shares := histogram([][]float64{p.Losses}, lowLoss)
	return &page.Page{
		Title: "Perplexity of " + r.Model,
		About: about(r.textResult, r.costResult),
		Parts: []page.Part{
			&page.Table{Title: "Figures", Note: "After ± is one standard error.", Head: []string{"model", "perplexity", "mean loss", "architecture", "bits per weight", "size"},
				Rows: [][]string{{r.Model, plusMinus("%.4f", 1, p.Value, p.Error), fmt.Sprintf("%.5f", float64(r.Loss)), r.Architecture, fmt.Sprintf("%.3f", m.BPW()), tool.Bytes(m.Bytes)}}},
			&page.Plot{Title: "Perplexity of the first chunks", Note: "How the figure settles: over chunk 1, chunks 1 and 2, and so on.",
				X: page.Axis{Name: "chunks"}, Y: page.Axis{Name: "perplexity"}, Series: []page.Series{{Name: r.Model, X: chunks, Y: values}}},
			&page.Plot{Title: "Loss by position", Note: "Mean of -ln p of the token at a position of the chunk, over all chunks, some positions together.",
				X: page.Axis{Name: "position"}, Y: page.Axis{Name: "loss", Zero: true}, Series: []page.Series{{Name: r.Model, X: x, Y: y}}},
			&page.Plot{Title: "How often which loss", Note: "Shares of all tokens; the first step also has those that are lower.",
				X: page.Axis{Name: "loss", Log: true}, Y: page.Axis{Name: "share", Zero: true},
				Series: []page.Series{{Name: r.Model, Shape: page.Steps, X: edges, Y: shares[0]}}},
		},
	}
}

// positions is how many means of positions a plot has at most.
const positions = 64

// byPosition returns means of values, which are of the predicted positions chunk after
// chunk, by the positions of the predicted tokens.
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

// lowLoss is the lowest edge of a histogram of losses.
const lowLoss = 1e-3

// perDecade is how many steps a histogram has for a factor of ten.
const perDecade = 6

// histogram returns edges, and for each list the shares of its values between them. What
// is below the lowest edge is in the first step.
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

// plusMinus is a figure with its standard error, each times a factor.
func plusMinus(format string, factor, value, margin float64) string {
	return fmt.Sprintf(format+" ± "+format, factor*value, factor*margin)
}
