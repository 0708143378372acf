package eval

import (
	"math"

	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// latent is a mixer of heads whose keys and values come from one compressed vector of a
// token, next to which is a part of the key that is turned and that all heads share.
//
// Where the file has the matrices of keys and values apart, queries go through that of
// keys, and heads attend to the compressed vectors themselves; otherwise keys and values
// are made of those.
type latent struct {
	heads
	q, qDown, qUp *linear // q or the two others, with a norm between them
	qNorm, kvNorm *norm
	kvDown, kvUp  *linear   // kvUp or
	kUp, vUp      []*linear // one for each head
	out           *linear
	rank, turned  int // of the compressed vector; values of a query or key that are turned
	plain         int // and that are not
}

// newLatent returns the attention of layer i.
func newLatent(b *builder, i int) mixer {
	p, t, k := b.p, b.t, b.k
	l := &latent{heads: b.heads(i), rank: k.size("attention.kv_lora_rank", -1), turned: p.ropeDim}
	if t.all[b.name(i, "attn_kv_b.weight")] == nil {
		l.keyLen, l.valueLen = k.size("attention.key_length_mla", -1), k.size("attention.value_length_mla", -1)
	}
	if !k.has("attention.value_length") && !k.has("attention.value_length_mla") {
		l.valueLen = p.width / l.n
	}
	if l.plain = l.keyLen - l.turned; l.plain < 1 || l.rank < 1 || l.valueLen < 1 {
		t.fail(errBroken, "keys of %d values of which %d are turned, values of %d, made of %d", l.keyLen, l.turned,
			l.valueLen, l.rank)
	}
	l.scale = latentScale(p, l.keyLen)
	queries := l.n * l.keyLen
	if rank := k.size("attention.q_lora_rank", 0); t.all[b.name(i, "attn_q.weight")] == nil {
		l.qDown, l.qUp = t.needed(b.name(i, "attn_q_a"), p.width, rank), t.needed(b.name(i, "attn_q_b"), rank, queries)
		l.qNorm = t.neededNorm(b.name(i, "attn_q_a_norm"), rank)
	} else {
		l.q = t.needed(b.name(i, "attn_q"), p.width, queries)
	}
	l.kvDown, l.kvNorm = t.needed(b.name(i, "attn_kv_a_mqa"), p.width, l.rank+l.turned),
		t.neededNorm(b.name(i, "attn_kv_a_norm"), l.rank)
	if l.kvUp = t.linear(b.name(i, "attn_kv_b"), l.rank, l.n*(l.plain+l.valueLen)); l.kvUp == nil {
		l.kUp, l.vUp = t.stack(b.name(i, "attn_k_b"), l.plain, l.rank, l.n),
			t.stack(b.name(i, "attn_v_b"), l.rank, l.valueLen, l.n)
	}
	l.out = t.needed(b.name(i, "attn_output"), l.n*l.valueLen, p.width)
	return l
}

// latentScale is the factor of scores of keys of so many values. Where YaRN turns, it has
// the square of what would scale what is turned.
func latentScale(p *params, keyLen int) float32 {
	log := float32(vecmath.Log(float64(1 / p.rope.scale)))
	f := p.rope.attn * (1 + float32(float32(0.1*p.rope.multiplier)*log))
	if !p.rope.extend {
		f *= 1 + float32(0.1*log)
	}
	return f * f / float32(math.Sqrt(float64(keyLen)))
}

func (l *latent) mix(s *stream, y, x []float32, n int, last bool) error {
	q, kv, err := l.project(s, x, n, nil, nil)
	if err != nil {
		return err
	}
	out := grow(&s.a, n*l.n*l.valueLen)
	heed := l.compressed
	if l.kvUp != nil {
		heed = l.made
	}
	if err := heed(s, out, q, kv, n); err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}

// project returns the queries of n tokens, and their compressed vectors with the shared parts
// of keys. rawDown and rawKV, if they are not nil, get what norms and rotations get:
// compressed queries, if there are any, and compressed vectors.
func (l *latent) project(s *stream, x []float32, n int, rawDown, rawKV []float32) (q, kv []float32, err error) {
	p := s.m.p
	ldq, ldkv := l.n*l.keyLen, l.rank+l.turned
	q, kv = grow(&s.qkv, n*ldq), grow(&s.latent.kv, n*ldkv)
	if l.q == nil {
		rank := l.qDown.w.Rows
		down := grow(&s.mid, n*rank)
		if err := s.linear(down, rank, x, n, l.qDown); err != nil {
			return nil, nil, err
		}
		copy(rawDown, down)
		if err := s.each(n, func(a, b int) {
			p.apply(l.qNorm, down[a*rank:b*rank], down[a*rank:b*rank],
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
	return q, kv, s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			turns := s.global[t%s.r.Chunk*l.turned:][:l.turned]
			p.temper.apply(q[t*ldq:][:ldq], t%s.r.Chunk)
			for h := range l.n {
				p.turn(q[t*ldq+h*l.keyLen+l.plain:][:l.turned], l.turned, turns)
			}
			c, key := kv[t*ldkv:][:l.rank], kv[t*ldkv+l.rank:][:l.turned]
			p.apply(l.kvNorm, c, c, l.rank)
			p.turn(key, l.turned, turns)
		}
	})
}

// latentHeads is how many heads attend to compressed vectors at once: what a head reads
// is several times as long as its query.
const latentHeads = 8

// compressed sets out to what the heads attend to in the compressed vectors kv.
func (l *latent) compressed(s *stream, out, q, kv []float32, n int) error {
	ldkv := l.rank + l.turned
	of := l.reading()
	for first := 0; first < l.n; first += latentHeads {
		count := min(latentHeads, l.n-first)
		read, said := grow(&s.latent.q, count*n*ldkv), grow(&s.latent.a, count*n*l.rank)
		for h := range count {
			if err := l.read(s, read[h*n*ldkv:][:n*ldkv], q, first+h, n); err != nil {
				return err
			}
		}
		if err := parallel.For(s.ctx, len(s.attending), n/s.r.Chunk*count, func(i, worker int) error {
			c, h := i/count*s.r.Chunk, i%count
			of.attend(&s.attending[worker], 0, said[(h*n+c)*l.rank:], read[(h*n+c)*ldkv:], kv[c*ldkv:], kv[c*ldkv:],
				s.r.Chunk, ldkv, ldkv, ldkv, l.rank)
			return nil
		}); err != nil {
			return err
		}
		for h := range count {
			if err := s.linear(out[(first+h)*l.valueLen:], l.n*l.valueLen, said[h*n*l.rank:][:n*l.rank], n,
				l.vUp[first+h]); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading are the heads that attend to compressed vectors.
func (l *latent) reading() heads {
	return heads{n: 1, kv: 1, keyLen: l.rank + l.turned, valueLen: l.rank, scale: l.scale, cap: l.cap, window: l.window,
		chunked: l.chunked}
}

// read sets to to the queries of a head for compressed vectors, with the parts that are
// turned after them.
func (l *latent) read(s *stream, to, q []float32, head, n int) error {
	ldkv := l.rank + l.turned
	from, err := l.plainQueries(s, q, head, n)
	if err != nil {
		return err
	}
	if err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(to[t*ldkv+l.rank:][:l.turned], q[(t*l.n+head)*l.keyLen+l.plain:])
		}
	}); err != nil {
		return err
	}
	return s.linear(to, ldkv, from, n, l.kUp[head])
}

// plainQueries returns the parts of a head's queries that are not turned.
func (l *latent) plainQueries(s *stream, q []float32, head, n int) ([]float32, error) {
	from := grow(&s.mid, n*l.plain)
	return from, s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(from[t*l.plain:][:l.plain], q[(t*l.n+head)*l.keyLen:])
		}
	})
}

