package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/internal/parallel"
	"ggforge/internal/vecmath"
	"ggforge/logprobs"
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
		if err := m.comparable(base.p.vocab, base.source.Path); err != nil {
			return err
		}
	}
	states, err := base.predict(ctx, &r)
	if err != nil {
		return err
	}
	return compareEach(ctx, models, r, states.output(ctx), f)
}

// CompareSaved is Compare with probabilities that llama-perplexity has saved. r.Tokens are
// those of its first chunks, as the models see them, and r.Chunk is its own.
func CompareSaved(ctx context.Context, base *logprobs.File, models []*Model, r Run, f func(i int, c *Comparison) error) error {
	if r.Chunk != base.Chunk || len(r.Tokens) > len(base.Tokens) || len(r.Tokens)%r.Chunk != 0 {
		return fmt.Errorf("eval: %d tokens in chunks of %d, want those of %s", len(r.Tokens), r.Chunk, base.Path)
	}
	for i, id := range r.Tokens {
		if i%r.Chunk != 0 && id != base.Tokens[i] {
			return fmt.Errorf("eval: token %d is %d, in %s it is %d", i, id, base.Path, base.Tokens[i])
		}
	}
	for _, m := range models {
		if err := m.comparable(base.Vocab, base.Path); err != nil {
			return err
		}
	}
	return compareEach(ctx, models, r, newSaved(ctx, base, &r), f)
}

// comparable returns an error if a model has other tokens than its base.
func (m *Model) comparable(vocab int, base string) error {
	if m.p.vocab != vocab {
		return fault.Errorf(fault.Refused, "%s has %d tokens and %s %d: their probabilities cannot be compared", m.source.Path, m.p.vocab, base, vocab)
	}
	return nil
}

func compareEach(ctx context.Context, models []*Model, r Run, base output, f func(i int, c *Comparison) error) error {
	for i, m := range models {
		other, err := m.predict(ctx, &r)
		if err != nil {
			return err
		}
		c, err := compare(ctx, base, []*States{other})
		if err == nil {
			err = f(i, c[0])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// output is what a base says of each position.
type output interface {
	// rows prepares n rows from row from on, counted as those of States, and returns a
	// number for each token of each: ln of its probability but for a constant.
	rows(from, n int) ([]float32, error)
	// weigh sets e to probabilities but for a factor, by a row of rows. It returns what is to
	// be subtracted from the row for ln of probabilities, and what e is to be divided by.
	weigh(e, row []float32) (zero, sum float64, err error)
}

// computed is the output of a model.
type computed struct {
	st *States
	*block
}

func (st *States) output(ctx context.Context) output { return computed{st, st.block(ctx)} }

func (c computed) rows(from, n int) ([]float32, error) {
	err := c.block.rows(c.st, from, n)
	return c.logits, err
}

func (c computed) weigh(e, row []float32) (zero, sum float64, err error) {
	zero, err = c.st.model.normalizer(e, row)
	return zero, vecmath.Sum(e), err
}

// saved is an output that has been saved.
type saved struct {
	ctx     context.Context
	file    *logprobs.File
	workers int
	values  []float32
	bufs    [][]byte
}

func newSaved(ctx context.Context, f *logprobs.File, r *Run) *saved {
	n := max(1, r.Workers)
	return &saved{ctx: ctx, file: f, workers: n, values: make([]float32, logitRows*f.Vocab), bufs: make([][]byte, n)}
}

func (s *saved) rows(from, n int) ([]float32, error) {
	vocab, keep := s.file.Vocab, s.file.Rows()+1
	return s.values, parallel.For(s.ctx, s.workers, n, func(i, worker int) error {
		if chunk, at := (from+i)/keep, (from+i)%keep; at < s.file.Rows() {
			return s.file.Row(s.values[i*vocab:][:vocab], &s.bufs[worker], chunk, at)
		}
		return nil
	})
}

// weigh leaves out tokens whose probability is not known, as llama-perplexity does.
func (s *saved) weigh(e, row []float32) (zero, sum float64, err error) {
	vecmath.ExpOf.Apply(e, row)
	for i, v := range row {
		if v <= -16 {
			e[i] = 0
		}
	}
	return 0, 1, nil
}

// difference is what is found at a position.
type difference struct{ base, model, divergence, right, top, top5 float64 }

// compare compares what models with the same run say with their base.
func compare(ctx context.Context, base output, others []*States) ([]*Comparison, error) {
	st := others[0]
	r, vocab := &st.run, st.model.p.vocab
	keep := r.Chunk - r.First
	per := keep - 1
	chunks := len(r.Tokens) / r.Chunk
	all, blocks := make([][]difference, len(others)), make([]*block, len(others))
	for k, other := range others {
		all[k], blocks[k] = make([]difference, chunks*per), other.block(ctx)
	}
	scratch := make([][]float32, max(1, r.Workers))
	for from := 0; from < st.Rows; from += logitRows {
		n := min(logitRows, st.Rows-from)
		p, err := base.rows(from, n)
		if err != nil {
			return nil, err
		}
		for k, other := range others {
			b := blocks[k]
			if err := b.rows(other, from, n); err != nil {
				return nil, err
			}
			err := parallel.For(ctx, len(scratch), n, func(i, worker int) error {
				chunk, at := (from+i)/keep, (from+i)%keep
				if at == per {
					return nil
				}
				next := int(r.Tokens[chunk*r.Chunk+r.First+at+1])
				d, err := other.model.differ(base, grow(&scratch[worker], 2*vocab), p[i*vocab:][:vocab], b.logits[i*vocab:][:vocab], next)
				all[k][chunk*per+at] = d
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	found := make([]*Comparison, len(others))
	for k := range others {
		found[k] = summarize(all[k], chunks)
	}
	return found, nil
}

// differ compares the logits q of a position with what the base says, p; next is the right
// token.
func (m *Model) differ(base output, scratch, p, q []float32, next int) (d difference, err error) {
	e, f := scratch[:len(p)], scratch[len(p):][:len(p)]
	zp, sum, err := base.weigh(e, p)
	if err != nil {
		return d, err
	}
	zq, err := m.normalizer(f, q)
	if err != nil {
		return d, err
	}
	d.divergence = divergence(e, sum, p, q, zp, zq)
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

// divergence returns that of Kullback and Leibler, in nats, of the probabilities of logits p
// from those of q, where e are the former but for a factor and sum is their sum. zp and zq
// are what normalizer returns.
func divergence(e []float32, sum float64, p, q []float32, zp, zq float64) float64 {
	var sums [8]float64
	for i, v := range e {
		sums[i%8] += float64(float64(v) * ((float64(p[i]) - zp) - (float64(q[i]) - zq)))
	}
	for n := 4; n > 0; n /= 2 {
		for i := range n {
			sums[i] += sums[i+n]
		}
	}
	return sums[0] / sum
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
		c.Quantiles = append(c.Quantiles, quantile(sorted, q))
	}
	return c
}

// quantile returns the value that a share q of sorted values is not above; between two of
// them a mean of both.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	share := at - float64(i)
	return float64((1-share)*sorted[i]) + float64(share*sorted[min(i+1, len(sorted)-1)])
}
