package eval

import (
	"context"
	"fmt"
	"math"

	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// logitBlockRows is the number of rows of logits that are computed at once.
const logitBlockRows = 192

// logitBlock computes and holds the logits of some rows.
type logitBlock struct {
	s      *stream
	logits []float32
}

// logitBlock returns a logitBlock for the states.
func (st *States) logitBlock(ctx context.Context) *logitBlock {
	return st.logitBlockIn(ctx, newWorkspace(st.run.Workers),
		make([]float32, min(logitBlockRows, st.Rows)*st.model.p.vocab))
}

// logitBlockIn is logitBlock in shared memory: only one of the blocks that share it may be in use.
func (st *States) logitBlockIn(ctx context.Context, ws *workspace, logits []float32) *logitBlock {
	return &logitBlock{&stream{m: st.model, r: &Run{}, ctx: ctx, workspace: ws, rereads: st.Rows > logitBlockRows},
		logits}
}

// compute sets the logits to those of n rows from row from on.
func (b *logitBlock) compute(st *States, from, n int) error {
	m, vocab := st.model, st.model.p.vocab
	if m.output == nil {
		return m.checkPredicts()
	}
	if err := b.s.linear(b.logits, vocab, st.data[from*st.width:][:n*st.width], n, m.output); err != nil {
		return fmt.Errorf("%s: %w", m.source.Path, err)
	}
	return b.s.eachRows(n, func(x, y int) {
		row := b.logits[x*vocab : y*vocab]
		if m.p.logitScale != 1 {
			vecmath.Scale(row, row, float32(m.p.logitScale))
		}
		if m.p.logitSoftCap != 0 {
			softCap(row, float32(m.p.logitSoftCap))
		}
		if none := m.p.never; none.End > 0 {
			for ; len(row) > 0; row = row[vocab:] {
				for i := none.From; i < none.End; i++ {
					row[i] = -math.MaxFloat32
				}
			}
		}
	})
}

// Inputs returns the states as the inputs of the output matrix, which is the embedding tensor in models with tied
// embeddings. The model must predict tokens.
func (st *States) Inputs() Inputs {
	out, x := st.model.output, st.data
	if t := out.fold; t != nil {
		x = make([]float32, len(x))
		for at := 0; at < len(x); at += st.width {
			t.apply(x[at:][:st.width], st.data[at:][:st.width])
		}
	}
	in := out.inputs(x, st.Rows)
	in.Product = -1
	return in
}

// Logits calls f with the logits of each row, from several goroutines; a row is valid
// during the call.
func (st *States) Logits(ctx context.Context, f func(row int, logits []float32) error) error {
	return st.logits(ctx, f, func(int) error { return nil })
}

// logits is Logits, and calls done with the number of rows so far.
func (st *States) logits(ctx context.Context, f func(row int, logits []float32) error, done func(rows int) error) error {
	b, vocab := st.logitBlock(ctx), st.model.p.vocab
	for from := 0; from < st.Rows; from += logitBlockRows {
		n := min(logitBlockRows, st.Rows-from)
		if err := b.compute(st, from, n); err != nil {
			return err
		}
		if err := parallel.For(ctx, len(b.s.scratch), n,
			func(i, _ int) error { return f(from+i, b.logits[i*vocab:][:vocab]) }); err != nil {
			return err
		}
		if err := done(from + n); err != nil {
			return err
		}
	}
	return nil
}
