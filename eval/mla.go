package eval

import (
	"math"

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
	kvDown, kvUp  *linear   // kvUp or
	kUp, vUp      []*linear // one for each head
	out           *linear
	rank, ropeDim int // of the compressed vector; values of a query or key with RoPE
	nopeDim       int // and without
}

// newMLA returns the attention of layer i.
func newMLA(b *builder, i int) mixer {
	p, t, k := b.p, b.t, b.k
	l := &mla{heads: b.heads(i), rank: k.RequiredSize("attention.kv_lora_rank"), ropeDim: p.ropeDim}
	if t.all[b.name(i, "attn_kv_b.weight")] == nil {
		l.keyLen, l.valueLen = k.RequiredSize("attention.key_length_mla"), k.RequiredSize("attention.value_length_mla")
	}
	if !k.Has("attention.value_length") && !k.Has("attention.value_length_mla") {
		l.valueLen = p.width / l.n
	}
	if l.nopeDim = l.keyLen - l.ropeDim; l.nopeDim < 1 || l.rank < 1 || l.valueLen < 1 {
		t.fail(errBroken, "MLA with keys of %d values, of which RoPE rotates %d, values of %d, and kv_lora_rank %d",
			l.keyLen, l.ropeDim,
			l.valueLen, l.rank)
	}
	l.scale = mlaScale(p, l.keyLen)
	queries := l.n * l.keyLen
	if rank := k.Size("attention.q_lora_rank", 0); t.all[b.name(i, "attn_q.weight")] == nil {
		l.qDown, l.qUp = t.requiredLinear(b.name(i, "attn_q_a"), p.width, rank),
			t.requiredLinear(b.name(i, "attn_q_b"), rank, queries)
		l.qNorm = t.requiredNorm(b.name(i, "attn_q_a_norm"), rank)
	} else {
		l.q = t.requiredLinear(b.name(i, "attn_q"), p.width, queries)
	}
	l.kvDown, l.kvNorm = t.requiredLinear(b.name(i, "attn_kv_a_mqa"), p.width, l.rank+l.ropeDim),
		t.requiredNorm(b.name(i, "attn_kv_a_norm"), l.rank)
	if l.kvUp = t.linear(b.name(i, "attn_kv_b"), l.rank, l.n*(l.nopeDim+l.valueLen)); l.kvUp == nil {
		l.kUp, l.vUp = t.stack(b.name(i, "attn_k_b"), l.nopeDim, l.rank, l.n),
			t.stack(b.name(i, "attn_v_b"), l.rank, l.valueLen, l.n)
	}
	l.out = t.requiredLinear(b.name(i, "attn_output"), l.n*l.valueLen, p.width)
	return l
}

// mlaScale is the factor of scores for keys of so many values: with YaRN it has the square of mscale.
func mlaScale(p *params, keyLen int) float32 {
	log := float32(vecmath.Log(float64(1 / p.rope.scale)))
	f := p.rope.magnitude * (1 + float32(float32(0.1*p.rope.multiplier)*log))
	if !p.rope.yarn {
		f *= 1 + float32(0.1*log)
	}
	return f * f / float32(math.Sqrt(float64(keyLen)))
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
	} else if err := s.linear(q, ldq, x, n, l.q); err != nil {
		return nil, nil, err
	}
	if err := s.linear(kv, ldkv, x, n, l.kvDown); err != nil {
		return nil, nil, err
	}
	copy(rawKV, kv)
	return q, kv, s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			rotations := s.rope[t%s.r.Chunk*l.ropeDim:][:l.ropeDim]
			p.temperature.apply(q[t*ldq:][:ldq], t%s.r.Chunk)
			for h := range l.n {
				p.applyRoPE(q[t*ldq+h*l.keyLen+l.nopeDim:][:l.ropeDim], l.ropeDim, rotations)
			}
			c, key := kv[t*ldkv:][:l.rank], kv[t*ldkv+l.rank:][:l.ropeDim]
			p.normalize(l.kvNorm, c, c, l.rank)
			p.applyRoPE(key, l.ropeDim, rotations)
		}
	})
}

// mlaHeadBlock is the number of heads that attend to compressed vectors at once: the keys of a head are several times
// as long as its query.
const mlaHeadBlock = 8

// attendCompressed sets out to the attention outputs of the heads over the compressed vectors kv.
func (l *mla) attendCompressed(s *stream, out, q, kv []float32, n int) error {
	ldkv := l.rank + l.ropeDim
	of := l.compressedHeads()
	for first := 0; first < l.n; first += mlaHeadBlock {
		count := min(mlaHeadBlock, l.n-first)
		queries, attended := buffer.Resize(&s.latent.q, count*n*ldkv), buffer.Resize(&s.latent.a, count*n*l.rank)
		for h := range count {
			if err := l.absorbedQueries(s, queries[h*n*ldkv:][:n*ldkv], q, first+h, n); err != nil {
				return err
			}
		}
		if err := parallel.For(s.ctx, len(s.attention), n/s.r.Chunk*count, func(i, worker int) error {
			c, h := i/count*s.r.Chunk, i%count
			of.attend(&s.attention[worker], 0, attended[(h*n+c)*l.rank:], queries[(h*n+c)*ldkv:],
				kv[c*ldkv:], kv[c*ldkv:],
				s.r.Chunk, ldkv, ldkv, ldkv, l.rank)
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
		window:        l.window,
		chunkedWindow: l.chunkedWindow}
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
	if err != nil {
		return err
	}
	of := l.heads
	of.n, of.kv = 1, 1
	return parallel.For(s.ctx, len(s.attention), n/s.r.Chunk*l.n, func(i, worker int) error {
		c, h := i/l.n*s.r.Chunk, i%l.n
		of.attend(&s.attention[worker], 0, out[(c*l.n+h)*l.valueLen:], q[(c*l.n+h)*l.keyLen:],
			keys[(c*l.n+h)*l.keyLen:], up[c*ldup+h*(l.nopeDim+l.valueLen)+l.nopeDim:], s.r.Chunk, ldq, ldq, ldup,
			l.n*l.valueLen)
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
