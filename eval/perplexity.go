package eval

import (
	"context"
	"math"
	"sort"
	"strings"

	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// Perplexity is how well a model predicts a text.
type Perplexity struct {
	Value, Error float64 // and one standard error
	Chunks       int
	Predicted    int       // tokens that were predicted
	Losses       []float64 // -ln of the probability of each, chunk after chunk
}

// Perplexity runs the model over chunks of tokens. Positions r.First to Chunk-2 of each
// predict their successors; without First, as in the reference's tool, the second half
// does. With r.Sources each position predicts the token of r.Next.
func (m *Model) Perplexity(ctx context.Context, r Run) (*Perplexity, error) {
	chunks := r.Chunks()
	losses, err := m.Losses(ctx, r, 0, chunks)
	if err != nil {
		return nil, err
	}
	return PerplexityOf(losses, chunks), nil
}

// Losses returns the Losses that Perplexity would have, of chunks [from, to) of the run only:
// those of all chunks, one after the other, have the same bits however they are split.
func (m *Model) Losses(ctx context.Context, r Run, from, to int) ([]float64, error) {
	return m.losses(ctx, r, from, to, func(int, []float32) {}, func(int) error { return nil })
}

// losses is Losses. row gets the logits of each predicting position, counted over the chunks [from, to), from several
// goroutines, and they are valid during the call; after is called with the number of positions at the beginning that
// row has had.
func (m *Model) losses(ctx context.Context, r Run, from, to int, row func(at int, logits []float32),
	after func(n int) error) ([]float64, error) {
	if err := r.selectChunks(m, from, to); err != nil {
		return nil, err
	}
	if from == to {
		return []float64{}, nil
	}
	states, err := m.forwardPredicting(ctx, &r)
	if err != nil {
		return nil, err
	}
	n, ends := r.positions()
	extra := 0 // rows of a chunk that predict nothing
	if r.Next == nil {
		extra = 1
	}
	losses := make([]float64, n)
	err = states.logits(ctx, func(i int, logits []float32) error {
		at, next := r.predicted(i)
		if at < 0 {
			return nil
		}
		row(at, logits)
		loss, err := states.model.loss(logits, next)
		losses[at] = loss
		return err
	}, func(rows int) error {
		chunks := sort.Search(len(ends), func(i int) bool { return ends[i]+extra*(i+1) > rows })
		if chunks > 0 && r.Progress != nil {
			value, _ := meanOf(losses[:ends[chunks-1]])
			share := m.layerShare(&r)
			r.Progress(Progress{Done: share + (1-share)*float64(rows)/float64(states.Rows), Chunks: chunks,
				Value: vecmath.Exp64(value)})
		}
		return after(rows - extra*chunks)
	})
	return losses, err
}

// PerplexityOf returns the figures of the losses of so many chunks, one after the other.
func PerplexityOf(losses []float64, chunks int) *Perplexity {
	p := &Perplexity{Chunks: chunks, Predicted: len(losses), Losses: losses}
	p.sum()
	return p
}

// checkPredicts sets First if it is not set, and returns an error if there is nothing to predict, or
// the model predicts nothing.
func (r *Run) checkPredicts(m *Model) error {
	if r.Sources != nil {
		if err := r.checkSources(m); err != nil {
			return err
		}
		if len(r.Next) < 2 {
			return fault.Errorf(fault.Refused, "targets of %d tokens, want at least two to predict", len(r.Next))
		}
		return nil
	}
	if err := m.checkPredicts(); err != nil {
		return err
	}
	if r.First == 0 {
		r.First = r.Chunk / 2
	}
	if r.Chunk < 4 || len(r.Tokens) < r.Chunk || len(r.Tokens)/r.Chunk*(r.Chunk-1-r.First) < 2 {
		return fault.Errorf(fault.Refused,
			"a text of %d tokens, want at least one chunk of %d, and two tokens to predict", len(r.Tokens), r.Chunk)
	}
	return nil
}

// checkPredicts returns an error if the model does not predict tokens.
func (m *Model) checkPredicts() error {
	if m.Predicts() {
		return nil
	}
	if m.Decodes() {
		return fault.Errorf(fault.Refused,
			"%s: this %q is an encoder-decoder: it predicts a text for a source, not a text alone; want both",
			m.source.Path, m.p.arch)
	}
	return fault.Errorf(fault.Unsupported,
		"%s: this %q is an encoder (bidirectional attention): it predicts no tokens; use it for embeddings",
		m.source.Path, m.p.arch)
}

// selectChunks makes r a run over its chunks [from, to) only. It returns an error as checkPredicts does,
// about the whole run.
func (r *Run) selectChunks(m *Model, from, to int) error {
	if err := r.checkPredicts(m); err != nil {
		return err
	}
	if from < 0 || to < from || to > r.Chunks() {
		return fault.Errorf(fault.Usage, "chunks %d to %d of %d", from, to, r.Chunks())
	}
	*r = r.chunks(from, to)
	return nil
}

// predict runs the model for the positions of each chunk whose successors are predicted.
func (m *Model) predict(ctx context.Context, r *Run) (*States, error) {
	if err := r.checkPredicts(m); err != nil {
		return nil, err
	}
	return m.forwardPredicting(ctx, r)
}

// forwardPredicting is predict without its check.
func (m *Model) forwardPredicting(ctx context.Context, r *Run) (*States, error) {
	run := *r
	if r.Progress != nil {
		share := m.layerShare(r)
		run.Progress = func(p Progress) {
			p.Done *= share
			r.Progress(p)
		}
	}
	return m.Forward(ctx, run)
}

// layerShare returns about the share of the layers in the work of predicting; the rest is the
// output matrix's. It counts weights.
func (m *Model) layerShare(r *Run) float64 {
	var layers float64
	used := 1.0 // the share of the experts that a token takes
	for x := range m.experts() {
		used = float64(x.used) / float64(x.n)
	}
	for i := range m.source.Tensors {
		x := &m.source.Tensors[i]
		if !strings.Contains("."+x.Name, ".blk.") || len(x.NE) < 2 {
			continue
		}
		n := float64(x.Elements())
		if len(x.NE) == 3 {
			n *= used
		}
		layers += n
	}
	output := float64(m.p.width) * float64(m.p.vocab) * float64(r.Chunk-r.First) / float64(r.Chunk)
	return layers / (layers + output)
}

// sum computes the figures of the losses.
func (p *Perplexity) sum() {
	mean, margin := meanOf(p.Losses)
	p.Value = vecmath.Exp64(mean)
	p.Error = p.Value * margin
}

// meanOf returns the mean of values and its standard error.
func meanOf(values []float64) (mean, margin float64) {
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += float64(v * v)
	}
	n := float64(len(values))
	mean = sum / n
	return mean, math.Sqrt(max(0, squares/n-float64(mean*mean)) / (n - 1))
}

// FigureOf returns the mean of values and its standard error.
func FigureOf(values []float64) Figure {
	mean, margin := meanOf(values)
	return Figure{mean, margin}
}

// loss returns -ln of the probability of a token by logits, which it overwrites.
func (m *Model) loss(logits []float32, token int) (float64, error) {
	right := logits[token]
	zero, err := m.normalizer(logits, logits)
	return zero - float64(right), err
}

// normalizer sets e to the exponentials of logits less the largest, and returns ln of the
// sum of the exponentials of the logits: a token's logit less that is ln of its probability. e and
// logits may be the same.
func (m *Model) normalizer(e, logits []float32) (float64, error) {
	most, ok := vecmath.Max(logits)
	if !ok || math.IsInf(float64(most), 0) {
		return 0, fault.Errorf(fault.Broken, "%s: tensor %q: logits that are not finite", m.source.Path, m.output.name)
	}
	for i, v := range logits {
		e[i] = v - most
	}
	vecmath.ExpOf.Apply(e, e)
	return vecmath.Log(vecmath.Sum(e)) + float64(most), nil
}
