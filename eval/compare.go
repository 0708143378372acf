package eval

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ggforge/eval/logprobs"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// Figure is a mean with its standard error.
type Figure struct{ Mean, Error float64 }

// Comparison holds the divergence of a model from its base over one text.
type Comparison struct {
	Base, Model Perplexity
	// Divergence is the KL divergence KL(base ‖ model) = Σ p (ln p - ln q), in nats, over all
	// positions.
	Divergence Figure
	// Quantiles are those of the divergence, by Ranks.
	Quantiles []float64
	// Correlation is Pearson's, of the losses of both.
	Correlation float64
	// LogRatio is ln of the model's perplexity divided by the base's; its error is that of paired
	// losses.
	LogRatio Figure
	// DeltaP is the mean change of the probability of the correct token, DeltaPRMS the root of the mean of its square:
	// Δp of llama-perplexity.
	DeltaP, DeltaPRMS Figure
	// DeltaPQuantiles are those of Δp, by DeltaPRanks.
	DeltaPQuantiles []float64
	// Top is the share of positions where both find the same token the most probable, Top5
	// the share that the five most probable ones have in common.
	Top, Top5 Figure
	// Divergences has that of each position, chunk after chunk.
	Divergences []float64
	// Layers has the distances of hidden states from the base's: embeddings first, then the output of each layer. Nil
	// if the base has other layers, or none.
	Layers []Distance
}

// Distance is how far states x are from those of the base, b, over positions whose successors
// are predicted, and the last of each chunk: those at the beginning, where many models keep
// values a thousand times as large, would hide the others.
type Distance struct {
	RMS  float64 // root of Σ |x-b|² / Σ |b|²
	Mean Figure  // of |x-b| / |b|
}

// Ranks are the shares of positions that Comparison.Quantiles are for, DeltaPRanks those of
// Comparison.DeltaPQuantiles: the ones that llama-perplexity prints. The first is for the smallest of all, the last for
// the largest.
var (
	Ranks       = []float64{0, 0.01, 0.05, 0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1}
	DeltaPRanks = []float64{0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}
)

// Compare runs models over the same text as their base, and calls f with the divergence of each. Base and models go
// through the layers side by side, so that the states between layers are not stored. Memory: that of Forward once, and
// 4*width bytes for each token and model; if that is more than four gigabytes, chunks go through in several passes, for
// each of which the weights are read again.
func Compare(ctx context.Context, base *Model, models []*Model, r Run, f func(i int, c *Comparison) error) error {
	found, err := Measure(ctx, base, models, r, 0, r.Chunks())
	if err != nil {
		return err
	}
	return report(found, f)
}

// report calls f with the figures of each model.
func report(found []*Measured, f func(i int, c *Comparison) error) error {
	for i, x := range found {
		if err := f(i, x.Comparison()); err != nil {
			return err
		}
	}
	return nil
}

// Measure returns, for each model, the per-position results from which Compare computes its figures, for chunks [from,
// to) of the run only. The results of all chunks have the same bits however the chunks are split.
func Measure(ctx context.Context, base *Model, models []*Model, r Run, from, to int) ([]*Measured, error) {
	for _, m := range models {
		if err := m.comparable(base.p.vocab, base.source.Path); err != nil {
			return nil, err
		}
	}
	for _, m := range append([]*Model{base}, models...) {
		if err := r.checkPredicts(m); err != nil {
			return nil, err
		}
	}
	if err := r.selectChunks(base, from, to); err != nil {
		return nil, err
	}
	c := &comparison{sides: append([]*Model{base}, models...), r: r, workspace: newWorkspace(r.Workers),
		results: make([]*Measured, len(models))}
	for i := range c.results {
		c.results[i] = &Measured{chunks: to - from}
	}
	chunks, longest := r.Chunks(), r.Chunk
	for i := range r.Sources {
		longest = max(longest, r.Lengths[i]+len(r.Sources[i]))
	}
	per := max(1, tokensPerBlock/longest, streamBytes/(4*base.p.width*longest*len(c.sides)))
	for from := 0; from < chunks; from += per {
		if err := c.pass(ctx, from, min(from+per, chunks)); err != nil {
			return nil, err
		}
	}
	return c.results, nil
}