// made sets out to what the heads attend to in keys and values that are made of the
// compressed vectors kv.
func (l *latent) made(s *stream, out, q, kv []float32, n int) error {
	ldup, ldq := l.n*(l.plain+l.valueLen), l.n*l.keyLen
	_, keys, up, err := l.unpack(s, kv, n)
	if err != nil {
		return err
	}
	of := l.heads
	of.n, of.kv = 1, 1
	return parallel.For(s.ctx, len(s.attending), n/s.r.Chunk*l.n, func(i, worker int) error {
		c, h := i/l.n*s.r.Chunk, i%l.n
		of.attend(&s.attending[worker], 0, out[(c*l.n+h)*l.valueLen:], q[(c*l.n+h)*l.keyLen:],
			keys[(c*l.n+h)*l.keyLen:], up[c*ldup+h*(l.plain+l.valueLen)+l.plain:], s.r.Chunk, ldq, ldq, ldup,
			l.n*l.valueLen)
		return nil
	})
}

// unpack returns the compressed vectors c without what is next to them, the keys that are
// made of both, and what the matrix makes of c: for each head the part of a key that is not
// turned, and a value.
func (l *latent) unpack(s *stream, kv []float32, n int) (c, keys, up []float32, err error) {
	ldkv, ldup, ldq := l.rank+l.turned, l.n*(l.plain+l.valueLen), l.n*l.keyLen
	c, up, keys = grow(&s.mid, n*l.rank), grow(&s.latent.a, n*ldup), grow(&s.latent.q, n*ldq)
	if err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(c[t*l.rank:][:l.rank], kv[t*ldkv:])
		}
	}); err != nil {
		return nil, nil, nil, err
	}
	if err := s.linear(up, ldup, c, n, l.kvUp); err != nil {
		return nil, nil, nil, err
	}
	return c, keys, up, s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			for h := range l.n {
				key := keys[t*ldq+h*l.keyLen:][:l.keyLen]
				copy(key[:l.plain], up[t*ldup+h*(l.plain+l.valueLen):])
				copy(key[l.plain:], kv[t*ldkv+l.rank:])
			}
		}
	})
}
