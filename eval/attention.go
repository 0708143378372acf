package eval

import (
	"fmt"
	"math"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// heads are the heads of an attention; several query heads may share a head of keys and values (GQA).
type heads struct {
	n, kv            int // heads, and those of keys and values
	keyLen, valueLen int
	scale, softCap   float32 // of scores; softCap 0 for none
	window           int     // tokens, 0 for all
	chunkedWindow    bool    // windows begin at multiples of their length
	bidirectional    bool    // not causal
	symmetricWindow  bool    // half of the window to each side
	// relative position bias of distances -maxDistance to maxDistance, for each head; or nil
	positionBias []float32
	sinks        []float32 // one for each head, or nil
	indexer      []*linear // matrices of an indexer, of which only the inputs are needed, that of queries last; or nil
	alibiSlopes  []float32 // one for each head, or nil
}

// attention is a mixer: multi-head attention with queries, keys and values from projections of its inputs.
type attention struct {
	heads
	q, k, v, qkv, out *linear // qkv or q, k and v; k and v nil where they are another layer's, v nil where it is k
	gated             bool    // each head of q has a query and a gate of the head's outputs
	gate              *linear // of outputs: for each value or for each head; or nil
	gateFunction      gateFunction
	outNorm           *norm         // over the outputs of all heads, or nil
	valueExperts      *valueExperts // in place of v, or nil
	steps             []headStep
	source            *attention // the layer whose keys and values it reuses, nil for its own
	shared            bool       // a later layer reuses its keys and values
}

var _ = operation(newAttention)

// newAttention returns the attention of the layer.
func newAttention(b *builder, a graph.Attention) mixer {
	p, t, i := b.p, b.t, b.Layer()
	l := &attention{heads: b.heads(a)}
	b.attentions[i] = l
	nq, nk, nv := l.n*l.keyLen, l.kv*l.keyLen, l.kv*l.valueLen
	projection, own := a.QKV, true
	if shared, ok := projection.(graph.SharedKV); ok {
		from := b.size(shared.From)
		if projection, own = shared.Own, i < from; !own {
			l.reuse(b, b.size(shared.Layer))
		}
	}
	values := true // there is a matrix of values
	switch projection.(type) {
	case nil, graph.Separate:
	case graph.GatedQueries:
		if l.gated = true; l.keyLen != l.valueLen {
			t.fail(errUnsupported, "layer %d has keys of %d values and values of %d, want the same", i, l.keyLen,
				l.valueLen)
		}
		nq *= 2
	case graph.ValueExperts:
		if t.all[b.name("attn_v_exps.weight")] != nil {
			values, l.valueExperts = false, newValueExperts(b, nv)
		}
	case graph.KeysAsValues:
		if values = t.all[b.name("attn_v.weight")] != nil; !values && l.keyLen != l.valueLen {
			t.fail(errBroken, "layer %d has keys of %d values as its values, of %d", i, l.keyLen, l.valueLen)
		}
	default:
		b.unsupported("projection", projection)
	}
	if own && !l.gated {
		l.qkv = t.linear(b.name("attn_qkv"), p.width, nq+nk+nv)
	}
	if l.qkv == nil {
		l.q = t.requiredLinear(b.name("attn_q"), p.width, nq)
		if own {
			l.k = t.requiredLinear(b.name("attn_k"), p.width, nk)
		}
		if own && values {
			l.v = t.requiredLinear(b.name("attn_v"), p.width, nv)
		}
	}
	l.steps = b.headSteps(a.Steps, &l.heads, own)
	out := a.Out
	if out == "" {
		out = "attn_output"
	}
	l.out = t.requiredLinear(b.name(out), l.n*l.valueLen, p.width)
	b.outSteps(l, a.After)
	return l
}

// reuse makes a layer use the keys and values of an earlier one.
func (l *attention) reuse(b *builder, at int) {
	if at < b.Layer() {
		l.source = b.attentions[at]
	}
	switch s := l.source; {
	case s != nil && s.window != l.window:
		b.t.fail(errBroken, "layer %d reuses the keys of layer %d, whose window is another; llama.cpp does not load that",
			b.Layer(), at)
	case s == nil || s.source != nil || s.kv != l.kv || s.keyLen != l.keyLen || s.valueLen != l.valueLen:
		b.t.fail(errUnsupported, "layer %d reuses the keys of layer %d, whose heads differ", b.Layer(), at)
	}
	l.source.shared = true
	for _, name := range []string{"attn_k.weight", "attn_v.weight", "attn_k_norm.weight"} { // some files have them
		b.t.used[b.name(name)] = true
	}
}

// outSteps adds what changes the outputs of heads.
func (b *builder) outSteps(l *attention, steps []graph.OutStep) {
	for _, s := range steps {
		switch s := s.(type) {
		case graph.OutGate:
			if l.gate = b.outGate(&l.heads); l.gate == nil {
				b.t.required(b.name("attn_gate.weight"))
			}
			if l.gated {
				b.unsupported("gates next to queries, and", s)
			}
		case graph.SoftplusGate:
			if l.gate = b.outGate(&l.heads); l.gate == nil && !s.May {
				b.t.required(b.name("attn_gate.weight"))
			}
			if l.gateFunction = softplusGate; s.Binary {
				l.gateFunction = binarySoftplusGate
			}
		case graph.OutNorm:
			l.outNorm = b.t.requiredNorm(b.name(s.Name), l.n*l.valueLen)
		case graph.OutFactor: // of the products, as llama.cpp has it
			if f := float32(b.float(s.By)); f != 1 {
				if l.out.scale != nil {
					f *= *l.out.scale
				}
				l.out.scale = &f
			}
		default:
			b.unsupported("step of attention outputs", s)
		}
	}
}

// outGate returns the gate of the outputs of heads, for each value or for each head; nil for none.
func (b *builder) outGate(h *heads) *linear {
	name, n := b.name("attn_gate"), h.n*h.valueLen
	if x := b.t.all[name+".weight"]; x != nil && len(x.NE) == 2 && x.NE[1] == int64(h.n) {
		n = h.n
	}
	return b.t.linear(name, b.p.width, n)
}

// gateFunction is the function of output gates.
type gateFunction int

const (
	sigmoidGate        gateFunction = iota
	softplusGate                    // ln(1 + e^x)
	binarySoftplusGate              // log2(1 + 2^x)
)

func (f gateFunction) apply(x []float32) {
	switch f {
	case sigmoidGate:
		vecmath.SigmoidOf.Apply(x, x)
	case softplusGate:
		vecmath.SoftplusOf.Apply(x, x)
	case binarySoftplusGate:
		vecmath.Scale(x, x, math.Ln2)
		vecmath.SoftplusOf.Apply(x, x)
		vecmath.Scale(x, x, 1/math.Ln2)
	}
}

// heads returns the heads of an attention.
func (b *builder) heads(a graph.Attention) heads {
	h := heads{n: b.size("n_head"), kv: b.size("n_head_kv"), keyLen: b.size("n_embd_head_k"),
		valueLen: b.size("n_embd_head_v"), scale: float32(b.float(a.ScoreScale()))}
	h.bidirectional = b.p.bidirectional || a.Sees == graph.Both
	switch i := b.Layer(); {
	case h.n == 0 || h.kv == 0:
		b.t.fail(errUnsupported,
			"layer %d has %d heads and %d of keys: layers without attention are not supported for this architecture", i,
			h.n, h.kv)
	case h.n%h.kv != 0:
		b.t.fail(errBroken, "layer %d has %d heads, want a multiple of %d KV heads", i, h.n, h.kv)
	case h.keyLen == 0 || h.keyLen > 1<<14 || h.valueLen == 0 || h.valueLen > 1<<14:
		b.t.fail(errBroken, "layer %d has keys of %d values, and values of %d, want 1 to %d", i, h.keyLen, h.valueLen,
			1<<14)
	}
	if a.Window.Tokens != "" {
		h.window = b.size(a.Window.Tokens)
	}
	if a.Sees == graph.CausalWhole && h.window == 0 {
		h.bidirectional = false
	}
	switch a.Window.Shape {
	case graph.SlidingWindow:
	case graph.ChunkedWindow:
		h.chunkedWindow = true
	case graph.SymmetricWindow:
		h.symmetricWindow = true
	default:
		b.unsupported("shape of windows", a.Window)
	}
	b.scoreSteps(&h, a.Scores)
	return h
}

// scoreSteps adds what changes scores. softmax applies steps in the order of these cases.
func (b *builder) scoreSteps(h *heads, steps []graph.ScoreStep) {
	last := -1
	for _, s := range b.ScoreSteps(steps) {
		place := 0
		switch s := s.(type) {
		case graph.SoftCap:
			h.softCap = float32(b.float(s.By))
		case graph.ALiBi:
			place, h.alibiSlopes = 1, alibiSlopes(b.float(s.Max), h.n)
		case graph.RelativeBias:
			place, h.positionBias = 2, b.relativePositionBias(h)
		case graph.Sinks:
			place, h.sinks = 3, b.t.vector(b.name("attn_sinks.weight"), h.n)
			if h.sinks == nil {
				b.t.fail(errBroken, "no tensor %q", b.name("attn_sinks.weight"))
			}
		case graph.BlockIndexer:
			b.indexer("the %d tokens of attention.indexer.top_k blocks",
				"@attention.indexer.top_k * @attention.indexer.block_size",
				"indexer.q_proj.weight", "indexer.k_proj.weight", "indexer.q_norm.weight", "indexer.k_norm.weight")
			continue
		case graph.PooledIndexer:
			tensors := []string{"indexer.q_proj.weight", "indexer.k_proj.weight", "indexer.q_norm.weight",
				"indexer.k_norm.weight"}
			if b.size("@attention.compress_ratios or 0") == 0 { // it is not used
				b.indexer("", "", tensors...)
				continue
			}
			b.indexer("the %d tokens of attention.indexer.top_k", "@attention.indexer.top_k", tensors...)
			count, size := b.count("@attention.indexer.head_count"), b.count("@attention.indexer.key_length")
			h.indexer = []*linear{b.t.requiredLinear(b.name("indexer.k_proj"), b.p.width, size),
				b.t.requiredLinear(b.name("indexer.q_proj"), b.p.width, count*size)}
			continue
		case graph.Indexer:
			what, most := "the %d tokens of attention.indexer.top_k", graph.Num("@attention.indexer.top_k")
			if s.Pooled {
				what, most = b.pools()
			}
			b.indexer(what, most, "indexer.k_norm.weight", "indexer.k_norm.bias")
			count, size := b.count("@attention.indexer.head_count"), b.count("@attention.indexer.key_length")
			h.indexer = []*linear{b.t.requiredLinear(b.name("indexer.attn_k"), b.p.width, size),
				b.t.requiredLinear(b.name("indexer.proj"), b.p.width, count)}
			if s.Pooled {
				h.indexer = append(h.indexer, b.t.requiredLinear(b.name("indexer_compressor_gate"), b.p.width, size))
			}
			h.indexer = append(h.indexer, b.t.requiredLinear(b.name("indexer.attn_q_b"), b.size("n_lora_q"), count*size))
			continue
		case graph.SharedIndexer:
			b.indexer("the %d tokens of attention.indexer.top_k", "@attention.indexer.top_k")
			continue
		default:
			b.unsupported("step of scores", s)
		}
		if place <= last {
			b.unsupported("in this order, the step of scores", s)
		}
		last = place
	}
}

// pools returns the limit of an indexer of pools: besides the tokens that it chooses, all but one of a pool may be seen.
func (b *builder) pools() (what string, most graph.Num) {
	if v, ok := b.Value("@attention.indexer.kpool_select_tail"); ok && v.Float() == 0 {
		b.fail(errUnsupported, "%q is false, want true", b.p.arch+".attention.indexer.kpool_select_tail")
	}
	pool := b.count("@attention.indexer.kpool")
	b.t.required(b.name("indexer_compressor_ape.weight"), b.count("@attention.indexer.key_length"), pool)
	return "the %d tokens of attention.indexer.top_k and a pool less one",
		"@attention.indexer.top_k + @attention.indexer.kpool - 1"
}

// indexer limits chunks to the number of tokens of which an indexer leaves out none, so that nothing of it is computed;
// most is "" for no limit.
func (b *builder) indexer(what string, most graph.Num, tensors ...string) {
	if most != "" {
		if n := b.count(most); b.m.maxChunk == 0 || n < b.m.maxChunk {
			b.m.maxChunk, b.m.maxChunkOf = n, fmt.Sprintf(what, n)
		}
	}
	for _, name := range tensors {
		b.t.used[b.name(name)] = true
	}
}

// alibiSlopes returns the ALiBi slopes of heads from the largest ALiBi bias, nil for 0.
func alibiSlopes(most float64, heads int) []float32 {
	if most == 0 {
		return nil
	}
	power := 1
	for power*2 <= heads {
		power *= 2
	}
	slopes := make([]float32, heads)
	for h := range slopes {
		bias, n := most, h+1
		if h >= power {
			bias, n = most/2, 2*(h-power)+1
		}
		slopes[h] = float32(vecmath.Pow(vecmath.Pow(2, -bias/float64(power)), float64(n)))
	}
	return slopes
}

func (l *attention) mix(s *stream, y, x []float32, n int, last bool) error {
	qkv, err := l.project(s, x, n)
	if err != nil {
		return err
	}
	ld, shared := l.qkvLen(), s.sharedKV(l)
	if err := s.eachRows(n, func(a, b int) {
		cache := s.m.cache.coder(&l.heads)
		for t := a; t < b; t++ {
			l.prepare(s, qkv[t*ld:][:ld], shared, t, cache)
		}
	}); err != nil {
		return err
	}
	no := l.n * l.valueLen
	out := buffer.Resize(&s.a, n*no)
	if err := l.eachGroup(s, n, func(worker *attentionScratch, chunk span, head, q, k, v, o int) {
		at := chunk.at * ld
		keys, nk := worker.seen(0, qkv[k-at:], chunk, ld, l.keyLen)
		values, nv := worker.seen(1, qkv[v-at:], chunk, ld, l.valueLen)
		l.attend(worker, head, out[o:], qkv[q:], keys, values, chunk.n, chunk.prefix.n+chunk.n, ld, nk, nv, no)
	}); err != nil {
		return err
	}
	switch {
	case l.gated:
		err = s.eachRows(n, func(a, b int) {
			for i := a * l.n; i < b*l.n; i++ {
				_, gate := l.gatedQuery(s.queries, i)
				vecmath.SigmoidOf.Apply(gate, gate)
				vecmath.Mul(out[i*l.keyLen:][:l.keyLen], gate)
			}
		})
	case l.gate != nil:
		if err = l.computeGates(s, &s.qkv, x, n); err == nil {
			err = s.eachRows(n, func(from, to int) { l.applyGates(out, s.qkv, from, to) })
		}
	}
	if err == nil && l.outNorm != nil {
		err = s.eachRows(n, func(a, b int) {
			s.m.p.normalize(l.outNorm, out[a*no:b*no], out[a*no:b*no], no)
		})
	}
	if err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}

// gatedQuery returns the query and the gate of a head of a token, which is number i of the heads of all tokens.
func (l *attention) gatedQuery(queries []float32, i int) (query, gate []float32) {
	both := queries[2*i*l.keyLen:][:2*l.keyLen]
	return both[:l.keyLen], both[l.keyLen:]
}

// qkvLen is the length of a row of queries, keys and values.
func (l *heads) qkvLen() int { return l.n*l.keyLen + l.kv*(l.keyLen+l.valueLen) }

// eachGroup calls f for each group of heads in each chunk of n tokens: with the chunk, the number of the first
// head, and the offsets of its queries, keys, values and attention outputs.
func (l *heads) eachGroup(s *stream, n int,
	f func(worker *attentionScratch, chunk span, head, q, k, v, out int)) error {
	chunks := s.chunks(n)
	return parallel.For(s.ctx, len(s.attention), len(chunks)*l.kv, func(i, worker int) error {
		chunk, kv := chunks[i/l.kv], i%l.kv
		c := chunk.at
		head, row := kv*(l.n/l.kv), c*l.qkvLen()
		keys := row + l.n*l.keyLen
		f(&s.attention[worker], chunk, head, row+head*l.keyLen, keys+kv*l.keyLen, keys+l.kv*l.keyLen+kv*l.valueLen,
			(c*l.n+head)*l.valueLen)
		return nil
	})
}

// project returns the queries, keys and values of n tokens as the projections output them. Of queries with gates the
// outputs are in s.queries, too.
func (l *attention) project(s *stream, x []float32, n int) ([]float32, error) {
	ld := l.qkvLen()
	qkv := buffer.Resize(&s.qkv, n*ld)
	if l.indexer != nil {
		if _, err := s.reportInputs(x, n, l.indexer...); err != nil {
			return nil, err
		}
	}
	if !l.gated {
		err := s.linear(qkv, ld, x, n, l.projections()...)
		if err == nil && l.valueExperts != nil {
			err = l.valueExperts.compute(s, qkv[l.n*l.keyLen+l.kv*l.keyLen:], ld, x, n)
		}
		return qkv, err
	}
	nq := l.n * l.keyLen
	queries := buffer.Resize(&s.queries, n*2*nq)
	if err := s.linear(queries, 2*nq, x, n, l.q); err != nil {
		return nil, err
	}
	if err := s.linear(qkv[nq:], ld, x, n, l.k, l.v); err != nil {
		return nil, err
	}
	return qkv, s.eachRows(n, func(a, b int) {
		for i := a * l.n; i < b*l.n; i++ {
			query, _ := l.gatedQuery(queries, i)
			copy(qkv[i/l.n*ld+i%l.n*l.keyLen:], query)
		}
	})
}

// projections returns the matrices of a row of queries, keys and values.
func (l *attention) projections() []*linear {
	if l.qkv != nil {
		return []*linear{l.qkv}
	}
	list := []*linear{l.q}
	for _, x := range []*linear{l.k, l.v} {
		if x != nil {
			list = append(list, x)
		}
	}
	return list
}

// prepare applies the steps to the queries, keys and values of token t, and the cache to its own keys and values. shared
// are the keys and values that layers share, or nil.
func (l *attention) prepare(s *stream, row, shared []float32, t int, cache *kvCoder) {
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	kv := row[nq:]
	switch {
	case l.source != nil:
		copy(kv, shared[(s.firstToken+t)*len(kv):][:len(kv)])
	case l.keysAreValues():
		copy(kv[nk:], kv[:nk])
	}
	for _, step := range l.steps {
		step.apply(s, l.parts(row), t)
	}
	if l.source == nil {
		cache.code(kv[:nk], kv[nk:])
	}
	if l.shared {
		copy(shared[(s.firstToken+t)*len(kv):], kv)
	}
}

// keysAreValues reports whether the values are the keys before their steps.
func (l *attention) keysAreValues() bool {
	return l.source == nil && l.v == nil && l.qkv == nil && l.valueExperts == nil
}

// parts returns what steps may change of a row.
func (l *attention) parts(row []float32) headRow {
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	r := headRow{heads: &l.heads, all: row, q: row[:nq], k: row[nq:][:nk], v: row[nq+nk:]}
	if l.source != nil {
		r.all, r.k, r.v = r.q, nil, nil
	}
	return r
}

// sharedKV returns the keys and values that layers share with l, of all tokens; nil if it shares none. Each such layer
// takes 4 bytes for each token and value of its keys and values.
func (s *stream) sharedKV(l *attention) []float32 {
	source := l
	if l.source != nil {
		source = l.source
	}
	if !source.shared {
		return nil
	}
	if s.sharedKVs == nil {
		s.sharedKVs = map[*attention][]float32{}
	}
	if s.sharedKVs[source] == nil {
		s.sharedKVs[source] = make([]float32, len(s.h)/s.m.p.width*source.kv*(source.keyLen+source.valueLen))
	}
	return s.sharedKVs[source]
}

// computeGates computes the output gates of n tokens into to.
func (l *attention) computeGates(s *stream, to *[]float32, x []float32, n int) error {
	gates := l.gate.w.Rows
	g := buffer.Resize(to, n*gates)
	if err := s.linear(g, gates, x, n, l.gate); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) { l.gateFunction.apply(g[a*gates : b*gates]) })
}

