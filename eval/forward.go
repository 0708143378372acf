package eval

import (
	"context"
	"fmt"
	"sync/atomic"

	"ggforge/fault"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/half"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// Run says what a model is run over.
type Run struct {
	Tokens  []int32 // chunks, one after the other
	Chunk   int     // tokens of a chunk, at least 1; len(Tokens) is a multiple
	First   int     // the first position of each chunk whose state is wanted; 0 is Chunk/2 where tokens are predicted
	Workers int
	// Inputs is called with what meets the weights of each linear layer, rows in the order of
	// Tokens: nil for nobody. Calls come one after the other.
	Inputs func(in Inputs) error
	// HalfGELU rounds what goes into GELU and what comes out to 16 bits, as the table of the
	// reference's kernels does: for comparing with it.
	HalfGELU bool
	// Progress is called after each part of the work, from one goroutine; nil for nobody.
	Progress func(Progress)

	empty bool // linear layers say nothing: their weights are not read
}

// Progress is how far a run is.
type Progress struct {
	Done float64 // share of the work
	// Chunks are those whose tokens are predicted already, Value is the perplexity over
	// them. Chunks go through the model together, so that there is none until its end.
	Chunks int
	Value  float64
}

// Inputs are rows that meet the weights of a linear layer.
type Inputs struct {
	Name             string // of the tensor
	Matrix, Matrices int    // which of those in it, 0 of 1 as a rule
	Routed           bool   // tokens choose among the matrices
	Single           bool   // the runtime multiplies row by row, so that its tool does not see it
	Rows, Columns    int
	X                []float32 // [Rows, Columns], valid during the call
	// Product is the same number for tensors that meet the same rows in one product, one
	// after the other.
	Product int
}

// States are the last states of a model, normalized.
type States struct {
	model *Model
	width int
	Rows  int // Chunk - First for each chunk
	data  []float32
	run   Run
}

// blockTokens is about how many tokens go through a layer together: decoding a weight is
// shared by as many, and what lies between layers is held for as many. Tests set it.
var blockTokens = 2048

// stream is what goes through a model.
type stream struct {
	m      *Model
	r      *Run
	ctx    context.Context
	h      []float32 // [tokens, width]
	at     int       // the first token of those that go through a layer together
	values []float32 // of the first layer, for mixers that need them: [tokens, width]
	before int       // tokens in values that are before the stream's first
	chunk  int       // what rotations are for
	global []float32 // rotations
	local  []float32

	again bool // weights are read again for other tokens
	held  []*held
	rev   *reverse // nil forwards
	// strict says that what goes into linear layers and what comes out has to be finite; it is
	// for finding where something came from that is not.
	strict bool
	// products counts calls of linear.
	products int
	*room
}

// room is memory for what lies between layers. Streams that take turns may share it.
type room struct {
	x, qkv, a, mid, y []float32
	acc               []float32 // what experts add to h
	early             []float32 // what routers said before the layer
	keysLent          map[*lending][]float32
	tokens            []int32 // that go through a layer now
	latent            struct{ kv, q, a []float32 }
	xp                gemm.Panels
	scratch           []gemm.Scratch
	states            [][]float32  // of each worker, for mixers
	narrow            [2][]float32 // what experts read and say where it is narrower than the stream
	more              [3][]float32 // what lies between the parts of a mixer
	attending         []attending
	free              [][]byte // of rows that are not held any more
}

// newRoom returns the room for so many workers.
func newRoom(workers int) *room {
	n := max(1, workers)
	return &room{scratch: make([]gemm.Scratch, n), attending: make([]attending, n), states: make([][]float32, n)}
}

// Forward runs the model. Memory: two streams of 4*width bytes per token at most, three of RWKV 7 and four where
// experts have a width of their own, what lies between the layers for about 2048 tokens, and less than a megabyte for
// each worker and 1000 values of a row. Of a model that is encoded as it is read, the encoded rows of a layer, or of an
// expert, are held while there are more tokens than these.
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
	s, err := m.begin(ctx, runs, newRoom(r.Workers))
	if err != nil {
		return nil, err
	}
	for i := range m.layers {
		if err := s.pass(i, runs); err != nil {
			return nil, fmt.Errorf("%s: layer %d: %w", m.source.Path, i, err)
		}
	}
	return s.end(r)
}

