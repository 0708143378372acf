package eval

import (
	"math"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// mla is multi-head latent attention: keys and values are computed from one compressed vector of a token and a part of
// the key with RoPE that all heads share.
//
// If the file has separate matrices for keys and values (attn_k_b, attn_v_b), queries are multiplied by that of keys,
// and heads attend to the compressed vectors; otherwise keys and values are computed from these.
type mla struct {
	heads
	q, qDown, qUp *linear // q or the two others, with a norm between them
	qNorm, kvNorm *norm
	keyNorm       *norm     // of the shared part of the key, or nil
	gate          *linear   // of outputs: for each value or for each head; or nil
	kvDown, kvUp  *linear   // kvUp or
	kUp, vUp      []*linear // one for each head
	out           *linear
	rank, ropeDim int // of the compressed vector; values of a query or key with RoPE
	nopeDim       int // and without
	// indices of Model.ropes and Model.temperatures, or -1
	rope, temperature int
}

var _ = operation(newMLA)

// newMLA returns the attention of the layer.
func newMLA(b *builder, of graph.MLA) mixer {
	p, t := b.p, b.t
	l := &mla{heads: heads{n: b.count("n_head"), keyLen: b.size("n_embd_head_k_mla"),
		valueLen: b.size("n_embd_head_v_mla")}, rank: b.size("n_lora_kv"), ropeDim: b.size("n_rot"), rope: -1,
		temperature: -1}
	l.kv, l.bidirectional = l.n, p.bidirectional
	if of.Window.Tokens != "" {
		l.window, l.chunkedWindow = b.size(of.Window.Tokens), of.Window.Shape == graph.ChunkedWindow
	}
	if l.nopeDim = l.keyLen - l.ropeDim; l.nopeDim < 1 || l.rank < 1 || l.valueLen < 1 {
		t.fail(errBroken, "MLA with keys of %d values, of which RoPE rotates %d, values of %d, and kv_lora_rank %d",
			l.keyLen, l.ropeDim, l.valueLen, l.rank)
	}
	for _, s := range b.HeadSteps(of.Steps) {
		switch s := s.(type) {
		case graph.Temperature:
			if l.rope >= 0 {
				b.unsupported("after RoPE in MLA,", s)
			}
			if i, ok := b.temperature(s); ok {
				l.temperature = i
			}
		case graph.SharedKeyNorm:
			if l.rope >= 0 {
				b.unsupported("after RoPE in MLA,", s)
			}
			l.keyNorm = t.requiredNorm(b.name("attn_k_norm"), l.ropeDim)
		case graph.RoPE:
			l.rope = b.rope(s, l.ropeDim)
		default:
			b.unsupported("in MLA, the step", s)
		}
	}
	if b.scoreSteps(&l.heads, of.Scores); l.softCap != 0 || l.alibiSlopes != nil || l.positionBias != nil {
		b.unsupported("in MLA, the steps of scores", of.Scores)
	}
	for _, s := range of.After {
		if _, ok := s.(graph.OutGate); !ok || l.gate != nil {
			b.unsupported("in MLA, the step of attention outputs", s)
		}
		if l.gate = b.outGate(&l.heads); l.gate == nil {
			t.required(b.name("attn_gate.weight"))
		}
	}
	l.scale = l.scoreScale(b.m)
	queries := l.n * l.keyLen
	if t.all[b.name("attn_q.weight")] == nil {
		rank := b.size("n_lora_q")
		l.qDown, l.qUp = t.requiredLinear(b.name("attn_q_a"), p.width, rank),
			t.requiredLinear(b.name("attn_q_b"), rank, queries)
		l.qNorm = t.requiredNorm(b.name("attn_q_a_norm"), rank)
	} else {
		l.q = t.requiredLinear(b.name("attn_q"), p.width, queries)
	}
	l.kvDown, l.kvNorm = t.requiredLinear(b.name("attn_kv_a_mqa"), p.width, l.rank+l.ropeDim),
		t.requiredNorm(b.name("attn_kv_a_norm"), l.rank)
	if l.kvUp = t.linear(b.name("attn_kv_b"), l.rank, l.n*(l.nopeDim+l.valueLen)); l.kvUp == nil {
		l.kUp, l.vUp = t.stack(b.name("attn_k_b"), l.nopeDim, l.rank, l.n),
			t.stack(b.name("attn_v_b"), l.rank, l.valueLen, l.n)
	}
	l.out = t.requiredLinear(b.name("attn_output"), l.n*l.valueLen, p.width)
	return l
}

// scoreScale is the factor of scores: with YaRN it has the square of mscale.
func (l *mla) scoreScale(m *Model) float32 {
	rope := rotation{scale: 1, magnitude: 1}
	if l.rope >= 0 {
		rope = m.ropes[l.rope]
	}
	log := float32(vecmath.Log(float64(1 / rope.scale)))
	f := rope.magnitude * (1 + float32(float32(0.1*rope.multiplier)*log))
	if !rope.yarn {
		f *= 1 + float32(0.1*log)
	}
	return f * f / float32(math.Sqrt(float64(l.keyLen)))
}

func (l *mla) mix(s *stream, y, x []float32, n int, last bool) error {
	q, kv, err := l.project(s, x, n, nil, nil)
	if err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*l.n*l.valueLen)
	attend := l.attendCompressed
	if l.kvUp != nil {
		attend = l.attendDecompressed
	}
	if err := attend(s, out, q, kv, n); err != nil {
		return err
	}
	if l.gate != nil {
		gated := &attention{heads: l.heads, gate: l.gate}
		if err := gated.computeGates(s, &s.qkv, x, n); err != nil {
			return err
		}
		if err := s.eachRows(n, func(from, to int) { gated.applyGates(out, s.qkv, from, to) }); err != nil {
			return err
		}
	}
	return s.project(y, out, n, last, l.out)
}