// applyGates multiplies rows [a, b) of x, the concatenated outputs of the heads, by their gates.
func (l *attention) applyGates(x, gates []float32, a, b int) {
	row, n := l.n*l.valueLen, l.gate.w.Rows
	x, gates = x[a*row:b*row], gates[a*n:b*n]
	if n == row {
		vecmath.Mul(x, gates)
		return
	}
	for i, f := range gates {
		head := x[i*l.valueLen:][:l.valueLen]
		vecmath.Scale(head, head, f)
	}
}

// queryBlock is the number of queries that are multiplied with keys at once.
const queryBlock = 64

// attentionScratch is the memory of one worker.
type attentionScratch struct {
	gemm           gemm.Scratch
	q, k, p, v     gemm.Panels
	scores, values []float32
	joined         [2][]float32 // keys and values of a chunk with its prefix
	// of the backward pass: keys by element, values by token, the factor of transposed weights
	back struct {
		k, v, x             gemm.Panels
		scores, slopes, sum []float32
	}
}

// attend sets out to the attention outputs of the heads of one group in one chunk of n tokens, which attend to keys
// tokens: the same, also after those of a prefix, or, without a causal mask, others. q, k, v and out begin with the
// first token and the group's first head, which is number head, and have rows of nq, nk, nv and no values.
func (l *heads) attend(s *attentionScratch, head int, out, q, k, v []float32, n, keys, nq, nk, nv, no int) {
	s.k.PackRight(k, nk, keys, l.keyLen)
	s.v.PackRight(transpose(&s.values, v, nv, keys, l.valueLen), keys, l.valueLen, keys)
	scores := buffer.Resize(&s.scores, queryBlock*keys)
	before := 0 // tokens before the first query
	if !l.bidirectional {
		before = keys - n
	}
	for h := range l.n / l.kv {
		for from := 0; from < n; from += queryBlock {
			rows, columns := min(queryBlock, n-from), keys
			if !l.bidirectional {
				columns = min(before+from+queryBlock, keys) // causal
			}
			s.q.Pack(q[from*nq+h*l.keyLen:], nq, rows, l.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			for t := range rows {
				row := scores[t*columns:][:columns]
				at := before + from + t
				first, end := l.visible(at, keys)
				l.softmax(head+h, row[first:end], at-first)
				clear(row[:first])
				clear(row[end:])
			}
			s.p.Pack(scores, columns, rows, columns)
			gemm.Multiply(&s.gemm, out[from*no+h*l.valueLen:], no, &s.p, &s.v, l.valueLen)
		}
	}
}

// visible returns the range [first, end) of n tokens that the token at a position attends to.
func (l *heads) visible(at, n int) (first, end int) {
	if end = at + 1; l.bidirectional {
		end = n
	}
	switch {
	case l.window == 0:
	case l.chunkedWindow:
		first = at / l.window * l.window
	case l.symmetricWindow:
		first, end = max(0, at-l.window/2), min(end, at+l.window/2+1)
	default:
		first = max(0, at+1-l.window)
	}
	return first, end
}

// softmax turns the scores of a head into weights; own is the index of the query's own token.
func (l *heads) softmax(head int, x []float32, own int) {
	vecmath.Scale(x, x, l.scale)
	if l.softCap != 0 {
		softCap(x, l.softCap)
	}
	if l.alibiSlopes != nil {
		for i := range x {
			x[i] += float32(l.alibiSlopes[head] * float32(-max(i-own, own-i)))
		}
	}
	if l.positionBias != nil {
		bias := l.positionBias[head*(2*maxDistance+1):][:2*maxDistance+1]
		for i := range x {
			x[i] += bias[maxDistance+max(-maxDistance, min(maxDistance, i-own))]
		}
	}
	most, _ := vecmath.Max(x)
	if l.sinks != nil {
		most = max(most, l.sinks[head])
	}
	for i := range x {
		x[i] -= most
	}
	vecmath.ExpOf.Apply(x, x)
	sum := vecmath.Sum(x)
	if l.sinks != nil {
		sum += float64(vecmath.Exp(l.sinks[head] - most))
	}
	vecmath.Scale(x, x, float32(1/sum))
}

// transpose returns the transpose of x [rows, columns], whose rows are ld apart.
func transpose(to *[]float32, x []float32, ld, rows, columns int) []float32 {
	y := buffer.Resize(to, rows*columns)
	for t := range rows {
		for i, v := range x[t*ld:][:columns] {
			y[i*rows+t] = v
		}
	}
	return y
}
