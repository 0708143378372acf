package eval

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// Gradients has the loss whose gradients Backward computes, and the functions that receive them. Functions may be nil.
// Linear, States and Embeddings are called sequentially; their arguments are valid during the call. Gradients are of
// the sum over positions, not of the mean.
type Gradients struct {
	// Run has the tokens. Its First is the first position of each chunk that counts for the loss.
	Run
	// Loss returns the loss at position at of Tokens from its logits, and sets d (len(d) = len(logits)) to its
	// gradient. It is called from several goroutines, for all positions of a chunk from First on. Nil is the negative
	// log-likelihood of the next token, for all but a chunk's last position; or, with a Base, the KL divergence of the
	// model's probabilities from Base's, for the same positions.
	Loss func(at int, logits, d []float32) (float64, error)
	Base *Model
	// Choices adds the cost of another choice of experts to that of the loss, for a Loss whose gradients are samples of
	// its curvature: a gradient of random sign at a token's router, larger the closer the choice was.
	Choices bool
	// Linear is called for each linear layer.
	Linear func(LinearGradient) error
	// States is called with the gradient w.r.t. the residual stream before a layer, [tokens, Width], for tokens from
	// first on; layer = number of layers is the stream after the last one.
	States func(layer, first int, g []float32) error
	// Embeddings is called with the gradient w.r.t. the embedding rows of the tokens from first on.
	Embeddings func(first int, g []float32) error
	// Norms is called with the gradient w.r.t. the weights of a norm, g[i] that w.r.t. element i of the tensor. Calls
	// are sequential, of a tensor one for each group of Chunks, and for each time that its layer runs: they add up.
	Norms func(tensor string, g []float64) error
	// Chunks is the number of chunks that are processed together, 0 for all. Each group reads all weights.
	Chunks int
}

// LinearGradient is the gradient of a loss w.r.t. the outputs of a linear layer y = W x + b, for tokens in text order:
// all tokens, or those routed to the matrix's expert. The gradient w.r.t. W is GᵀX, w.r.t. b the sum of G's rows.
type LinearGradient struct {
	Inputs
	G []float32 // [Rows, rows of W], valid during the call
}

// reversible is a mixer with a backward pass.
type reversible interface {
	mixer
	// back sets dx to the gradient of the loss w.r.t. x from dy, the gradient w.r.t. mix's output. x is mix's input: n
	// tokens, whole chunks. It uses the same buffers of the stream as mix, recomputes intermediate values, and does not
	// change x and dy. Linear layers go through stream.backLinear, which reports their gradients.
	back(s *stream, dx, dy, x []float32, n int) error
}

// backwardState are the buffers of a backward pass.
type backwardState struct {
	g                     *Gradients
	firstToken            int // of the group of chunks
	y, dy, copy           []float32
	before, outputs       [][]float32 // by step: the states before it, the outputs of its branch
	inputs                [][]float32 // by branch: gradients w.r.t. its inputs
	hidden, raw, mid      []float32
	gate, dgate, dqueries []float32
	latent                backMLA
	states                backStates
	heads                 [][]float32 // per worker
	both, folded          []float32
	conv                  [2][]float32
	dacc, dexperts, early []float32 // of all tokens
	norms                 normGradients
}

