package eval

import (
	"ggforge/internal/gemm"
	"ggforge/internal/parallel"
	"ggforge/internal/vecmath"
)

// heads are what attends: queries with keys and values, each of those for several.
type heads struct {
	n, kv            int // heads, and those of keys and values
	keyLen, valueLen int
	scale, cap       float32   // of scores; no cap if it is 0
	window           int       // tokens that each sees; 0 for all
	sinks            []float32 // one for each head, or nil
	slopes           []float32 // of distances that are subtracted from scores, one for each head; or nil
}

// attention is a mixer of heads: queries, keys and values.
type attention struct {
	heads
	q, k, v, qkv, out *linear // qkv or q, k and v
	qNorm, kNorm      *headNorm
	local, turned     bool // is turned as layers with a window are; queries and keys are turned
}

// newAttention returns the attention of layer i.
func newAttention(b *builder, i int) mixer {
	p, t := b.p, b.t
	l := &attention{heads: b.heads(i), local: p.local(i)}
	l.turned = p.graph.Rope != RopeNone && (p.graph.Turned == nil || p.graph.Turned(p, i))
	nq, nk, nv := l.n*l.keyLen, l.kv*l.keyLen, l.kv*l.valueLen
	if l.qkv = t.linear(b.name(i, "attn_qkv"), p.width, nq+nk+nv); l.qkv == nil {
		l.q, l.k, l.v = t.needed(b.name(i, "attn_q"), p.width, nq), t.needed(b.name(i, "attn_k"), p.width, nk), t.needed(b.name(i, "attn_v"), p.width, nv)
	}
	l.out = t.needed(b.name(i, "attn_output"), l.n*l.valueLen, p.width)
	l.qNorm, l.kNorm = t.headNorm(b.name(i, "attn_q_norm"), l.n, l.keyLen), t.headNorm(b.name(i, "attn_k_norm"), l.kv, l.keyLen)
	return l
}

// heads returns the heads of layer i.
func (b *builder) heads(i int) heads {
	p := b.p
	h := heads{n: p.heads[i], kv: p.kv[i], keyLen: p.keyLen, valueLen: p.valueLen, scale: float32(p.attnScale), cap: float32(p.attnCap)}
	if p.local(i) {
		h.window = p.window
	}
	if h.sinks = b.t.vector(b.name(i, "attn_sinks.weight"), h.n); b.t.err == nil {
		h.slopes = p.slopes(h.n)
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
	p, g := s.m.p, s.m.graph
	nq, nk, nv := l.n*l.keyLen, l.kv*l.keyLen, l.kv*l.valueLen
	ld := nq + nk + nv
	qkv := grow(&s.qkv, n*ld)
	projections := []*linear{l.qkv}
	if l.qkv == nil {
		projections = []*linear{l.q, l.k, l.v}
	}
	if err := s.linear(qkv, ld, x, n, projections...); err != nil {
		return nil, err
	}
	table := s.global
	if l.local {
		table = s.local
	}
	err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			q, k := qkv[t*ld:][:nq], qkv[t*ld+nq:][:nk]
			if p.clamp != 0 {
				clamp(qkv[t*ld:][:ld], float32(p.clamp))
			}
			if !g.NormLast {
				p.headNorm(l.qNorm, q)
				p.headNorm(l.kNorm, k)
			}
			if l.turned {
				turns := table[t%s.r.Chunk*p.ropeDim:][:p.ropeDim]
				p.turn(q, l.keyLen, turns)
				p.turn(k, l.keyLen, turns)
			}
			if g.NormLast {
				p.headNorm(l.qNorm, q)
				p.headNorm(l.kNorm, k)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	no := l.n * l.valueLen
	out := grow(&s.a, n*no)
	group := l.n / l.kv
	return out, parallel.For(s.ctx, len(s.attending), n/s.r.Chunk*l.kv, func(i, worker int) error {
		c, kv := i/l.kv*s.r.Chunk, i%l.kv
		row := qkv[c*ld:]
		l.attend(&s.attending[worker], kv*group, out[c*no+kv*group*l.valueLen:], row[kv*group*l.keyLen:], row[nq+kv*l.keyLen:], row[nq+nk+kv*l.valueLen:], s.r.Chunk, ld, ld, ld, no)
		return nil
	})
}

// queries is how many queries are multiplied with keys at once.
const queries = 64

// attending is what attention needs of a worker.
type attending struct {
	gemm           gemm.Scratch
	q, k, p, v     gemm.Panels
	scores, values []float32
}

// attend sets out to what the heads of one group attend to in one chunk of n tokens: q, k,
// v and out begin with the chunk's first token and the group's first head, which is number
// head, and have rows of nq, nk, nv and no values.
func (l *heads) attend(s *attending, head int, out, q, k, v []float32, n, nq, nk, nv, no int) {
	s.k.PackRight(k, nk, n, l.keyLen)
	turned := grow(&s.values, l.valueLen*n)
	for t := range n {
		for d, x := range v[t*nv:][:l.valueLen] {
			turned[d*n+t] = x
		}
	}
	s.v.PackRight(turned, n, l.valueLen, n)
	scores := grow(&s.scores, queries*n)
	for h := range l.n / l.kv {
		for from := 0; from < n; from += queries {
			rows, columns := min(queries, n-from), min(from+queries, n) // nothing comes from the right
			s.q.Pack(q[from*nq+h*l.keyLen:], nq, rows, l.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			for t := range rows {
				row := scores[t*columns:][:columns]
				first, end := 0, from+t+1
				if l.window > 0 {
					first = max(0, end-l.window)
				}
				l.softmax(head+h, row[first:end])
				clear(row[:first])
				clear(row[end:])
			}
			s.p.Pack(scores, columns, rows, columns)
			gemm.Multiply(&s.gemm, out[from*no+h*l.valueLen:], no, &s.p, &s.v, l.valueLen)
		}
	}
}

// softmax turns the scores of a head into weights; the last is that of the query's own
// place.
func (l *heads) softmax(head int, x []float32) {
	vecmath.Scale(x, x, l.scale)
	if l.cap != 0 {
		squash(x, l.cap)
	}
	if l.slopes != nil {
		for i := range x {
			x[i] += float32(l.slopes[head] * float32(i-len(x)+1))
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