// project returns the queries of n tokens, and their compressed vectors with the shared parts of keys. rawDown and
// rawKV, if they are not nil, are set to the inputs of norms and RoPE: compressed queries, if there are any, and
// compressed vectors.
func (l *mla) project(s *stream, x []float32, n int, rawDown, rawKV []float32) (q, kv []float32, err error) {
	p := s.m.p
	ldq, ldkv := l.n*l.keyLen, l.rank+l.ropeDim
	q, kv = buffer.Resize(&s.qkv, n*ldq), buffer.Resize(&s.latent.kv, n*ldkv)
	if l.q == nil {
		rank := l.qDown.w.Rows
		down := buffer.Resize(&s.mid, n*rank)
		if err := s.linear(down, rank, x, n, l.qDown); err != nil {
			return nil, nil, err
		}
		copy(rawDown, down)
		if err := s.eachRows(n, func(a, b int) {
			p.normalize(l.qNorm, down[a*rank:b*rank], down[a*rank:b*rank],
				rank)
		}); err != nil {
			return nil, nil, err
		}
		if err := s.linear(q, ldq, down, n, l.qUp); err != nil {
			return nil, nil, err
		}
		if l.indexer != nil {
			if _, err := s.reportInputs(down, n, l.indexer[len(l.indexer)-1]); err != nil {
				return nil, nil, err
			}
		}
	} else if err := s.linear(q, ldq, x, n, l.q); err != nil {
		return nil, nil, err
	}
	if err := s.linear(kv, ldkv, x, n, l.kvDown); err != nil {
		return nil, nil, err
	}
	if l.indexer != nil {
		if _, err := s.reportInputs(x, n, l.indexer[:len(l.indexer)-1]...); err != nil {
			return nil, nil, err
		}
	}
	copy(rawKV, kv)
	return q, kv, s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			query, c, key := q[t*ldq:][:ldq], kv[t*ldkv:][:l.rank], kv[t*ldkv+l.rank:][:l.ropeDim]
			l.scaleQuery(s, query, t)
			p.normalize(l.kvNorm, c, c, l.rank)
			if l.keyNorm != nil {
				p.normalize(l.keyNorm, key, key, l.ropeDim)
			}
			if l.rope >= 0 {
				l.rotate(s.m.ropes[l.rope].apply, query, key, s.angles(l.rope, t))
			}
		}
	})
}

// scaleQuery applies attention temperature to the queries of token t, or to the gradient w.r.t. them.
func (l *mla) scaleQuery(s *stream, q []float32, t int) {
	if l.temperature >= 0 {
		temperatureStep(l.temperature).apply(s, headRow{q: q}, t)
	}
}

// rotate calls a function of RoPE for the heads of queries and the common part of keys.
func (l *mla) rotate(f func(x []float32, size int, angles []float32), q, key, angles []float32) {
	for h := range l.n {
		f(q[h*l.keyLen+l.nopeDim:][:l.ropeDim], l.ropeDim, angles)
	}
	f(key, l.ropeDim, angles)
}

// mlaHeadBlock is the number of heads that attend to compressed vectors at once: the keys of a head are several times
// as long as its query.
const mlaHeadBlock = 8

// attendCompressed sets out to the attention outputs of the heads over the compressed vectors kv.
func (l *mla) attendCompressed(s *stream, out, q, kv []float32, n int) error {
	ldkv := l.rank + l.ropeDim
	of := l.compressedHeads()
	if s.m.cache != nil {
		if err := s.eachRows(n, func(a, b int) {
			cache := s.m.cache.coder(&l.heads)
			for t := a; t < b; t++ {
				cache.code(kv[t*ldkv:][:ldkv], nil)
			}
		}); err != nil {
			return err
		}
	}
	for first := 0; first < l.n; first += mlaHeadBlock {
		count := min(mlaHeadBlock, l.n-first)
		queries, attended := buffer.Resize(&s.latent.q, count*n*ldkv), buffer.Resize(&s.latent.a, count*n*l.rank)
		for h := range count {
			if err := l.absorbedQueries(s, queries[h*n*ldkv:][:n*ldkv], q, first+h, n); err != nil {
				return err
			}
		}
		chunks := s.chunks(n)
		if err := parallel.For(s.ctx, len(s.attention), len(chunks)*count, func(i, worker int) error {
			chunk, h := chunks[i/count], i%count
			c, scratch := chunk.at, &s.attention[worker]
			seen, ld := scratch.seen(0, kv, chunk, ldkv, ldkv)
			of.attend(scratch, first+h, attended[(h*n+c)*l.rank:], queries[(h*n+c)*ldkv:], seen, seen,
				chunk.n, chunk.prefix.n+chunk.n, ldkv, ld, ld, l.rank)
			return nil
		}); err != nil {
			return err
		}
		for h := range count {
			if err := s.linear(out[(first+h)*l.valueLen:], l.n*l.valueLen, attended[h*n*l.rank:][:n*l.rank], n,
				l.vUp[first+h]); err != nil {
				return err
			}
		}
	}
	return nil
}