// streamBytes bounds the memory of streams side by side. Tests set it.
var streamBytes = 4 << 30

// comparison is a comparison in progress.
type comparison struct {
	sides     []*Model // the base first
	r         Run
	workspace *workspace
	results   []*Measured // by model
}

// pass runs all models over chunks [from, to).
func (c *comparison) pass(ctx context.Context, from, to int) error {
	r := c.r.chunks(from, to)
	r.Progress = nil
	streams, layers, runs := make([]*stream, len(c.sides)), 0, make([]*Run, len(c.sides))
	for k, m := range c.sides {
		own := r
		var err error
		if r.Sources != nil {
			if own.encoded, err = m.encode(ctx, &r); err != nil {
				return fmt.Errorf("%s: encoder: %w", m.source.Path, err)
			}
			m = m.decoder
		}
		if runs[k] = &own; err == nil {
			streams[k], err = m.newStream(ctx, []*Run{&own}, c.workspace)
		}
		if err != nil {
			return err
		}
		layers = max(layers, len(m.layers))
	}
	if err := c.layerDistances(streams, 0); err != nil {
		return err
	}
	before, share := float64(from)/float64(c.r.Chunks()), float64(to-from)/float64(c.r.Chunks())
	report := func(done float64) {
		if c.r.Progress != nil {
			c.r.Progress(Progress{Done: before + share*done})
		}
	}
	inside := c.sides[0].layerShare(&r) // the layers' share of the work
	for i := range layers {
		for k, s := range streams {
			if i >= len(s.m.layers) {
				continue
			}
			if err := s.runLayer(i, runs[k:k+1]); err != nil {
				return fmt.Errorf("%s: layer %d: %w", s.m.source.Path, i, err)
			}
			report(inside * float64(i*len(streams)+k+1) / float64(layers*len(streams)))
		}
		if err := c.layerDistances(streams, i+1); err != nil {
			return err
		}
	}
	states := make([]*States, len(streams))
	for k, s := range streams {
		var err error
		if states[k], err = s.finish(runs[k]); err != nil {
			return err
		}
	}
	found, err := comparePositions(ctx, states[0].output(ctx), states[1:],
		func(done float64) { report(inside + (1-inside)*done) })
	for k := range found {
		c.results[k].positions = append(c.results[k].positions, found[k]...)
	}
	return err
}

// layerDistances stores the distances of the models' streams from the base's before layer i, or
// after the last layer.
func (c *comparison) layerDistances(streams []*stream, i int) error {
	base := streams[0]
	for k, s := range streams[1:] {
		if s.m.p.width != base.m.p.width || len(s.m.layers) != len(base.m.layers) || len(s.h) != len(base.h) {
			continue
		}
		far := &c.results[k].layers
		if i == len(*far) {
			*far = append(*far, nil)
		}
		width, chunk, first := s.m.p.width, c.r.Chunk, c.r.First
		keep := chunk - first
		n := s.r.Chunks() * keep
		all := len(s.h) == len(s.r.Tokens)*width // or those that are wanted
		if s.r.Next != nil {
			n, all = len(s.r.Tokens), false
		}
		list := make([]stateDistance, n)
		scratch := make([][]float32, len(s.scratch))
		err := parallel.For(s.ctx, len(scratch), n, func(at, worker int) error {
			row := at
			if all {
				row = at/keep*chunk + first + at%keep
			}
			x, b, d := s.h[row*width:][:width], base.h[row*width:][:width], buffer.Resize(&scratch[worker], width)
			for j, v := range x {
				d[j] = v - b[j]
			}
			list[at] = stateDistance{vecmath.SumSquares(d, 0), vecmath.SumSquares(b, 0)}
			return nil
		})
		if err != nil {
			return err
		}
		(*far)[i] = append((*far)[i], list...)
	}
	return nil
}

