package eval

import (
	"ggforge/eval/internal/window"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// heads are what attends: queries with keys and values, each of those for several.
type heads struct {
	n, kv            int // heads, and those of keys and values
	keyLen, valueLen int
	scale, cap       float32 // of scores; no cap if it is 0
	window           int     // tokens that each sees; 0 for all
	chunked          bool    // windows do not slide, but begin at a multiple of their size
	ahead            bool    // those that follow are seen, too
	sided            bool    // a window is the same to both sides
	// what is added to the scores of distances from -farthest to farthest, for each head; or nil
	near   []float32
	sinks  []float32 // one for each head, or nil
	slopes []float32 // of distances that are subtracted from scores, one for each head; or nil
}

// attention is a mixer of heads: queries, keys and values.
type attention struct {
	heads
	q, k, v, qkv, out *linear // qkv or q, k and v
	qNorm, kNorm      *headNorm
	local, turned     bool   // is turned as layers with a window are; queries and keys are turned
	temper            temper // of queries
}

// newAttention returns the attention of layer i.
func newAttention(b *builder, i int) mixer {
	p, t := b.p, b.t
	l := &attention{heads: b.heads(i), local: p.local(i)}
	l.turned = p.style != RopeNone && (p.graph.Turned == nil || p.graph.Turned(p, i))
	if p.turned != nil {
		l.turned = p.turned[i]
	}
	if !l.turned || !p.graph.TemperUnturned {
		l.temper = p.temper
	}
	nq, nk, nv := l.n*l.keyLen, l.kv*l.keyLen, l.kv*l.valueLen
	if l.qkv = t.linear(b.name(i, "attn_qkv"), p.width, nq+nk+nv); l.qkv == nil {
		l.q, l.k, l.v = t.needed(b.name(i, "attn_q"), p.width, nq), t.needed(b.name(i, "attn_k"), p.width, nk),
			t.needed(b.name(i, "attn_v"), p.width, nv)
	}
	out := b.name(i, "attn_output")
	if short := b.name(i, "attn_o"); t.all[short+".weight"] != nil {
		out = short
	}
	l.out = t.needed(out, l.n*l.valueLen, p.width)
	if scale := float32(0); p.graph.OutScale {
		if scale = float32(b.k.float("attention.value_scale", 0)); scale != 0 {
			l.out.scale = &scale
		}
	}
	if p.graph.HeadNorm != nil && p.graph.HeadNorm(p, i) {
		l.qNorm, l.kNorm = &headNorm{size: l.keyLen}, &headNorm{size: l.keyLen}
		return l
	}
	l.qNorm, l.kNorm = t.headNorm(b.name(i, "attn_q_norm"), l.n, l.keyLen),
		t.headNorm(b.name(i, "attn_k_norm"), l.kv, l.keyLen)
	return l
}

// heads returns the heads of layer i.
func (b *builder) heads(i int) heads {
	p := b.p
	switch {
	case p.heads[i] == 0 || p.kv[i] == 0:
		b.t.fail(errUnsupported,
			"layer %d has %d heads and %d of keys: a layer of this architecture without attention cannot be run", i,
			p.heads[i], p.kv[i])
	case p.heads[i]%p.kv[i] != 0:
		b.t.fail(errBroken, "layer %d has %d heads and %d of keys, want a multiple", i, p.heads[i], p.kv[i])
	}
	h := heads{n: p.heads[i], kv: p.kv[i], keyLen: p.keyLen, valueLen: p.valueLen, scale: float32(p.attnScale),
		cap: float32(p.attnCap), ahead: p.encoder, sided: p.windows != nil && p.windows.Kind == window.Symmetric}
	if p.local(i) {
		h.window, h.chunked = p.window, p.windows.Kind == window.Chunked
	}
	h.sinks, h.slopes = b.t.vector(b.name(i, "attn_sinks.weight"), h.n), p.slopes(h.n)
	if p.buckets > 0 {
		h.near = b.near(i, h.n)
	}
	return h
}

// slopes returns the factors of distances, see Graph.Alibi.
func (p *params) slopes(heads int) []float32 {
	if p.alibi == 0 {
		return nil
	}
	power := 1
	for power*2 <= heads {
		power *= 2
	}
	slopes := make([]float32, heads)
	for h := range slopes {
		bias, n := p.alibi, h+1
		if h >= power {
			bias, n = p.alibi/2, 2*(h-power)+1
		}
		slopes[h] = float32(vecmath.Pow(vecmath.Pow(2, -bias/float64(power)), float64(n)))
	}
	return slopes
}

func (l *attention) mix(s *stream, y, x []float32, n int, last bool) error {
	a, err := l.heed(s, x, n)
	if err != nil {
		return err
	}
	return s.project(y, a, n, last, l.out)
}

// heed returns what the heads of a layer attend to.
func (l *attention) heed(s *stream, x []float32, n int) ([]float32, error) {
	qkv, err := l.project(s, x, n)
	if err != nil {
		return nil, err
	}
	if err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			l.prepare(s, qkv[t*l.row():], t)
		}
	}); err != nil {
		return nil, err
	}
	out := grow(&s.a, n*l.n*l.valueLen)
	return out, l.each(s, n, func(worker *attending, head, q, k, v, o int) {
		l.attend(worker, head, out[o:], qkv[q:], qkv[k:], qkv[v:], s.r.Chunk, l.row(), l.row(), l.row(), l.n*l.valueLen)
	})
}

