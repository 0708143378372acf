package eval

import (
	"ggforge/eval/internal/window"
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
	alibiSlopes  []float32 // one for each head, or nil
}

// attention is a mixer: multi-head attention with queries, keys and values from projections of its inputs.
type attention struct {
	heads
	q, k, v, qkv, out *linear // qkv or q, k and v
	qNorm, kNorm      *headNorm
	swa, usesRoPE     bool        // has the RoPE of SWA layers; has RoPE
	temperature       temperature // of queries
}

// newAttention returns the attention of layer i.
func newAttention(b *builder, i int) mixer {
	p, t := b.p, b.t
	l := &attention{heads: b.heads(i), swa: p.isSWA(i)}
	l.usesRoPE = p.ropeStyle != RoPENone && (p.graph.UsesRoPE == nil || p.graph.UsesRoPE(p, i))
	if p.ropeLayers != nil {
		l.usesRoPE = p.ropeLayers[i]
	}
	if !l.usesRoPE || !p.graph.TemperatureWithoutRoPEOnly {
		l.temperature = p.temperature
	}
	nq, nk, nv := l.n*l.keyLen, l.kv*l.keyLen, l.kv*l.valueLen
	if l.qkv = t.linear(b.name(i, "attn_qkv"), p.width, nq+nk+nv); l.qkv == nil {
		l.q, l.k, l.v = t.requiredLinear(b.name(i, "attn_q"), p.width, nq),
			t.requiredLinear(b.name(i, "attn_k"), p.width, nk),
			t.requiredLinear(b.name(i, "attn_v"), p.width, nv)
	}
	out := b.name(i, "attn_output")
	if short := b.name(i, "attn_o"); t.all[short+".weight"] != nil {
		out = short
	}
	l.out = t.requiredLinear(out, l.n*l.valueLen, p.width)
	if scale := float32(0); p.graph.AttentionOutputScale {
		if scale = float32(b.k.Float("attention.value_scale", 0)); scale != 0 {
			l.out.scale = &scale
		}
	}
	if p.graph.UnitNorm != nil && p.graph.UnitNorm(p, i) {
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
			"layer %d has %d heads and %d of keys: layers without attention are not supported for this architecture", i,
			p.heads[i], p.kv[i])
	case p.heads[i]%p.kv[i] != 0:
		b.t.fail(errBroken, "layer %d has %d heads, want a multiple of %d KV heads", i, p.heads[i], p.kv[i])
	}
	h := heads{n: p.heads[i], kv: p.kv[i], keyLen: p.keyLen, valueLen: p.valueLen, scale: float32(p.attnScale),
		softCap: float32(p.attnSoftCap), bidirectional: p.bidirectional, symmetricWindow: p.windows != nil &&
			p.windows.Kind == window.Symmetric}
	if p.isSWA(i) {
		h.window, h.chunkedWindow = p.window, p.windows.Kind == window.Chunked
	}
	h.sinks, h.alibiSlopes = b.t.vector(b.name(i, "attn_sinks.weight"), h.n), p.alibiSlopes(h.n)
	if p.relativeBuckets > 0 {
		h.positionBias = b.relativePositionBias(i, h.n)
	}
	return h
}

// alibiSlopes returns the ALiBi slopes of heads, nil without ALiBi.
func (p *params) alibiSlopes(heads int) []float32 {
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
	a, err := l.attendAll(s, x, n)
	if err != nil {
		return err
	}
	return s.project(y, a, n, last, l.out)
}

// attendAll returns the attention output of all heads, before the output projection.
func (l *attention) attendAll(s *stream, x []float32, n int) ([]float32, error) {
	qkv, err := l.project(s, x, n)
	if err != nil {
		return nil, err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			l.prepare(s, qkv[t*l.qkvLen():], t)
		}
	}); err != nil {
		return nil, err
	}
	out := buffer.Resize(&s.a, n*l.n*l.valueLen)
	return out, l.eachGroup(s, n, func(worker *attentionScratch, head, q, k, v, o int) {
		l.attend(worker, head, out[o:], qkv[q:], qkv[k:], qkv[v:], s.r.Chunk, l.qkvLen(), l.qkvLen(), l.qkvLen(),
			l.n*l.valueLen)
	})
}