// distance returns the figures of positions.
func distance(list []stateDistance) Distance {
	var square, base float64
	each := make([]float64, len(list))
	for i, a := range list {
		square += a.square
		base += a.base
		if a.square > 0 {
			each[i] = math.Sqrt(a.square / a.base)
		}
	}
	mean, margin := meanOf(each)
	d := Distance{Mean: Figure{mean, margin}}
	if square > 0 {
		d.RMS = math.Sqrt(square / base)
	}
	return d
}

// CompareSaved is Compare with probabilities that llama-perplexity has saved. r.Tokens are the tokens of the file's
// first chunks, as inputs of the models, and r.Chunk is the file's.
func CompareSaved(ctx context.Context, base *logprobs.File, models []*Model, r Run,
	f func(i int, c *Comparison) error) error {
	found, err := MeasureSaved(ctx, base, models, r, 0, len(r.Tokens)/max(1, r.Chunk))
	if err != nil {
		return err
	}
	return report(found, f)
}

// MeasureSaved is Measure for CompareSaved.
func MeasureSaved(ctx context.Context, base *logprobs.File, models []*Model, r Run, from, to int) ([]*Measured, error) {
	if r.First == 0 {
		r.First = base.First()
	}
	if r.Chunk != base.Chunk || r.First != base.First() || len(r.Tokens) > len(base.Tokens) ||
		len(r.Tokens)%r.Chunk != 0 {
		return nil, fmt.Errorf("eval: %d tokens in chunks of %d, predicted from position %d on: want those of %s",
			len(r.Tokens), r.Chunk, r.First, base.Path)
	}
	for i, id := range r.Tokens {
		if i%r.Chunk != 0 && id != base.Tokens[i] {
			return nil, fmt.Errorf("eval: token %d is %d, in %s it is %d", i, id, base.Path, base.Tokens[i])
		}
	}
	for _, m := range models {
		if err := m.comparable(base.Vocab, base.Path); err != nil {
			return nil, err
		}
	}
	var list []*Measured
	for _, m := range models {
		r := r
		if err := r.selectChunks(m, from, to); err != nil {
			return nil, err
		}
		x := &Measured{chunks: to - from}
		if from < to {
			other, err := m.forwardPredicting(ctx, &r)
			if err != nil {
				return nil, err
			}
			all, err := comparePositions(ctx, newSavedBase(ctx, base, from, &r), []*States{other}, func(float64) {})
			if err != nil {
				return nil, err
			}
			x.positions = all[0]
		}
		list = append(list, x)
	}
	return list, nil
}

// comparable returns an error if a model has other tokens than its base.
func (m *Model) comparable(vocab int, base string) error {
	if m.p.vocab != vocab {
		return fault.Errorf(fault.Refused, "%s has %d tokens and %s %d: their probabilities cannot be compared",
			m.source.Path, m.p.vocab, base, vocab)
	}
	return nil
}

// baseOutput is the prediction of a base for each position.
type baseOutput interface {
	// rowLogits prepares n rows from row from on, counted as those of States, and returns a
	// number for each token of each: ln of its probability up to a constant.
	rowLogits(from, n int) ([]float32, error)
	// probabilities sets e to the unnormalized probabilities of a row of rowLogits. ln of a probability is the row's
	// value less zero; a probability is e divided by sum.
	probabilities(e, row []float32) (zero, sum float64, err error)
}

// baseModel is the output of a model.
type baseModel struct {
	st *States
	*logitBlock
}

func (st *States) output(ctx context.Context) baseOutput { return baseModel{st, st.logitBlock(ctx)} }

func (c baseModel) rowLogits(from, n int) ([]float32, error) {
	err := c.logitBlock.compute(c.st, from, n)
	return c.logits, err
}