// row is the number of values of the queries, keys and values of a token.
func (l *heads) row() int { return l.n*l.keyLen + l.kv*(l.keyLen+l.valueLen) }

// each calls f for each group of heads in each chunk of n tokens: with the number of its
// first head, and where its queries, keys and values begin in rows of them and what it
// attends to in rows of that.
func (l *heads) each(s *stream, n int, f func(worker *attending, head, q, k, v, out int)) error {
	return parallel.For(s.ctx, len(s.attending), n/s.r.Chunk*l.kv, func(i, worker int) error {
		c, kv := i/l.kv*s.r.Chunk, i%l.kv
		head, row := kv*(l.n/l.kv), c*l.row()
		keys := row + l.n*l.keyLen
		f(&s.attending[worker], head, row+head*l.keyLen, keys+kv*l.keyLen, keys+l.kv*l.keyLen+kv*l.valueLen,
			(c*l.n+head)*l.valueLen)
		return nil
	})
}

// project returns the queries, keys and values of n tokens as the matrices make them.
func (l *attention) project(s *stream, x []float32, n int) ([]float32, error) {
	qkv := grow(&s.qkv, n*l.row())
	return qkv, s.linear(qkv, l.row(), x, n, l.projections()...)
}

func (l *attention) projections() []*linear {
	if l.qkv != nil {
		return []*linear{l.qkv}
	}
	return []*linear{l.q, l.k, l.v}
}

// prepare makes queries, keys and values of token t those that are attended with.
func (l *attention) prepare(s *stream, qkv []float32, t int) {
	p := s.m.p
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	q, k := qkv[:nq], qkv[nq:][:nk]
	if p.clamp != 0 {
		clamp(qkv[:l.row()], float32(p.clamp))
	}
	if !s.m.graph.NormLast {
		p.headNorm(l.qNorm, q)
		p.headNorm(l.kNorm, k)
	}
	if l.turned {
		turns := l.turns(s, t)
		p.turn(q, l.keyLen, turns)
		p.turn(k, l.keyLen, turns)
	}
	if s.m.graph.NormLast {
		p.headNorm(l.qNorm, q)
		p.headNorm(l.kNorm, k)
	}
	l.temper.apply(q, t%s.r.Chunk)
}

// turns returns the rotations of token t.
func (l *attention) turns(s *stream, t int) []float32 {
	table, dims := s.global, s.m.p.ropeDim
	if l.local {
		table = s.local
	}
	return table[t%s.r.Chunk*dims:][:dims]
}

// queries is how many queries are multiplied with keys at once.
const queries = 64

// attending is what attention needs of a worker.
type attending struct {
	gemm           gemm.Scratch
	q, k, p, v     gemm.Panels
	scores, values []float32
	// backwards: keys by place, values by token, what is multiplied with the transpose of weights
	back struct {
		k, v, x             gemm.Panels
		scores, slopes, sum []float32
	}
}

// attend sets out to what the heads of one group attend to in one chunk of n tokens: q, k,
// v and out begin with the chunk's first token and the group's first head, which is number
// head, and have rows of nq, nk, nv and no values.
func (l *heads) attend(s *attending, head int, out, q, k, v []float32, n, nq, nk, nv, no int) {
	s.k.PackRight(k, nk, n, l.keyLen)
	s.v.PackRight(turned(&s.values, v, nv, n, l.valueLen), n, l.valueLen, n)
	scores := grow(&s.scores, queries*n)
	for h := range l.n / l.kv {
		for from := 0; from < n; from += queries {
			rows, columns := min(queries, n-from), n
			if !l.ahead {
				columns = min(from+queries, n) // nothing comes from the right
			}
			s.q.Pack(q[from*nq+h*l.keyLen:], nq, rows, l.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			for t := range rows {
				row := scores[t*columns:][:columns]
				first, end := l.sees(from+t, n)
				l.softmax(head+h, row[first:end], from+t-first)
				clear(row[:first])
				clear(row[end:])
			}
			s.p.Pack(scores, columns, rows, columns)
			gemm.Multiply(&s.gemm, out[from*no+h*l.valueLen:], no, &s.p, &s.v, l.valueLen)
		}
	}
}

// sees returns which of n tokens the one at a position sees: from first on, those before end.
func (l *heads) sees(at, n int) (first, end int) {
	if end = at + 1; l.ahead {
		end = n
	}
	switch {
	case l.window == 0:
	case l.chunked:
		first = at / l.window * l.window
	case l.sided:
		first, end = max(0, at-l.window/2), min(end, at+l.window/2+1)
	default:
		first = max(0, at+1-l.window)
	}
	return first, end
}

// softmax turns the scores of a head into weights; own is the place of the query's own.
func (l *heads) softmax(head int, x []float32, own int) {
	vecmath.Scale(x, x, l.scale)
	if l.cap != 0 {
		squash(x, l.cap)
	}
	if l.slopes != nil {
		for i := range x {
			x[i] += float32(l.slopes[head] * float32(-max(i-own, own-i)))
		}
	}
	if l.near != nil {
		near := l.near[head*(2*farthest+1):][:2*farthest+1]
		for i := range x {
			x[i] += near[farthest+max(-farthest, min(farthest, i-own))]
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

// turned returns the transpose of x [rows, columns], whose rows are ld apart.
func turned(to *[]float32, x []float32, ld, rows, columns int) []float32 {
	y := grow(to, rows*columns)
	for t := range rows {
		for i, v := range x[t*ld:][:columns] {
			y[i*rows+t] = v
		}
	}
	return y
}