// Backward runs a forward and a backward pass down to the embeddings, and returns the sum of the loss. Memory: 4*width
// bytes per token and layer, as much as for five more layers, the memory of Forward, and about twice that for values
// between layers; with Norms another 8*width bytes for every 48 tokens and norm of a layer. Each layer is computed
// twice (activation checkpointing): it takes three to four times as long as Forward.
//
// Not all models that Forward supports have a backward pass: an error of kind fault.Unsupported names the missing part.
func (m *Model) Backward(ctx context.Context, g Gradients) (loss float64, err error) {
	r := &g.Run
	if r.Chunk < 2 || len(r.Tokens) == 0 || len(r.Tokens)%r.Chunk != 0 || r.First < 0 || r.First >= r.Chunk-1 ||
		g.Chunks < 0 {
		return 0, fmt.Errorf("eval: gradients of %d tokens in chunks of %d from position %d on, %d chunks at a time",
			len(r.Tokens), r.Chunk, r.First, g.Chunks)
	}
	if r.HalfGELU || r.Inputs != nil {
		return 0, fmt.Errorf("eval: HalfGELU and Inputs are for running forwards")
	}
	if m.cache != nil {
		return 0, fmt.Errorf("eval: %s: gradients with a cache of types other than F32", m.source.Path)
	}
	if err := m.reversible(); err != nil {
		return 0, err
	}
	if g.Base != nil && g.Base.p.vocab != m.p.vocab {
		return 0, fault.Errorf(fault.Refused, "%s has %d tokens and %s %d: their probabilities cannot be compared",
			m.source.Path, m.p.vocab, g.Base.source.Path, g.Base.p.vocab)
	}
	group := len(r.Tokens)
	if g.Chunks > 0 {
		group = min(group, g.Chunks*r.Chunk)
	}
	for from := 0; from < len(r.Tokens); from += group {
		part := g
		part.Tokens = r.Tokens[from:min(from+group, len(r.Tokens))]
		if r.Progress != nil {
			share, before := float64(len(part.Tokens))/float64(len(r.Tokens)), float64(from)/float64(len(r.Tokens))
			part.Progress = func(p Progress) { r.Progress(Progress{Done: before + p.Done*share}) }
		}
		losses, err := m.backward(ctx, part, from)
		if err != nil {
			return 0, err
		}
		for _, l := range losses {
			loss += l
		}
	}
	return loss, nil
}

// CheckBackward returns the error of kind fault.Unsupported that Backward would: it names the part of the model that
// has no backward pass.
func (m *Model) CheckBackward() error { return m.reversible() }

// reversible returns an error if a part of the model has no backward pass.
func (m *Model) reversible() error {
	if err := m.checkPredicts(); err != nil {
		return err
	}
	if m.adapters != nil {
		return fault.Errorf(fault.Unsupported, "%s: models of architecture %q cannot be run backwards: their tokenAdapters "+
			"have no backward pass", m.source.Path, m.p.arch)
	}
	for i := range m.layers {
		for _, s := range m.layers[i].steps {
			if missing := withoutBackward(s); missing != "" {
				return fault.Errorf(fault.Unsupported, "%s: models of architecture %q cannot be run backwards: %s",
					m.source.Path, m.p.arch, missing)
			}
		}
	}
	return nil
}

// withoutBackward returns what of a step has no backward pass, "" for nothing.
func withoutBackward(s step) string {
	r, ok := s.(*residual)
	if !ok {
		if _, ok := s.(reversibleStep); !ok {
			return fmt.Sprintf("their step %s has no backward pass", strings.TrimPrefix(fmt.Sprintf("%T", s), "*eval."))
		}
		return ""
	}
	for _, b := range r.branches {
		switch {
		case b.sum != nil:
			return "a norm of the residual stream has no backward pass"
		case b.carry != 1 || r.input || r.update:
			return "their residual connections have no backward pass"
		}
		all := parallelMixers{b.part}
		if sum, ok := b.part.(parallelMixers); ok {
			all = sum
		}
		if withExperts(s) != nil && (len(r.branches) > 1 || !isExperts(b.part)) {
			return "experts next to other parts have no backward pass"
		}
		for _, part := range all {
			_, ok := part.(reversible)
			switch p := part.(type) {
			case *experts:
				if p.projection != nil {
					return "its experts have a latent projection"
				}
				if p.inputs != nil {
					return "its routers have a norm of their own"
				}
				if p.halved || p.perGroup != nil {
					return "its experts have a sum of their own"
				}
				ok = p.activation != nil || p.act.HasSlope()
			case *feedForward:
				if p.norm != nil || p.sparse != 0 {
					return "the inputs of their last matrix have a norm"
				}
				ok = p.activation != nil || p.act.HasSlope()
			case *attention:
				if p.source != nil || p.shared {
					return "layers share keys and values"
				}
				if p.gateFunction != sigmoidGate || p.outNorm != nil || p.valueExperts != nil {
					return "attention with value experts, or with a norm or another gate of outputs than a sigmoid, has none"
				}
			case *mla:
				if p.gate != nil || p.keyNorm != nil || p.sinks != nil {
					return "MLA with gates, sinks or a norm of the shared key has no backward pass"
				}
			}
			if !ok {
				return fmt.Sprintf("their %s has no backward pass", partName(part))
			}
		}
	}
	return ""
}

