package eval

import (
	"context"
	"fmt"
	"slices"

	"ggforge/fault"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// tokensPerBlock is about the number of tokens that go through a layer together: they share the decoding of a weight,
// and intermediate results of a layer are in memory for all of them. Tests set it.
var tokensPerBlock = 2048

// Forward runs the model. Memory: two streams of 4*width bytes per token at most, three of RWKV 7 and four where
// experts have a width of their own, the intermediate results of a layer for about 2048 tokens, and less than a
// megabyte for each worker and 1000 values of a row. Of a model that is encoded as it is read, the encoded rows of a
// layer, or of an expert, are held while there are more tokens than these. With NextN two more streams.
func (m *Model) Forward(ctx context.Context, r Run) (*States, error) {
	if r.Sources != nil {
		return m.decode(ctx, r)
	}
	if r.NextN && (r.First != 0 || !m.Predicts()) {
		return nil, fmt.Errorf("eval: MTP (NextN) layers run for states of all tokens, by which others are predicted")
	}
	if r.Lengths != nil || r.Chunk < 1 || len(r.Tokens)%r.Chunk != 0 || r.First < 0 || r.First >= r.Chunk {
		return nil, fmt.Errorf("eval: %d tokens in chunks of %d from position %d on", len(r.Tokens), r.Chunk, r.First)
	}
	return m.forward(ctx, []*Run{&r})
}

// forward is Forward for several runs, which differ in their chunks only. The states are
// those of the runs, one after the other.
func (m *Model) forward(ctx context.Context, runs []*Run) (*States, error) {
	if m.decision != nil {
		return m.decide(ctx, runs)
	}
	return m.run(ctx, runs)
}

// run is forward without a decision head.
func (m *Model) run(ctx context.Context, runs []*Run) (*States, error) {
	r := runs[0]
	if r.NextN {
		drafts, err := m.drafts()
		if err != nil {
			return nil, err
		}
		if p := r.Progress; p != nil {
			trunk, share := *r, float64(len(m.layers))/float64(len(m.layers)+len(drafts))
			trunk.Progress = func(x Progress) { p(Progress{Done: share * x.Done}) }
			runs = []*Run{&trunk}
		}
	}
	s, err := m.newStream(ctx, runs, newWorkspace(r.Workers))
	if err != nil {
		return nil, err
	}
	for i := range m.layers {
		if err := s.runLayer(i, runs); err != nil {
			return nil, fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
	}
	if r.NextN {
		if err := m.runDrafts(ctx, r, s.h, s.workspace); err != nil {
			return nil, err
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
		if tokens += len(r.Tokens); m.maxChunk > 0 && r.Chunk > m.maxChunk {
			return nil, fault.Errorf(fault.Unsupported,
				"%s: chunks of %d tokens, want at most %s: the evaluator does not compute which ones an indexer chooses",
				m.source.Path, r.Chunk, m.maxChunkOf)
		}
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
	l, last := &s.m.layers[i], i == len(s.m.layers)-1
	s.beginLayer(i)
	if last && l.mixing < 0 {
		s.keepWanted(runs)
	}
	for from, end := range l.segments() {
		err := s.runSegment(i, from, end, runs, last && l.mixing < from)
		if err != nil {
			return err
		}
	}
	return nil
}

// beginLayer keeps the stream before layer i, if steps of the layer read it.
func (s *stream) beginLayer(i int) {
	if s.wholeInput = nil; s.m.layers[i].keepsInput {
		s.wholeInput = slices.Clone(s.h)
	}
}

// read makes the stream what a step with experts reads, until the returned function is called.
func (s *stream) read(r *residual, runs []*Run) (restore func()) {
	h := s.h
	if r.input {
		if len(s.wholeInput) != len(h) {
			s.wholeInput = s.wanted(s.wholeInput, runs)
		}
		s.h = s.wholeInput
	}
	return func() { s.h = h }
}

// runSegment runs steps of layer i. wanted: the streams have wanted tokens only.
func (s *stream) runSegment(i, from, end int, runs []*Run, wanted bool) error {
	l := &s.m.layers[i]
	r := withExperts(l.steps[from])
	if r == nil {
		return s.runBlocks(i, from, end, runs, wanted)
	}
	err := s.addExperts(r, runs, wanted)
	if err == nil && i == len(s.m.layers)-1 && l.mixing == from {
		s.keepWanted(runs)
	}
	return err
}

// keepWanted leaves the states of wanted tokens.
func (s *stream) keepWanted(runs []*Run) { s.h = s.wanted(s.h, runs) }

// wanted moves the rows of wanted tokens to the beginning of h, the states of all tokens, and returns them.
func (s *stream) wanted(h []float32, runs []*Run) []float32 {
	width, done, kept := s.m.p.width, 0, 0
	for _, s.r = range runs {
		n := len(s.r.Tokens)
		rows := h[done*width:][:n*width]
		kept += copy(h[kept:], rows[:s.keepPredicting(rows, width, n)*width])
		done += n
	}
	return h[:kept]
}

// runBlocks is runSegment for steps that run for some tokens at a time.
func (s *stream) runBlocks(i, from, end int, runs []*Run, wanted bool) error {
	width, kept := s.m.p.width, 0
	layers := float64(len(s.m.layers))
	all := float64(len(s.h))
	err := s.eachBlock(runs, wanted, func(at, n int) error {
		h, err := s.runSteps(i, from, end, s.h[at*width:][:n*width], n)
		if err != nil {
			return err
		}
		s.hyper.move(width, kept/width, at, len(h)/width)
		kept += copy(s.h[kept:], h) // in the last layer the wanted rows are moved together
		if s.r.Progress != nil {
			s.r.Progress(Progress{Done: (float64(i) + float64((at+n)*width)/all) / layers})
		}
		return nil
	})
	if err == nil {
		s.h = s.h[:kept]
	}
	return err
}

// eachBlock calls f for the tokens of runs, whole chunks, some at a time: n from token at on. wanted: the streams have
// wanted tokens only.
func (s *stream) eachBlock(runs []*Run, wanted bool, f func(at, n int) error) error {
	_, most := runs[0].block(0)
	s.rereads = len(runs) > 1 || len(s.h) > most*s.m.p.width
	defer s.dropHeld()
	done := 0
	for _, r := range runs {
		s.setRun(r)
		for c, at := 0, 0; c < r.Chunks(); {
			some, n := r.block(c)
			if s.firstChunk = c; r.Lengths != nil {
				s.lengths = r.Lengths[c : c+some]
			}
			s.setTokens(done, r.Tokens[at:at+n])
			c, at = c+some, at+n
			if wanted {
				s.keepTokens()
				n -= some * r.First
			}
			err := f(done, n)
			s.lengths = nil
			if err != nil {
				return err
			}
			done += n
		}
	}
	return nil
}

// blockTokens returns how many tokens, of those that are left of a run, go through a layer
// together: whole chunks.
func (s *stream) blockTokens(left int) int {
	return min(max(1, tokensPerBlock/s.r.Chunk)*s.r.Chunk, left)
}

// block returns how many chunks, from chunk c on, go through a layer together, and how many tokens these have.
func (r *Run) block(c int) (chunks, tokens int) {
	if r.Lengths == nil {
		chunks = min(max(1, tokensPerBlock/r.Chunk), r.Chunks()-c)
		return chunks, chunks * r.Chunk
	}
	sources := 0
	for i, n := range r.Lengths[c:] {
		if r.Sources != nil {
			sources += len(r.Sources[c+i])
		}
		if i > 0 && max(tokens+n, sources) > tokensPerBlock {
			break
		}
		chunks, tokens = i+1, tokens+n
	}
	if r.prefixes != nil {
		return r.wholeGroups(c, chunks, tokens)
	}
	return chunks, tokens
}

// span is a range of tokens: n from token at on.
type span struct {
	at, n  int
	prefix rowRange // the tokens before it, of another chunk; empty for none
}

// rowRange is a range of rows: n from row at on.
type rowRange struct{ at, n int }

// chunks returns the chunks of n tokens, whole chunks, which go through a layer together.
func (s *stream) chunks(n int) []span {
	var list []span
	if s.lengths == nil {
		for at := 0; at < n; at += s.r.Chunk {
			list = append(list, span{at: at, n: s.r.Chunk})
		}
		return list
	}
	at := 0
	for i, length := range s.lengths {
		c := span{at: at, n: length}
		if p := s.r.prefixes; p != nil {
			if of := p.of[s.firstChunk+i]; of >= 0 {
				before := list[of-s.firstChunk]
				c.prefix = rowRange{before.at, before.n}
			}
		}
		list = append(list, c)
		at += length
	}
	return list
}

// setRun makes r the current run and computes the tables of its positions.
func (s *stream) setRun(r *Run) {
	if s.r = r; s.chunk == r.Chunk {
		return
	}
	s.chunk = r.Chunk
	s.rotations = s.rotations[:0]
	for _, rope := range s.m.ropes {
		s.rotations = append(s.rotations, rope.table(r.at+r.Chunk))
	}
	s.queryFactors = s.queryFactors[:0]
	for _, t := range s.m.temperatures {
		s.queryFactors = append(s.queryFactors, t.table(r.at+r.Chunk))
	}
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