func (c baseModel) probabilities(e, row []float32) (zero, sum float64, err error) {
	zero, err = c.st.model.normalizer(e, row)
	return zero, vecmath.Sum(e), err
}

// savedBase is the output that llama-perplexity has saved.
type savedBase struct {
	ctx     context.Context
	file    *logprobs.File
	first   int // chunk of the file that the run begins with
	workers int
	values  []float32
	bufs    [][]byte
}

func newSavedBase(ctx context.Context, f *logprobs.File, first int, r *Run) *savedBase {
	n := max(1, r.Workers)
	return &savedBase{ctx: ctx, file: f, first: first, workers: n, values: make([]float32, logitBlockRows*f.Vocab),
		bufs: make([][]byte, n)}
}

func (s *savedBase) rowLogits(from, n int) ([]float32, error) {
	vocab, keep := s.file.Vocab, s.file.Rows()+1
	return s.values, parallel.For(s.ctx, s.workers, n, func(i, worker int) error {
		if chunk, at := (from+i)/keep, (from+i)%keep; at < s.file.Rows() {
			return s.file.Row(s.values[i*vocab:][:vocab], &s.bufs[worker], s.first+chunk, at)
		}
		return nil
	})
}

// probabilities leaves out tokens whose probability is not known, as llama-perplexity does.
func (s *savedBase) probabilities(e, row []float32) (zero, sum float64, err error) {
	vecmath.ExpOf.Apply(e, row)
	for i, v := range row {
		if v <= -16 {
			e[i] = 0
		}
	}
	return 0, 1, nil
}

// comparePositions returns the results at each position that predicts, for models with the same run. done is called
// with the share that is done.
func comparePositions(ctx context.Context, base baseOutput, others []*States,
	done func(float64)) ([][]positionResult, error) {
	per, _ := others[0].run.positions()
	all := make([][]positionResult, len(others))
	for k := range others {
		all[k] = make([]positionResult, per)
	}
	// Models that hold their output matrix go one after the other.
	for k := 0; k < len(others); {
		n := 1
		for !others[k].holdsOutput() && k+n < len(others) && !others[k+n].holdsOutput() {
			n++
		}
		before, share := float64(k)/float64(len(others)), float64(n)/float64(len(others))
		if err := compareTogether(ctx, base, others[k:k+n], all[k:k+n],
			func(x float64) { done(before + share*x) }); err != nil {
			return nil, err
		}
		k += n
	}
	return all, nil
}

// holdsOutput reports whether the rows of the output matrix are held while they are needed.
func (st *States) holdsOutput() bool {
	return st.Rows > logitBlockRows && st.model.costs[st.model.output.w] >= heldCost
}

func compareTogether(ctx context.Context, base baseOutput, others []*States, all [][]positionResult,
	done func(float64)) error {
	st := others[0]
	r, vocab := &st.run, st.model.p.vocab
	logits := make([]float32, min(logitBlockRows, st.Rows)*vocab)
	blocks := make([]*logitBlock, len(others))
	ws := newWorkspace(r.Workers)
	for k, other := range others {
		blocks[k] = other.logitBlockIn(ctx, ws, logits)
	}
	scratch := make([][]float32, max(1, r.Workers))
	for from := 0; from < st.Rows; from += logitBlockRows {
		n := min(logitBlockRows, st.Rows-from)
		p, err := base.rowLogits(from, n)
		if err != nil {
			return err
		}
		for k, other := range others {
			if err := blocks[k].compute(other, from, n); err != nil {
				return err
			}
			err := parallel.For(ctx, len(scratch), n, func(i, worker int) error {
				at, next := r.predicted(from + i)
				if at < 0 {
					return nil
				}
				d, err := other.model.comparePosition(base, buffer.Resize(&scratch[worker], 2*vocab),
					p[i*vocab:][:vocab],
					logits[i*vocab:][:vocab], next)
				all[k][at] = d
				return err
			})
			if err != nil {
				return err
			}
		}
		done(float64(from+n) / float64(st.Rows))
	}
	return nil
}