// backward is Backward for one group of chunks, from token first on.
func (m *Model) backward(ctx context.Context, g Gradients, first int) (losses []float64, err error) {
	forward := g.Run
	forward.First = 0
	if g.Progress != nil {
		forward.Progress = func(p Progress) { g.Progress(Progress{Done: p.Done / 3}) }
	}
	var base *States
	if g.Loss == nil && g.Base != nil {
		r := g.Run
		r.Progress = nil
		if base, err = g.Base.Forward(ctx, r); err != nil {
			return nil, err
		}
	}
	runs := []*Run{&forward}
	s, err := m.newStream(ctx, runs, newWorkspace(g.Workers))
	if err != nil {
		return nil, err
	}
	fail := func(i int, err error) ([]float64, error) {
		return nil, fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
	}
	kept := make([][]float32, len(m.layers))
	for i := range m.layers {
		kept[i] = slices.Clone(s.h)
		if err := s.runLayer(i, runs); err != nil {
			return fail(i, err)
		}
	}
	s.reverse = &backwardState{g: &g, firstToken: first, heads: make([][]float32, len(s.scratch))}
	d := make([]float32, len(s.h))
	if losses, err = s.loss(d, base); err != nil {
		return nil, err
	}
	if err := s.reportNorms(); err != nil {
		return nil, err
	}
	forward.Progress = nil
	for i := len(m.layers) - 1; i >= 0; i-- {
		if err := s.reportStates(i+1, d); err != nil {
			return nil, err
		}
		if err := s.backLayer(i, kept[i], d); err != nil {
			return fail(i, err)
		}
		if err := s.reportNorms(); err != nil {
			return nil, err
		}
		if kept[i] = nil; g.Progress != nil {
			g.Progress(Progress{Done: 1 - 2./3*float64(i)/float64(len(m.layers))})
		}
	}
	if err := s.reportStates(0, d); err != nil {
		return nil, err
	}
	if err := s.backEmbed(d); err != nil {
		return nil, err
	}
	return losses, s.reportNorms()
}

// reportStates calls States with the gradient w.r.t. the residual stream before a layer.
func (s *stream) reportStates(layer int, d []float32) error {
	if s.reverse.g.States == nil {
		return nil
	}
	return s.reverse.g.States(layer, s.reverse.firstToken, d)
}

// loss sets d to the gradient w.r.t. the residual stream after the last layer, and returns the loss of each position.
func (s *stream) loss(d []float32, base *States) ([]float64, error) {
	m, g, width, vocab := s.m, s.reverse.g, s.m.p.width, s.m.p.vocab
	keep := g.Chunk - g.First
	st := &States{model: m, width: width, Rows: len(g.Tokens) / g.Chunk * keep, run: g.Run}
	st.data = make([]float32, st.Rows*width)
	token := func(row int) int { return row/keep*g.Chunk + g.First + row%keep }
	if err := s.eachRows(st.Rows, func(a, b int) {
		for i := a; i < b; i++ {
			s.finalNorm(st.data[i*width:][:width], s.h[token(i)*width:][:width])
		}
	}); err != nil {
		return nil, err
	}
	model := st.logitBlock(s.ctx)
	var other *logitBlock
	if base != nil {
		other = base.logitBlock(s.ctx)
	}
	losses, scratch := make([]float64, st.Rows), make([][]float32, len(s.scratch))
	for from := 0; from < st.Rows; from += logitBlockRows {
		n := min(logitBlockRows, st.Rows-from)
		if err := model.compute(st, from, n); err != nil {
			return nil, err
		}
		if base != nil {
			if err := other.compute(base, from, n); err != nil {
				return nil, err
			}
		}
		err := parallel.For(s.ctx, len(scratch), n, func(i, worker int) (err error) {
			at, logits, slopes := token(from+i), model.logits[i*vocab:][:vocab],
				buffer.Resize(&scratch[worker], 2*vocab)
			dl := slopes[vocab:]
			switch {
			case g.Loss != nil:
				losses[from+i], err = g.Loss(s.reverse.firstToken+at, logits, dl)
			case at%g.Chunk == g.Chunk-1:
				clear(dl) // the next token is in the next chunk
			case base != nil:
				losses[from+i], err = m.klLoss(base.model, dl, slopes[:vocab], other.logits[i*vocab:][:vocab], logits)
			default:
				losses[from+i], err = m.tokenLoss(dl, logits, int(g.Tokens[at+1]))
			}
			m.backLogits(dl, logits)
			copy(logits, dl)
			return err
		})
		if err != nil {
			return nil, err
		}
		x := st.data[from*width:][:n*width]
		dx := buffer.Resize(&s.x, n*width)
		if err := s.backLinear(dx, model.logits, vocab, x, n, false, m.output); err != nil {
			return nil, fmt.Errorf("%s: %w", m.source.Path, err)
		}
		if err := s.eachRows(n, func(a, b int) {
			for i := a; i < b; i++ {
				at := token(from+i) * width
				if m.p.finalScale != 1 {
					vecmath.Scale(dx[i*width:][:width], dx[i*width:][:width], float32(m.p.finalScale))
				}
				s.backNorm(m.outNorm, dx[i*width:][:width], s.h[at:][:width], i)
				copy(d[at:][:width], dx[i*width:])
			}
		}); err != nil {
			return nil, err
		}
	}
	return losses, nil
}

