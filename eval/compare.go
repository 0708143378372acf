package eval

import (
	"context"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/internal/parallel"
	"ggforge/internal/vecmath"
)

// Figure is a mean with its standard error.
type Figure struct{ Mean, Error float64 }

// Comparison is how far a model is from another one on a text: from its base.
type Comparison struct {
	Base, Model Perplexity
	// Divergence is that of Kullback and Leibler of the base's probabilities from the model's,
	// in nats, over all positions: Σ p (ln p - ln q).
	Divergence Figure
	// Quantiles are those of the divergence, by Ranks.
	Quantiles []float64
	// LogRatio is ln of the model's perplexity by the base's; its error is that of paired
	// losses.
	LogRatio Figure
	// Right is the change of the probability of the right token, and RightRMS the root of
	// the mean of its square.
	Right    Figure
	RightRMS float64
	// Top is the share of positions where both find the same token the most probable, Top5
	// the share that the five most probable ones have in common.
	Top, Top5 Figure
	// Divergences has that of each position, chunk after chunk.
	Divergences []float64
}

// Ranks are the shares of positions that Comparison.Quantiles are for; the last is the
// largest of all.
var Ranks = []float64{0.5, 0.9, 0.95, 0.99, 0.999, 1}

// Compare runs models over the same text as their base, and calls f with how far each is
// from it. The base is run once. Nothing but last states is kept: 4*width bytes for each
// position that is predicted, of the base and of one more model.
func Compare(ctx context.Context, base *Model, models []*Model, r Run, f func(i int, c *Comparison) error) error {
	for _, m := range models {
		if m.p.vocab != base.p.vocab {
			return fault.Errorf(fault.Refused, "%s has %d tokens and %s %d: their probabilities cannot be compared", m.source.Path, m.p.vocab, base.source.Path, base.p.vocab)
		}
	}
	states, err := base.predict(ctx, &r)
	if err != nil {
		return err
	}
	for i, m := range models {
		other, err := m.predict(ctx, &r)
		if err != nil {
			return err
		}
		c, err := states.compare(ctx, other)
		if err == nil {
			err = f(i, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// difference is what is found at a position.
type difference struct{ base, model, divergence, right, top, top5 float64 }

func (st *States) compare(ctx context.Context, other *States) (*Comparison, error) {
	r, vocab := &st.run, st.model.p.vocab
	keep := r.Chunk - r.First
	per := keep - 1
	chunks := len(r.Tokens) / r.Chunk
	all := make([]difference, chunks*per)
	a, b := st.block(ctx), other.block(ctx)
	scratch := make([][]float32, len(a.s.scratch))
	for from := 0; from < st.Rows; from += logitRows {
		n := min(logitRows, st.Rows-from)
		if err := a.rows(st, from, n); err != nil {
			return nil, err
		}
		if err := b.rows(other, from, n); err != nil {
			return nil, err
		}
		err := parallel.For(ctx, len(scratch), n, func(i, worker int) error {
			chunk, at := (from+i)/keep, (from+i)%keep
			if at == per {
				return nil
			}
			next := int(r.Tokens[chunk*r.Chunk+r.First+at+1])
			d, err := st.differ(other, grow(&scratch[worker], 2*vocab), a.logits[i*vocab:][:vocab], b.logits[i*vocab:][:vocab], next)
			all[chunk*per+at] = d
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return summarize(all, chunks), nil
}

// differ compares the logits of a position; next is the right token.
func (st *States) differ(other *States, scratch, p, q []float32, next int) (d difference, err error) {
	e, f := scratch[:len(p)], scratch[len(p):][:len(p)]
	zp, err := st.model.normalizer(e, p)
	if err != nil {
		return d, err
	}
	zq, err := other.model.normalizer(f, q)
	if err != nil {
		return d, err
	}
	d.divergence = divergence(e, p, q, zp, zq)
	d.base, d.model = zp-float64(p[next]), zq-float64(q[next])
	d.right = vecmath.Exp64(-d.model) - vecmath.Exp64(-d.base)
	tp, tq := top5(p), top5(q)
	if tp[0] == tq[0] {
		d.top = 1
	}
	for _, i := range tp {
		if slices.Contains(tq, i) {
			d.top5 += 1 / float64(len(tp))
		}
	}
	return d, nil
}

// divergence returns that of Kullback and Leibler of the probabilities of logits p from
// those of q, in nats. e and the others are what normalizer makes of them.
func divergence(e, p, q []float32, zp, zq float64) float64 {
	var sums [8]float64
	for i, v := range e {
		sums[i%8] += float64(float64(v) * ((float64(p[i]) - zp) - (float64(q[i]) - zq)))
	}
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0] / vecmath.Sum(e)
}

// top5 returns the places of the largest values, five or as many as there are, the
// largest first; of equal ones the first.
func top5(x []float32) []int {
	top := make([]int, 0, 6)
	for i, v := range x {
		if len(top) == 5 && v <= x[top[4]] {
			continue
		}
		at := len(top)
		for at > 0 && v > x[top[at-1]] {
			at--
		}
		top = slices.Insert(top, at, i)
		top = top[:min(5, len(top))]
	}
	return top
}

func summarize(all []difference, chunks int) *Comparison {
	column := func(f func(d *difference) float64) []float64 {
		v := make([]float64, len(all))
		for i := range all {
			v[i] = f(&all[i])
		}
		return v
	}
	figure := func(v []float64) Figure {
		mean, margin := meanOf(v)
		return Figure{mean, margin}
	}
	c := &Comparison{Divergences: column(func(d *difference) float64 { return d.divergence })}
	c.Base = Perplexity{Chunks: chunks, Predicted: len(all), Losses: column(func(d *difference) float64 { return d.base })}
	c.Model = Perplexity{Chunks: chunks, Predicted: len(all), Losses: column(func(d *difference) float64 { return d.model })}
	c.Base.sum()
	c.Model.sum()
	c.Divergence = figure(c.Divergences)
	c.LogRatio = figure(column(func(d *difference) float64 { return d.model - d.base }))
	c.Right = figure(column(func(d *difference) float64 { return d.right }))
	squares, _ := meanOf(column(func(d *difference) float64 { return d.right * d.right }))
	c.RightRMS = math.Sqrt(squares)
	c.Top, c.Top5 = figure(column(func(d *difference) float64 { return d.top })), figure(column(func(d *difference) float64 { return d.top5 }))
	sorted := slices.Sorted(slices.Values(c.Divergences))
	for _, q := range Ranks {
		c.Quantiles = append(c.Quantiles, sorted[int(q*float64(len(sorted)-1))])
	}
	return c
}