// comparePosition compares the logits q of a position with those of the base, p; next is the correct token.
func (m *Model) comparePosition(base baseOutput, scratch, p, q []float32, next int) (d positionResult, err error) {
	e, f := scratch[:len(p)], scratch[len(p):][:len(p)]
	zp, sum, err := base.probabilities(e, p)
	if err != nil {
		return d, err
	}
	zq, err := m.normalizer(f, q)
	if err != nil {
		return d, err
	}
	d.divergence = klDivergence(e, sum, p, q, zp, zq)
	d.base, d.model = zp-float64(p[next]), zq-float64(q[next])
	d.deltaP = vecmath.Exp64(-d.model) - vecmath.Exp64(-d.base)
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

// klDivergence returns KL(p ‖ q), in nats, of the probabilities of logits p and q. e are the former,
// unnormalized, and sum is their sum. zp and zq are the normalizers.
func klDivergence(e []float32, sum float64, p, q []float32, zp, zq float64) float64 {
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

func summarize(all []positionResult, chunks int) *Comparison {
	column := func(f func(d *positionResult) float64) []float64 {
		v := make([]float64, len(all))
		for i := range all {
			v[i] = f(&all[i])
		}
		return v
	}
	c := &Comparison{Divergences: column(func(d *positionResult) float64 { return d.divergence })}
	c.Base = Perplexity{Chunks: chunks, Predicted: len(all),
		Losses: column(func(d *positionResult) float64 { return d.base })}
	c.Model = Perplexity{Chunks: chunks, Predicted: len(all),
		Losses: column(func(d *positionResult) float64 { return d.model })}
	c.Base.sum()
	c.Model.sum()
	c.Divergence = FigureOf(c.Divergences)
	c.LogRatio = FigureOf(column(func(d *positionResult) float64 { return d.model - d.base }))
	c.DeltaP = FigureOf(column(func(d *positionResult) float64 { return d.deltaP }))
	squares, margin := meanOf(column(func(d *positionResult) float64 { return d.deltaP * d.deltaP }))
	if c.DeltaPRMS.Mean = math.Sqrt(squares); squares > 0 {
		c.DeltaPRMS.Error = margin / (2 * c.DeltaPRMS.Mean)
	}
	c.Top, c.Top5 = FigureOf(column(func(d *positionResult) float64 { return d.top })),
		FigureOf(column(func(d *positionResult) float64 { return d.top5 }))
	c.Correlation = correlation(c.Base.Losses, c.Model.Losses)
	c.Quantiles = quantiles(c.Divergences, Ranks)
	c.DeltaPQuantiles = quantiles(column(func(d *positionResult) float64 { return d.deltaP }), DeltaPRanks)
	return c
}

// correlation returns Pearson's correlation of paired values; not a number if either are all the same.
func correlation(a, b []float64) float64 {
	meanA, _ := meanOf(a)
	meanB, _ := meanOf(b)
	var ab, aa, bb float64
	for i := range a {
		x, y := a[i]-meanA, b[i]-meanB
		ab, aa, bb = ab+float64(x*y), aa+float64(x*x), bb+float64(y*y)
	}
	return ab / math.Sqrt(float64(aa*bb))
}

// quantiles returns the quantiles of values for each share in ranks.
func quantiles(values, ranks []float64) (list []float64) {
	sorted := slices.Sorted(slices.Values(values))
	for _, q := range ranks {
		list = append(list, quantile(sorted, q))
	}
	return list
}

// quantile returns the value that a share q of sorted values is not above; between two of
// them a mean of both.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	share := at - float64(i)
	return float64((1-share)*sorted[i]) + float64(share*sorted[min(i+1, len(sorted)-1)])
}