// end returns the states of a stream that has been through all layers.
func (s *stream) end(r *Run) (*States, error) {
	m := s.m
	st := &States{model: m, width: m.p.width, Rows: len(s.h) / m.p.width, data: s.h, run: *r}
	if m.outNorm == nil {
		return st, nil
	}
	err := s.each(st.Rows, func(a, b int) { s.final(s.h[a*st.width:b*st.width], s.h[a*st.width:b*st.width]) })
	return st, err
}

// final sets dst to what the output matrix reads of rows that have been through all layers.
func (s *stream) final(dst, src []float32) {
	s.norm(s.m.outNorm, dst, src)
	if f := s.m.p.finalScale; f != 1 {
		vecmath.Scale(dst, dst, float32(f))
	}
}

// begin returns the stream of runs before the first layer.
func (m *Model) begin(ctx context.Context, runs []*Run, room *room) (*stream, error) {
	s := &stream{m: m, ctx: ctx, room: room}
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

// pass takes the stream of runs through layer i.
func (s *stream) pass(i int, runs []*Run) error {
	if err := s.blocks(i, runs); err != nil {
		return err
	}
	if l := &s.m.layers[i]; l.experts != nil {
		return s.mixture(l)
	}
	return nil
}

// blocks is pass as far as the layer's experts, block by block.
func (s *stream) blocks(i int, runs []*Run) error {
	l, last, width := &s.m.layers[i], i == len(s.m.layers)-1, s.m.p.width
	done, kept, all := 0, 0, len(s.h)
	s.again = len(runs) > 1 || all > max(1, blockTokens/runs[0].Chunk)*runs[0].Chunk*width
	for _, r := range runs {
		s.enter(r)
		for from := 0; from < len(r.Tokens); {
			n := s.block(len(r.Tokens) - from)
			s.at, s.tokens = done, r.Tokens[from:from+n]
			h, err := s.layer(l, s.h[done*width:][:n*width], n, last)
			if err != nil {
				return err
			}
			kept += copy(s.h[kept:], h) // in the last layer what is left is moved together
			from, done = from+n, done+n
			if r.Progress != nil {
				r.Progress(Progress{Done: (float64(i) + float64(done*width)/float64(all)) / float64(len(s.m.layers))})
			}
		}
	}
	s.drop()
	s.h = s.h[:kept]
	return nil
}

// block returns how many tokens, of those that are left of a run, go through a layer
// together: whole chunks.
func (s *stream) block(left int) int {
	return min(max(1, blockTokens/s.r.Chunk)*s.r.Chunk, left)
}

// enter makes the stream one of chunks of a run: what depends on positions is computed
// for their length.
func (s *stream) enter(r *Run) {
	if s.r = r; s.chunk == r.Chunk {
		return
	}
	s.chunk = r.Chunk
	factors := s.m.freqs
	if s.m.short != nil {
		if factors = s.m.short; r.Chunk > s.m.p.rope.original {
			factors = s.m.long
		}
	}
	s.global = s.m.p.rope.table(r.Chunk, factors)
	if s.m.graph.LocalHeads {
		factors = nil
	}
	s.local = s.m.p.localRope.table(r.Chunk, factors)
}

// norm normalizes rows; w nil copies them.
func (s *stream) norm(w *norm, dst, src []float32) {
	if w == nil {
		copy(dst, src)
		return
	}
	s.m.p.apply(w, dst, src, s.m.p.width)
}

// part is how many tokens a worker takes at once where rows do not depend on each other.
// It is a multiple of the rows of panels.
const part = 48

// each calls f for all of n rows, some at a time, from all workers.
func (s *stream) each(n int, f func(a, b int)) error {
	return s.eachErr(n, func(a, b int) error { f(a, b); return nil })
}

// eachErr is each for what may fail.
func (s *stream) eachErr(n int, f func(a, b int) error) error {
	return parallel.For(s.ctx, len(s.scratch), (n+part-1)/part,
		func(i, _ int) error { return f(i*part, min((i+1)*part, n)) })
}

// embed sets h to the embeddings of the tokens of the run, each of which is decoded once,
// after a norm if there is one.
func (s *stream) embed(h []float32, w *norm) error {
	p := s.m.p
	bufs, places := make([][]byte, len(s.scratch)), make([][]float32, len(s.scratch))
	if s.m.places != nil && s.r.Chunk > p.context {
		return fault.Errorf(fault.Refused, "%s: %d tokens at once, want at most %d, the positions that it has",
			s.m.source.Path, s.r.Chunk, p.context)
	}
	first, at := map[int32]int{}, []int(nil) // where a token is first
	for i, id := range s.r.Tokens {
		if id < 0 || int(id) >= p.vocab {
			return fault.Errorf(fault.Refused, "%s: token %d of the text is %d, want less than %d", s.m.source.Path,
				i, id, p.vocab)
		}
		if _, ok := first[id]; !ok {
			first[id], at = i, append(at, i)
		}
	}
	row := func(i int) []float32 { return h[i*p.width:][:p.width] }
	err := parallel.For(s.ctx, len(s.scratch), len(at), func(i, worker int) error {
		id := int64(s.r.Tokens[at[i]])
		if err := decode(s.m.embed, row(at[i]), &bufs[worker], id, id+1); err != nil {
			return fmt.Errorf("%s: tensor %q: %w", s.m.source.Path, s.m.embed.Name, err)
		}
		if !vecmath.Finite(row(at[i])) {
			return fault.Errorf(fault.Broken, "%s: tensor %q: the row of token %d is not finite", s.m.source.Path,
				s.m.embed.Name, id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, id := range s.r.Tokens {
		copy(row(i), row(first[id]))
	}
	return parallel.For(s.ctx, len(s.scratch), len(s.r.Tokens), func(i, worker int) error {
		row := row(i)
		if p.embedScale != 1 {
			vecmath.Scale(row, row, float32(p.embedScale))
		}
		if s.m.kind != nil {
			vecmath.Add(row, s.m.kind)
		}
		if s.m.places != nil {
			place := grow(&places[worker], p.width)
			at := int64(i % s.r.Chunk)
			if err := decode(s.m.places, place, &bufs[worker], at, at+1); err != nil {
				return fmt.Errorf("%s: tensor %q: %w", s.m.source.Path, s.m.places.Name, err)
			}
			vecmath.Add(row, place)
		}
		if w != nil {
			s.norm(w, row, row)
		}
		return nil
	})
}

// linear sets dst, of rows that are ld apart, to the outputs of layers for rows of x, one
// after the other in each row.
func (s *stream) linear(dst []float32, ld int, x []float32, rows int, layers ...*linear) error {
	k := layers[0].w.K
	s.products++
	leave := false
	if s.r.Inputs != nil {
		for _, l := range layers {
			if l.silent {
				continue
			}
			in := l.inputs(x, rows)
			in.Product = s.products
			switch err := s.r.Inputs(in); err {
			case nil:
			case errLeaveOut:
				leave = true
			default:
				return err
			}
		}
	}
	if s.r.empty || leave {
		columns := 0
		for _, l := range layers {
			columns += l.w.Rows
		}
		for t := range rows {
			clear(dst[t*ld:][:columns])
		}
		return nil
	}
	s.xp.Reset(rows, k)
	if err := s.each(rows, func(a, b int) { s.xp.PackRows(x[a*k:], k, a, b) }); err != nil {
		return err
	}
	if s.strict && !vecmath.Finite(x[:rows*k]) {
		return fault.Errorf(fault.Broken, "tensor %q: what it is multiplied by is not finite", layers[0].name)
	}
	at := 0
	for _, l := range layers {
		if err := gemm.Product(s.ctx, s.scratch, dst[at:], ld, &s.xp, s.weights(l.w)); err != nil {
			return err
		}
		if l.scale != nil || l.bias != nil {
			if err := s.each(rows, func(a, b int) {
				for t := a; t < b; t++ {
					row := dst[t*ld+at:][:l.w.Rows]
					if l.scale != nil {
						vecmath.Scale(row, row, *l.scale)
					}
					if l.bias != nil {
						vecmath.Add(row, l.bias)
					}
				}
			}); err != nil {
				return err
			}
		}
		for t := 0; s.strict && t < rows; t++ {
			if !vecmath.Finite(dst[t*ld+at:][:l.w.Rows]) {
				return fault.Errorf(fault.Broken, "tensor %q%s: its output for token %d is not finite", l.name,
					l.which(), t)
			}
		}
		at += l.w.Rows
	}
	return nil
}

// which says which matrix of a tensor of several it is.
func (l *linear) which() string {
	if l.of > 1 {
		return fmt.Sprintf(", matrix %d", l.matrix)
	}
	return ""
}

// sound returns an error if y, rows of so many tokens that again computes, has a value
// that is not finite: it is computed again, with a look at each product.
func (s *stream) sound(y []float32, again func() error) error {
	var broken atomic.Bool
	err := s.each(len(y)/s.m.p.width, func(a, b int) {
		if !vecmath.Finite(y[a*s.m.p.width : b*s.m.p.width]) {
			broken.Store(true)
		}
	})
	if err != nil || !broken.Load() {
		return err
	}
	s.strict = true
	defer func() { s.strict = false }()
	if err := again(); err != nil {
		return err
	}
	return fault.Errorf(fault.Broken, "what it computes is not finite")
}

func (l *linear) inputs(x []float32, rows int) Inputs {
	k := l.w.K
	return Inputs{Name: l.name, Matrix: l.matrix, Matrices: max(1, l.of), Routed: l.routed, Single: l.single,
		Rows: rows, Columns: k, X: x[:rows*k]}
}

// layer takes the states of n tokens, whole chunks, through a layer, or as far as its
// experts. It returns those that are left: in the last layer those that are wanted.
func (s *stream) layer(l *layer, h []float32, n int, last bool) ([]float32, error) {
	p := s.m.p
	if l.experts != nil && l.experts.early {
		if err := s.routeEarly(l.experts, h, n, last); err != nil {
			return nil, err
		}
	}
	x := h
	if l.attnNorm != nil {
		x = grow(&s.x, n*p.width)
		if err := s.each(n, func(a, b int) {
			s.norm(l.attnNorm, x[a*p.width:b*p.width],
				h[a*p.width:b*p.width])
		}); err != nil {
			return nil, err
		}
	}
	y := grow(&s.y, n*p.width)
	early := last && !l.whole
	mix := func() error { return l.mixer.mix(s, y, x, n, early) }
	if err := mix(); err != nil {
		return nil, err
	}
	kept := n
	if early {
		kept = s.wanted(n)
	}
	if err := s.sound(y[:kept*p.width], mix); err != nil {
		return nil, err
	}
	if early && s.r.First > 0 {
		if l.attnNorm != nil {
			s.keep(x, p.width, n)
		}
		n = s.keep(h, p.width, n)
		h = h[:n*p.width]
	}
	in := grow(&s.x, n*p.width) // of the feed-forward layer
	err := s.each(n, func(a, b int) {
		a, b = a*p.width, b*p.width
		if l.parallel && l.ffnNorm != nil {
			s.norm(l.ffnNorm, in[a:b], h[a:b])
		}
		if l.sums[1] != nil {
			copy(in[a:b], h[a:b])
		}
		s.add(h[a:b], y[a:b], l.postAttn)
		if l.sums[0] != nil {
			s.norm(l.sums[0], h[a:b], h[a:b])
		}
		if l.sums[1] != nil {
			vecmath.Add(h[a:b], in[a:b])
			s.norm(l.sums[1], h[a:b], h[a:b])
		}
		if l.feed != nil && !l.parallel {
			s.norm(l.ffnNorm, in[a:b], h[a:b])
		}
	})
	if err != nil {
		return nil, err
	}
	if l.feed != nil {
		feed := func() error { return l.feed.mix(s, y, in, n, false) }
		if err := feed(); err != nil {
			return nil, err
		}
		if err := s.sound(y[:n*p.width], feed); err != nil {
			return nil, err
		}
		if err := s.each(n, func(a, b int) {
			s.finish(l, h[a*p.width:b*p.width],
				y[a*p.width:b*p.width])
		}); err != nil {
			return nil, err
		}
	}
	if l.after != nil {
		if err := s.follow(l.after, h, early); err != nil {
			return nil, err
		}
	}
	if l.scale != nil {
		if err := s.each(n, func(a, b int) {
			vecmath.Scale(h[a*p.width:b*p.width], h[a*p.width:b*p.width],
				*l.scale)
		}); err != nil {
			return nil, err
		}
	}
	if l.halved {
		if err := s.each(n, func(a, b int) {
			vecmath.Scale(h[a*p.width:b*p.width], h[a*p.width:b*p.width],
				0.5)
		}); err != nil {
			return nil, err
		}
	}
	if last && l.whole {
		h = h[:s.keep(h, p.width, n)*p.width]
	}
	return h, nil
}

// project sets y to the output of a layer for rows of a, one for each of n tokens; if it
// is the last layer's, only for rows that are wanted, which it moves together.
func (s *stream) project(y, a []float32, n int, last bool, out *linear) error {
	if last {
		n = s.keep(a, out.w.K, n)
	}
	return s.linear(y, out.w.Rows, a, n, out)
}

// wanted returns how many of n tokens, whole chunks, are at positions from First on.
func (s *stream) wanted(n int) int { return n / s.r.Chunk * (s.r.Chunk - s.r.First) }

// keep moves the rows of x that are of positions from First on to its beginning, and
// returns how many they are.
func (s *stream) keep(x []float32, width, n int) (kept int) {
	if s.r.First == 0 {
		return n
	}
	for t := range n {
		if t%s.r.Chunk >= s.r.First {
			copy(x[kept*width:], x[t*width:][:width])
			kept++
		}
	}
	return kept
}

// add adds what a part of a layer computed to the stream, after its norm and scale.
func (s *stream) add(h, y []float32, post *norm) {
	if post != nil {
		s.norm(post, y, y)
	}
	if f := s.m.p.residualScale; f != 1 {
		vecmath.Scale(y, y, float32(f))
	}
	vecmath.Add(h, y)
}

// finish adds what the feed-forward layer or the experts computed.
func (s *stream) finish(l *layer, h, y []float32) {
	if s.add(h, y, l.postFFN); l.sums[2] != nil {
		s.norm(l.sums[2], h, h)
	}
}

func halfGELU(dst, src []float32) {
	for i, x := range src {
		switch {
		case x <= -10:
			x = 0
		case x < 10:
			x = half.RoundF16(vecmath.GELU(half.RoundF16(x)))
		}
		dst[i] = x
	}
}

// act returns an activation, or what the reference has in its place.
func (s *stream) act(f vecmath.Function) func(dst, src []float32) {
	if s.r.HalfGELU && f.Is(vecmath.GELUOf) {
		return halfGELU
	}
	return f.Apply
}

// feedForward is a layer of two or three matrices.
type feedForward struct {
	gate, up, down *linear // gate nil for none
	ff             int
	fused          bool // up has the rows of the gate, then its own
	unit           unit // nil for the graph's activation
}

// mix is forward: no token sees another.
func (f *feedForward) mix(s *stream, y, x []float32, n int, _ bool) error {
	return s.forward(f, y, x, n)
}

// forward sets y to the output of a feed-forward layer for rows of x.
func (s *stream) forward(f *feedForward, y, x []float32, rows int) error {
	ld, layers := f.ff, []*linear{f.up}
	gated := f.gate != nil || f.fused
	if gated {
		ld = 2 * f.ff
	}
	if f.gate != nil {
		layers = []*linear{f.gate, f.up}
	}
	mid := grow(&s.mid, rows*ld)
	if err := s.linear(mid, ld, x, rows, layers...); err != nil {
		return err
	}
	hidden := grow(&s.a, rows*f.ff)
	act := s.act(s.m.p.act)
	if !gated && s.m.graph.Ungated != nil {
		act = s.act(*s.m.graph.Ungated)
	}
	if err := s.each(rows, func(a, b int) {
		for t := a; t < b; t++ {
			row, y := mid[t*ld:][:ld], hidden[t*f.ff:][:f.ff]
			if f.unit != nil {
				f.unit.apply(y, row[:f.ff], row[f.ff:])
				continue
			}
			act(y, row[:f.ff])
			if gated {
				vecmath.Mul(y, row[f.ff:])
			}
		}
	}); err != nil {
		return err
	}
	return s.linear(y, f.down.w.Rows, hidden, rows, f.down)
}

// logitRows is how many rows of logits are computed at once.
const logitRows = 192

// block is the logits of some rows, and what computes them.
type block struct {
	s      *stream
	logits []float32
}

// block returns what computes logits.
func (st *States) block(ctx context.Context) *block {
	return st.blockIn(ctx, newRoom(st.run.Workers), make([]float32, min(logitRows, st.Rows)*st.model.p.vocab))
}

// blockIn is block in memory that others use, too, when it is not their turn.
func (st *States) blockIn(ctx context.Context, room *room, logits []float32) *block {
	return &block{&stream{m: st.model, r: &Run{}, ctx: ctx, room: room, again: st.Rows > logitRows}, logits}
}

// rows sets the logits to those of n rows from row from on.
func (b *block) rows(st *States, from, n int) error {
	m, vocab := st.model, st.model.p.vocab
	if m.output == nil {
		return m.mustPredict()
	}
	if err := b.s.linear(b.logits, vocab, st.data[from*st.width:][:n*st.width], n, m.output); err != nil {
		return fmt.Errorf("%s: %w", m.source.Path, err)
	}
	return b.s.each(n, func(x, y int) {
		row := b.logits[x*vocab : y*vocab]
		if m.p.logitScale != 1 {
			vecmath.Scale(row, row, float32(m.p.logitScale))
		}
		if m.p.finalCap != 0 {
			squash(row, float32(m.p.finalCap))
		}
	})
}

// Inputs returns the states as what the output matrix reads: of the tensor that is the
// embedding as well, where a model has no other. The model is one that predicts tokens.
func (st *States) Inputs() Inputs {
	in := st.model.output.inputs(st.data, st.Rows)
	in.Product = -1
	return in
}

// Logits calls f with the logits of each row, from several goroutines; a row is valid
// during the call.
func (st *States) Logits(ctx context.Context, f func(row int, logits []float32) error) error {
	return st.logits(ctx, f, func(int) {})
}

// logits is Logits, and calls done with how many rows there have been.
func (st *States) logits(ctx context.Context, f func(row int, logits []float32) error, done func(rows int)) error {
	b, vocab := st.block(ctx), st.model.p.vocab
	for from := 0; from < st.Rows; from += logitRows {
		n := min(logitRows, st.Rows-from)
		if err := b.rows(st, from, n); err != nil {
			return err
		}
		if err := parallel.For(ctx, len(b.s.scratch), n,
			func(i, _ int) error { return f(from+i, b.logits[i*vocab:][:vocab]) }); err != nil {
			return err
		}
		done(from + n)
	}
	return nil
}
