package eval

import (
	"context"
	"strings"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/kernel/parallel"
)

// Importance has the settings for collecting an importance matrix; the zero value is that of llama-imatrix.
type Importance struct {
	// Output collects for the matrix that makes logits, too: output.weight, or
	// token_embd.weight if the model has no other.
	Output bool
	// Every is the number of chunks that go through the model together; 0 means all. The sums do not depend on it.
	Every int
	// Group, if it is not 0, sums each Group chunks separately, in text order,
	// and then adds these sums, one after the other. Float32 sums depend on the order of
	// additions: this order can be shared among processes. Group chunks go through the model together; Every, if it is
	// not 0, has to be a multiple of Group.
	Group int
	// Done is the number of chunks that the sums have already: they are skipped.
	Done int
	// Save, if set, is called after each group of chunks, with the number of chunks in the sums.
	Save func(done int) error
}

// Collector accumulates squared activations per tensor, in text order, as float32 numbers. As in the reference every
// token of all chunks counts. So do all linear layers in blocks, whatever the input is (the router of experts reads
// the input of the experts), and stacked experts. Embeddings do not, nor do matrices that the runtime multiplies row by
// row (RWKV's time_mix_w2), which quantizers keep. The matrix that computes logits counts if asked for.
type Collector struct {
	m      *Model
	sums   *imatrix.Sums
	output bool
}

// Collector returns a Collector that adds to sums; with output also for the matrix that computes logits.
func (m *Model) Collector(sums *imatrix.Sums, output bool) (*Collector, error) {
	if output && !m.Predicts() && !m.Decodes() {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: predicts no tokens: there is no matrix that makes logits to collect for", m.source.Path)
	}
	return &Collector{m, sums, output}, nil
}

// Sums returns the sums that c adds to.
func (c *Collector) Sums() *imatrix.Sums { return c.sums }

// Inputs adds the activations of a linear layer; it is a function for Run.Inputs.
func (c *Collector) Inputs(ctx context.Context, in Inputs, workers int) error {
	if !c.counts(in) {
		return nil
	}
	return collect(ctx, c.sums, in, workers)
}

func (c *Collector) counts(in Inputs) bool {
	if in.Single || in.Routed {
		return !in.Single
	}
	g := c.m.graph
	decoder, ok := g.Second.(graph.Decoder)
	return strings.HasPrefix(in.Name, g.Prefix+"blk.") || ok && strings.HasPrefix(in.Name, decoder.Prefix+"blk.")
}

// States adds the activations of the output matrix, from the result of Forward for a run whose First is 0.
func (c *Collector) States(ctx context.Context, states *States, workers int) error {
	if !c.output {
		return nil
	}
	return collect(ctx, c.sums, states.Inputs(), workers)
}

// Expect returns sums with the entries and counts of a run, without running the model: all squares are 1, and all
// experts count all tokens. They serve for plans, which depend on the tensors that have importance.
func (c *Collector) Expect(ctx context.Context, r Run) (*imatrix.Sums, error) {
	sums := imatrix.NewSums(r.Chunk)
	expect := func(in Inputs) error {
		tokens := len(r.Tokens) - r.Chunks()*c.m.rowsLess(in.Name)
		if tokens < 1 {
			return nil
		}
		t, err := sums.Tally(in.Name, in.Columns, in.Matrices, in.Routed)
		if err != nil {
			return err
		}
		for i := range t.Squares {
			t.Squares[i] = 1
		}
		for i := range t.Counts {
			t.Counts[i] = 0
			t.Count(i, tokens, in.Routed)
		}
		return nil
	}
	empty := Run{Tokens: []int32{0}, Chunk: 1, Workers: r.Workers, dry: true, Inputs: func(in Inputs) error {
		if !c.counts(in) {
			return nil
		}
		return expect(in)
	}}
	if r.NextN {
		empty.NextN, empty.Tokens, empty.Chunk = true, make([]int32, c.m.nextN+1), c.m.nextN+1
		sums.NextN = c.m.nextN
	}
	states, err := c.m.Forward(ctx, empty)
	if err == nil && c.output {
		err = expect(states.Inputs())
	}
	return sums, err
}

// Collect runs the model over chunks of tokens with a Collector. r.First is set. With r.NextN the sums get the number of
// MTP (NextN) layers, too.
func (m *Model) Collect(ctx context.Context, r Run, sums *imatrix.Sums, opt Importance) error {
	switch {
	case r.Sources != nil:
		if err := r.checkSources(m); err != nil {
			return err
		}
	case m.Decodes():
		return m.checkPredicts()
	}
	if r.Chunk < 1 || r.Lengths == nil && len(r.Tokens)%r.Chunk != 0 || opt.Done < 0 || opt.Every < 0 || opt.Group < 0 ||
		opt.Done > r.Chunks() {
		return fault.Errorf(fault.Usage, "%d tokens in chunks of %d, of which %d are done, %d at once", len(r.Tokens),
			r.Chunk, opt.Done, opt.Every)
	}
	chunks := r.Chunks()
	at, every := opt.Every, opt.Every
	if every == 0 {
		at, every = chunks, chunks
	}
	if g := opt.Group; g > 0 {
		if at = g; opt.Every%g != 0 || opt.Done%g != 0 && opt.Done < chunks {
			return fault.Errorf(fault.Usage,
				"sums of groups of %d chunks, and %d at once, of which %d are done: want multiples", g,
				opt.Every, opt.Done)
		}
	}
	if r.First = 0; r.NextN {
		if r.Sources != nil {
			return fault.Errorf(fault.Usage, "MTP (NextN) layers of an encoder-decoder")
		}
		sums.NextN = m.nextN
	}
	for done, since := opt.Done, 0; done < chunks; {
		n := min(at, chunks-done)
		part := r.chunks(done, done+n)
		if r.Progress != nil {
			before, share := float64(done)/float64(chunks), float64(n)/float64(chunks)
			part.Progress = func(p Progress) { r.Progress(Progress{Done: before + share*p.Done}) }
		}
		into := sums
		if opt.Group > 0 {
			into = imatrix.NewSums(r.Chunk)
		}
		if err := m.collect(ctx, part, into, opt.Output); err != nil {
			return err
		}
		if opt.Group > 0 {
			if err := sums.Join(into); err != nil {
				return err
			}
		}
		done, since = done+n, since+n
		if opt.Save != nil && (since >= every || done == chunks) {
			since = 0
			if err := opt.Save(done); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect is Collect for chunks that go through the model together.
func (m *Model) collect(ctx context.Context, r Run, sums *imatrix.Sums, output bool) error {
	c, err := m.Collector(sums, output)
	if err != nil {
		return err
	}
	r.Inputs = func(in Inputs) error { return c.Inputs(ctx, in, r.Workers) }
	states, err := m.Forward(ctx, r)
	if err != nil {
		return err
	}
	return c.States(ctx, states, r.Workers)
}

// columns is the number of columns that a worker takes at once: their sums stay in the cache.
const columns = 512

func collect(ctx context.Context, sums *imatrix.Sums, in Inputs, workers int) error {
	t, err := sums.Tally(in.Name, in.Columns, in.Matrices, in.Routed)
	if err != nil {
		return err
	}
	t.Count(in.Matrix, in.Rows, in.Routed)
	return parallel.For(ctx, max(1, workers), (in.Columns+columns-1)/columns, func(i, _ int) error {
		return t.Add(in.Matrix, in.X, in.Rows, i*columns, min((i+1)*columns, in.Columns))
	})
}