// compressedHeads are the heads that attend to compressed vectors.
func (l *mla) compressedHeads() heads {
	return heads{n: 1, kv: 1, keyLen: l.rank + l.ropeDim, valueLen: l.rank, scale: l.scale, softCap: l.softCap,
		window: l.window, chunkedWindow: l.chunkedWindow, sinks: l.sinks}
}

// absorbedQueries sets to to the queries of a head for compressed vectors, followed by the parts with RoPE.
func (l *mla) absorbedQueries(s *stream, to, q []float32, head, n int) error {
	ldkv := l.rank + l.ropeDim
	from, err := l.nopeQueries(s, q, head, n)
	if err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(to[t*ldkv+l.rank:][:l.ropeDim], q[(t*l.n+head)*l.keyLen+l.nopeDim:])
		}
	}); err != nil {
		return err
	}
	return s.linear(to, ldkv, from, n, l.kUp[head])
}

// nopeQueries returns the parts of a head's queries without RoPE.
func (l *mla) nopeQueries(s *stream, q []float32, head, n int) ([]float32, error) {
	from := buffer.Resize(&s.mid, n*l.nopeDim)
	return from, s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(from[t*l.nopeDim:][:l.nopeDim], q[(t*l.n+head)*l.keyLen:])
		}
	})
}

// attendDecompressed sets out to the attention outputs of the heads over keys and values that are computed from the
// compressed vectors kv.
func (l *mla) attendDecompressed(s *stream, out, q, kv []float32, n int) error {
	ldup, ldq := l.n*(l.nopeDim+l.valueLen), l.n*l.keyLen
	_, keys, up, err := l.decompress(s, kv, n)
	if err == nil && s.m.cache != nil {
		err = s.eachRows(n, func(a, b int) {
			cache := s.m.cache.coder(&l.heads)
			for i := a * l.n; i < b*l.n; i++ { // the heads of a token
				cache.code(keys[i*l.keyLen:][:l.keyLen], up[i*(l.nopeDim+l.valueLen)+l.nopeDim:][:l.valueLen])
			}
		})
	}
	if err != nil {
		return err
	}
	of := l.heads
	of.n, of.kv = 1, 1
	chunks := s.chunks(n)
	return parallel.For(s.ctx, len(s.attention), len(chunks)*l.n, func(i, worker int) error {
		chunk, h := chunks[i/l.n], i%l.n
		c, scratch := chunk.at, &s.attention[worker]
		k, nk := scratch.seen(0, keys[h*l.keyLen:], chunk, ldq, l.keyLen)
		v, nv := scratch.seen(1, up[h*(l.nopeDim+l.valueLen)+l.nopeDim:], chunk, ldup, l.valueLen)
		of.attend(scratch, h, out[(c*l.n+h)*l.valueLen:], q[(c*l.n+h)*l.keyLen:], k, v,
			chunk.n, chunk.prefix.n+chunk.n, ldq, nk, nv, l.n*l.valueLen)
		return nil
	})
}

// decompress returns the compressed vectors c without the shared parts of keys, the keys, and the outputs up of kvUp
// for c: for each head the part of the key without RoPE, and the value.
func (l *mla) decompress(s *stream, kv []float32, n int) (c, keys, up []float32, err error) {
	ldkv, ldup, ldq := l.rank+l.ropeDim, l.n*(l.nopeDim+l.valueLen), l.n*l.keyLen
	c, up, keys = buffer.Resize(&s.mid, n*l.rank), buffer.Resize(&s.latent.a, n*ldup), buffer.Resize(&s.latent.q, n*ldq)
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(c[t*l.rank:][:l.rank], kv[t*ldkv:])
		}
	}); err != nil {
		return nil, nil, nil, err
	}
	if err := s.linear(up, ldup, c, n, l.kvUp); err != nil {
		return nil, nil, nil, err
	}
	return c, keys, up, s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			for h := range l.n {
				key := keys[t*ldq+h*l.keyLen:][:l.keyLen]
				copy(key[:l.nopeDim], up[t*ldup+h*(l.nopeDim+l.valueLen):])
				copy(key[l.nopeDim:], kv[t*ldkv+l.rank:])
			}
		}
	})
}