// qkvLen is the length of a row of queries, keys and values.
func (l *heads) qkvLen() int { return l.n*l.keyLen + l.kv*(l.keyLen+l.valueLen) }

// eachGroup calls f for each group of heads in each chunk of n tokens: with the number of its first head, and the
// offsets of its queries, keys, values and attention outputs.
func (l *heads) eachGroup(s *stream, n int, f func(worker *attentionScratch, head, q, k, v, out int)) error {
	return parallel.For(s.ctx, len(s.attention), n/s.r.Chunk*l.kv, func(i, worker int) error {
		c, kv := i/l.kv*s.r.Chunk, i%l.kv
		head, row := kv*(l.n/l.kv), c*l.qkvLen()
		keys := row + l.n*l.keyLen
		f(&s.attention[worker], head, row+head*l.keyLen, keys+kv*l.keyLen, keys+l.kv*l.keyLen+kv*l.valueLen,
			(c*l.n+head)*l.valueLen)
		return nil
	})
}

// project returns the queries, keys and values of n tokens as the projections output them.
func (l *attention) project(s *stream, x []float32, n int) ([]float32, error) {
	qkv := buffer.Resize(&s.qkv, n*l.qkvLen())
	return qkv, s.linear(qkv, l.qkvLen(), x, n, l.projections()...)
}

func (l *attention) projections() []*linear {
	if l.qkv != nil {
		return []*linear{l.qkv}
	}
	return []*linear{l.q, l.k, l.v}
}

// prepare applies clamp, QK-norm, RoPE and attention temperature to the queries, keys and values of token t.
func (l *attention) prepare(s *stream, qkv []float32, t int) {
	p := s.m.p
	nq, nk := l.n*l.keyLen, l.kv*l.keyLen
	q, k := qkv[:nq], qkv[nq:][:nk]
	if p.clamp != 0 {
		clamp(qkv[:l.qkvLen()], float32(p.clamp))
	}
	if !s.m.graph.QKNormAfterRoPE {
		p.headNorm(l.qNorm, q)
		p.headNorm(l.kNorm, k)
	}
	if l.usesRoPE {
		rotations := l.rotations(s, t)
		p.applyRoPE(q, l.keyLen, rotations)
		p.applyRoPE(k, l.keyLen, rotations)
	}
	if s.m.graph.QKNormAfterRoPE {
		p.headNorm(l.qNorm, q)
		p.headNorm(l.kNorm, k)
	}
	l.temperature.apply(q, t%s.r.Chunk)
}

// rotations returns the cosines and sines of RoPE for token t.
func (l *attention) rotations(s *stream, t int) []float32 {
	table, dims := s.rope, s.m.p.ropeDim
	if l.swa {
		table = s.swaRope
	}
	return table[t%s.r.Chunk*dims:][:dims]
}

// queryBlock is the number of queries that are multiplied with keys at once.
const queryBlock = 64

// attentionScratch is the memory of one worker.
type attentionScratch struct {
	gemm           gemm.Scratch
	q, k, p, v     gemm.Panels
	scores, values []float32
	// of the backward pass: keys by element, values by token, the factor of transposed weights
	back struct {
		k, v, x             gemm.Panels
		scores, slopes, sum []float32
	}
}

// attend sets out to the attention outputs of the heads of one group in one chunk of n tokens: q, k, v and out begin
// with the chunk's first token and the group's first head, which is number head, and have rows of nq, nk, nv and no
// values.
func (l *heads) attend(s *attentionScratch, head int, out, q, k, v []float32, n, nq, nk, nv, no int) {
	s.k.PackRight(k, nk, n, l.keyLen)
	s.v.PackRight(transpose(&s.values, v, nv, n, l.valueLen), n, l.valueLen, n)
	scores := buffer.Resize(&s.scores, queryBlock*n)
	for h := range l.n / l.kv {
		for from := 0; from < n; from += queryBlock {
			rows, columns := min(queryBlock, n-from), n
			if !l.bidirectional {
				columns = min(from+queryBlock, n) // causal
			}
			s.q.Pack(q[from*nq+h*l.keyLen:], nq, rows, l.keyLen)
			gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
			for t := range rows {
				row := scores[t*columns:][:columns]
				first, end := l.visible(from+t, n)
				l.softmax(head+h, row[first:end], from+t-first)
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
