package eval

import (
	"context"
	"strings"

	"ggforge/fault"
	"ggforge/imatrix"
	"ggforge/internal/parallel"
)

// Importance says how the sums of an importance matrix are collected; the zero value is
// that of the reference's tool.
type Importance struct {
	// Output collects for the matrix that makes logits, too: output.weight, or
	// token_embd.weight if the model has no other.
	Output bool
	// Every is how many chunks go through the model together; 0 means all. It does not show
	// in the sums.
	Every int
	// Done is how many chunks the sums are of already: they are passed over.
	Done int
	// Save, if set, is called whenever chunks have gone through the model, with the number of
	// chunks that the sums are of then.
	Save func(done int) error
}

// Collect runs the model over chunks of tokens and adds their inputs to sums, each tensor's
// in the order of the text: squares and sums of float32 numbers. As in the reference
// every token of all chunks counts. So do all linear layers in blocks, whatever the input
// is (the router of experts reads what experts read), and stacked experts; embeddings do
// not, and Output decides on the last matrix; nor does what the runtime multiplies row by
// row (RWKV's time_mix_w2), which quantizers keep. r.First is set.
func (m *Model) Collect(ctx context.Context, r Run, sums *imatrix.Sums, opt Importance) error {
	if r.Chunk < 1 || len(r.Tokens)%r.Chunk != 0 || opt.Done < 0 || opt.Every < 0 || opt.Done > len(r.Tokens)/r.Chunk {
		return fault.Errorf(fault.Usage, "%d tokens in chunks of %d, of which %d are done, %d at once", len(r.Tokens), r.Chunk, opt.Done, opt.Every)
	}
	if opt.Output && !m.Predicts() {
		return fault.Errorf(fault.Unsupported, "%s: predicts no tokens: there is no matrix that makes logits to collect for", m.source.Path)
	}
	r.First = 0
	r.Inputs = func(in Inputs) error {
		if in.Single || !in.Routed && !strings.HasPrefix(in.Name, m.graph.Prefix+"blk.") {
			return nil
		}
		return collect(ctx, sums, in, r.Workers)
	}
	chunks := len(r.Tokens) / r.Chunk
	every := opt.Every
	if every == 0 {
		every = chunks
	}
	for done := opt.Done; done < chunks; {
		part := r
		n := min(every, chunks-done)
		part.Tokens = r.Tokens[done*r.Chunk:][:n*r.Chunk]
		if r.Progress != nil {
			before, share := float64(done)/float64(chunks), float64(n)/float64(chunks)
			part.Progress = func(p Progress) { r.Progress(Progress{Done: before + share*p.Done}) }
		}
		states, err := m.Forward(ctx, part)
		if err != nil {
			return err
		}
		if opt.Output {
			if err := collect(ctx, sums, m.output.inputs(states.data, states.Rows), r.Workers); err != nil {
				return err
			}
		}
		if done += n; opt.Save != nil {
			if err := opt.Save(done); err != nil {
				return err
			}
		}
	}
	return nil
}

// columns is how many columns a worker takes at once: their sums stay in the cache.
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