// tokenLoss returns the negative log-likelihood of a token from logits, and sets d to the gradient w.r.t. the logits.
func (m *Model) tokenLoss(d, logits []float32, token int) (float64, error) {
	zero, err := m.normalizer(d, logits)
	if err != nil {
		return 0, err
	}
	vecmath.Scale(d, d, float32(1/vecmath.Sum(d)))
	d[token]--
	return zero - float64(logits[token]), nil
}

// klLoss returns KL(p ‖ q) of the probabilities of logits p, the base's, and q, and sets d to
// the gradient w.r.t. q. e is scratch of the same length.
func (m *Model) klLoss(base *Model, d, e, p, q []float32) (float64, error) {
	zp, err := base.normalizer(e, p)
	if err != nil {
		return 0, err
	}
	zq, err := m.normalizer(d, q)
	if err != nil {
		return 0, err
	}
	loss := klDivergence(e, vecmath.Sum(e), p, q, zp, zq)
	vecmath.Scale(d, d, float32(1/vecmath.Sum(d)))
	vecmath.AddScaled(d, e, -float32(1/vecmath.Sum(e)))
	return loss, nil
}

// backLogits turns d from the gradient w.r.t. the logits into the gradient w.r.t. the outputs of the output matrix.
func (m *Model) backLogits(d, logits []float32) {
	clear(d[m.p.never.From:m.p.never.End])
	if limit := float32(m.p.logitSoftCap); m.p.logitSoftCap != 0 {
		for i, v := range logits {
			t := v / limit
			d[i] *= (1 - t) * (1 + t)
		}
	}
	if m.p.logitScale != 1 {
		vecmath.Scale(d, d, float32(m.p.logitScale))
	}
}

// backEmbed reports the gradient w.r.t. the rows of the embedding tensor from d, the gradient w.r.t. the residual
// stream before the first layer.
func (s *stream) backEmbed(d []float32) error {
	m := s.m
	if s.reverse.g.Embeddings == nil && (s.reverse.g.Norms == nil || m.embedNorm == nil) {
		return nil
	}
	if m.embedNorm != nil {
		if err := s.embed(s.h, nil); err != nil {
			return err
		}
		if err := s.eachRows(len(s.h)/m.p.width, func(a, b int) {
			s.backNorm(m.embedNorm, d[a*m.p.width:b*m.p.width],
				s.h[a*m.p.width:b*m.p.width], a)
		}); err != nil {
			return err
		}
	}
	if s.reverse.g.Embeddings == nil {
		return nil
	}
	if f := m.p.embedScale; f != 1 {
		vecmath.Scale(d, d, float32(f))
	}
	if t := m.embedFold; t != nil {
		if err := s.eachRows(len(d)/m.p.width, func(a, b int) {
			for i := a; i < b; i++ {
				row := d[i*m.p.width:][:m.p.width]
				t.apply(row, slices.Clone(row))
			}
		}); err != nil {
			return err
		}
	}
	return s.reverse.g.Embeddings(s.reverse.firstToken, d)
}
