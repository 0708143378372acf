package eval

import (
	"context"
	"fmt"

	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// tokensPerBlock is about the number of tokens that go through a layer together: they share the decoding of a weight,
// and intermediate results of a layer are in memory for all of them. Tests set it.
var tokensPerBlock = 2048

// Forward runs the model. Memory: two streams of 4*width bytes per token at most, three of RWKV 7 and four where
// experts have a width of their own, the intermediate results of a layer for about 2048 tokens, and less than a
// megabyte for each worker and 1000 values of a row. Of a model that is encoded as it is read, the encoded rows of a
// layer, or of an expert, are held while there are more tokens than these.
func (m *Model) Forward(ctx context.Context, r Run) (*States, error) {
	if r.Chunk < 1 || len(r.Tokens)%r.Chunk != 0 || r.First < 0 || r.First >= r.Chunk {
		return nil, fmt.Errorf("eval: %d tokens in chunks of %d from position %d on", len(r.Tokens), r.Chunk, r.First)
	}
	return m.forward(ctx, []*Run{&r})
}

// forward is Forward for several runs, which differ in their chunks only. The states are
// those of the runs, one after the other.
func (m *Model) forward(ctx context.Context, runs []*Run) (*States, error) {
	r := runs[0]
	s, err := m.newStream(ctx, runs, newWorkspace(r.Workers))
	if err != nil {
		return nil, err
	}
	for i := range m.layers {
		if err := s.runLayer(i, runs); err != nil {
			return nil, fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
	}
	return s.finish(r)
}

// finish returns the states of a stream after the last layer.
func (s *stream) finish(r *Run) (*States, error) {
	m := s.m
	st := &States{model: m, width: m.p.width, Rows: len(s.h) / m.p.width, data: s.h, run: *r}
	if m.outNorm == nil {
		return st, nil
	}
	err := s.eachRows(st.Rows, func(a, b int) { s.finalNorm(s.h[a*st.width:b*st.width], s.h[a*st.width:b*st.width]) })
	return st, err
}

// finalNorm sets dst to the inputs of the output matrix: the last norm of rows of the stream after the last layer.
func (s *stream) finalNorm(dst, src []float32) {
	s.norm(s.m.outNorm, dst, src)
	if f := s.m.p.finalScale; f != 1 {
		vecmath.Scale(dst, dst, float32(f))
	}
}

// newStream returns the stream of runs before the first layer.
func (m *Model) newStream(ctx context.Context, runs []*Run, ws *workspace) (*stream, error) {
	s := &stream{m: m, ctx: ctx, workspace: ws}
	tokens := 0
	for _, r := range runs {
		tokens += len(r.Tokens)
	}
	s.h = make([]float32, tokens*m.p.width)
	at := 0
	for _, s.r = range runs {
		if err := s.embed(s.h[at:][:len(s.r.Tokens)*m.p.width], m.embedNorm); err != nil {
			return nil, err
		}
		at += len(s.r.Tokens) * m.p.width
	}
	return s, nil
}

// runLayer runs layer i on the streams of runs.
func (s *stream) runLayer(i int, runs []*Run) error {
	if err := s.runBlocks(i, runs); err != nil {
		return err
	}
	if l := &s.m.layers[i]; l.experts != nil {
		return s.addExperts(l)
	}
	return nil
}

// runBlocks is pass as far as the layer's experts, block by block.
func (s *stream) runBlocks(i int, runs []*Run) error {
	l, last, width := &s.m.layers[i], i == len(s.m.layers)-1, s.m.p.width
	done, kept, all := 0, 0, len(s.h)
	s.rereads = len(runs) > 1 || all > max(1, tokensPerBlock/runs[0].Chunk)*runs[0].Chunk*width
	for _, r := range runs {
		s.setRun(r)
		for from := 0; from < len(r.Tokens); {
			n := s.blockTokens(len(r.Tokens) - from)
			s.firstToken, s.tokens = done, r.Tokens[from:from+n]
			h, err := s.layerBlock(l, s.h[done*width:][:n*width], n, last)
			if err != nil {
				return err
			}
			kept += copy(s.h[kept:], h) // in the last layer the wanted rows are moved together
			from, done = from+n, done+n
			if r.Progress != nil {
				r.Progress(Progress{Done: (float64(i) + float64(done*width)/float64(all)) / float64(len(s.m.layers))})
			}
		}
	}
	s.dropHeld()
	s.h = s.h[:kept]
	return nil
}

// blockTokens returns how many tokens, of those that are left of a run, go through a layer
// together: whole chunks.
func (s *stream) blockTokens(left int) int {
	return min(max(1, tokensPerBlock/s.r.Chunk)*s.r.Chunk, left)
}

// setRun makes r the current run and computes the RoPE tables for its chunk length.
func (s *stream) setRun(r *Run) {
	if s.r = r; s.chunk == r.Chunk {
		return
	}
	s.chunk = r.Chunk
	factors := s.m.ropeFreqs
	if s.m.ropeShort != nil {
		if factors = s.m.ropeShort; r.Chunk > s.m.p.rope.original {
			factors = s.m.ropeLong
		}
	}
	s.rope = s.m.p.rope.table(r.Chunk, factors)
	if s.m.graph.SWAHeadSizes {
		factors = nil
	}
	s.swaRope = s.m.p.swaRope.table(r.Chunk, factors)
}

// rowsPerTask is the number of tokens that a worker takes at once where rows do not depend on each other.
// It is a multiple of the rows of panels.
const rowsPerTask = 48

// eachRows calls f for all of n rows, some at a time, from all workers.
func (s *stream) eachRows(n int, f func(a, b int)) error {
	return s.eachRowsErr(n, func(a, b int) error { f(a, b); return nil })
}

// eachRowsErr is eachRows for functions that may fail.
func (s *stream) eachRowsErr(n int, f func(a, b int) error) error {
	return parallel.For(s.ctx, len(s.scratch), (n+rowsPerTask-1)/rowsPerTask,
		func(i, _ int) error { return f(i*rowsPerTask, min((i+1)*rowsPerTask, n)) })
}
