package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// backMLA are the buffers of MLA's backward pass: gradients w.r.t. queries and compressed KV (with the shared RoPE part
// of keys), and buffers per head.
type backMLA struct{ q, kv, queries, attended, k, v []float32 }

func (l *mla) back(s *stream, dx, dy, x []float32, n int) error {
	p, r := s.m.p, s.reverse
	ldq, ldkv, no := l.n*l.keyLen, l.rank+l.ropeDim, l.n*l.valueLen
	compressed := 0 // width of the compressed query, 0 if it is not compressed
	if l.q == nil {
		compressed = l.qDown.w.Rows
	}
	raw := buffer.Resize(&r.raw, n*(compressed+ldkv))
	rawDown, rawKV := raw[:n*compressed], raw[n*compressed:]
	q, kv, err := l.project(s, x, n, rawDown, rawKV)
	if err != nil {
		return err
	}
	da := buffer.Resize(&r.hidden, n*no)
	if err := s.backLinear(da, dy, p.width, nil, n, false, l.out); err != nil {
		return err
	}
	dq, dkv, out := buffer.Resize(&r.latent.q, n*ldq), buffer.Resize(&r.latent.kv, n*ldkv), buffer.Resize(&s.a, n*no)
	backAttention := l.backCompressed
	if l.kvUp != nil {
		backAttention = l.backDecompressed
	}
	if err := backAttention(s, dq, dkv, da, out, q, kv, n); err != nil {
		return err
	}
	if err := s.report(out, dy, p.width, n, l.out); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			query := dq[t*ldq:][:ldq]
			if l.rope >= 0 {
				l.rotate(s.m.ropes[l.rope].back, query, dkv[t*ldkv+l.rank:][:l.ropeDim], s.angles(l.rope, t))
			}
			l.scaleQuery(s, query, t)
			s.backNormOf(p, l.kvNorm, dkv[t*ldkv:][:l.rank], rawKV[t*ldkv:][:l.rank], l.rank, t)
		}
	}); err != nil {
		return err
	}
	if l.q != nil {
		if err := s.backLinear(dx, dq, ldq, x, n, false, l.q); err != nil {
			return err
		}
	} else {
		down, d := buffer.Resize(&s.mid, len(rawDown)), buffer.Resize(&r.mid, len(rawDown))
		if err := s.eachRows(n, func(a, b int) {
			a, b = a*compressed, b*compressed
			p.normalize(l.qNorm, down[a:b], rawDown[a:b], compressed)
		}); err != nil {
			return err
		}
		if err := s.backLinear(d, dq, ldq, down, n, false, l.qUp); err != nil {
			return err
		}
		if err := s.eachRows(n, func(a, b int) {
			from, to := a*compressed, b*compressed
			s.backNormOf(p, l.qNorm, d[from:to], rawDown[from:to], compressed, a)
		}); err != nil {
			return err
		}
		if err := s.backLinear(dx, d, compressed, x, n, false, l.qDown); err != nil {
			return err
		}
	}
	return s.backLinear(dx, dkv, ldkv, x, n, true, l.kvDown)
}

// backCompressed is the backward pass of compressed: it sets dq and dkv to the gradients w.r.t. q and kv from da, the
// gradient w.r.t. out. It also sets out.
func (l *mla) backCompressed(s *stream, dq, dkv, da, out, q, kv []float32, n int) error {
	r, ldkv, ldq, no := &s.reverse.latent, l.rank+l.ropeDim, l.n*l.keyLen, l.n*l.valueLen
	of := l.compressedHeads()
	clear(dkv)
	for first := 0; first < l.n; first += mlaHeadBlock {
		count := min(mlaHeadBlock, l.n-first)
		size, wide := n*l.rank, n*ldkv
		read, said := buffer.Resize(&s.latent.q, count*wide), buffer.Resize(&s.latent.a, count*size)
		dread, dsaid, dk, dv := buffer.Resize(&r.queries, count*wide), buffer.Resize(&r.attended, count*size),
			buffer.Resize(&r.k, count*wide),
			buffer.Resize(&r.v, count*size)
		for h := range count {
			if err := l.absorbedQueries(s, read[h*wide:][:wide], q, first+h, n); err != nil {
				return err
			}
			if err := s.backLinear(dsaid[h*size:][:size], da[(first+h)*l.valueLen:], no, nil, n, false,
				l.vUp[first+h]); err != nil {
				return err
			}
		}
		if err := parallel.For(s.ctx, len(s.attention), n/s.r.Chunk*count, func(i, worker int) error {
			c, h := i/count*s.r.Chunk, i%count
			at, end := (h*n+c)*ldkv, (h*n+c)*l.rank
			of.attendBack(&s.attention[worker], 0, dread[at:], dk[at:], dv[end:], dsaid[end:], said[end:], read[at:],
				kv[c*ldkv:], kv[c*ldkv:], s.r.Chunk, strides{ldkv, ldkv, ldkv, l.rank},
				strides{ldkv, ldkv, l.rank, l.rank})
			return nil
		}); err != nil {
			return err
		}
		for h := range count {
			head := first + h
			if err := s.linear(out[head*l.valueLen:], no, said[h*size:][:size], n, l.vUp[head]); err != nil {
				return err
			}
			if err := s.report(said[h*size:][:size], da[head*l.valueLen:], no, n, l.vUp[head]); err != nil {
				return err
			}
			from, err := l.nopeQueries(s, q, head, n)
			if err != nil {
				return err
			}
			d := buffer.Resize(&s.reverse.mid, n*l.nopeDim)
			if err := s.backLinear(d, dread[h*wide:], ldkv, from, n, false, l.kUp[head]); err != nil {
				return err
			}
			if err := s.eachRows(n, func(a, b int) {
				for t := a; t < b; t++ {
					query := dq[t*ldq+head*l.keyLen:][:l.keyLen]
					copy(query[:l.nopeDim], d[t*l.nopeDim:])
					copy(query[l.nopeDim:], dread[h*wide+t*ldkv+l.rank:])
					vecmath.Add(dkv[t*ldkv:][:ldkv], dk[h*wide+t*ldkv:][:ldkv])
					vecmath.Add(dkv[t*ldkv:][:l.rank], dv[h*size+t*l.rank:][:l.rank])
				}
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// backDecompressed is the backward pass of attention with decompressed KV: it sets dq and dkv to the gradients w.r.t. q
// and kv from da, the gradient w.r.t. out. It also sets out.
func (l *mla) backDecompressed(s *stream, dq, dkv, da, out, q, kv []float32, n int) error {
	r, ldkv, ldq, no := &s.reverse.latent, l.rank+l.ropeDim, l.n*l.keyLen, l.n*l.valueLen
	one := l.nopeDim + l.valueLen
	ldup := l.n * one
	vectors, keys, up, err := l.decompress(s, kv, n)
	if err != nil {
		return err
	}
	dkeys, dup := buffer.Resize(&r.k, n*ldq), buffer.Resize(&r.v, n*ldup)
	of := l.heads
	of.n, of.kv = 1, 1
	if err := parallel.For(s.ctx, len(s.attention), n/s.r.Chunk*l.n, func(i, worker int) error {
		c, h := i/l.n*s.r.Chunk, i%l.n
		query, value, o := (c*l.n+h)*l.keyLen, c*ldup+h*one+l.nopeDim, (c*l.n+h)*l.valueLen
		ld := strides{ldq, ldq, ldup, no}
		of.attendBack(&s.attention[worker], 0, dq[query:], dkeys[query:], dup[value:], da[o:], out[o:], q[query:],
			keys[query:], up[value:], s.r.Chunk, ld, ld)
		return nil
	}); err != nil {
		return err
	}
	clear(dkv)
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			for h := range l.n {
				key := dkeys[t*ldq+h*l.keyLen:][:l.keyLen]
				copy(dup[t*ldup+h*one:], key[:l.nopeDim])
				vecmath.Add(dkv[t*ldkv+l.rank:][:l.ropeDim], key[l.nopeDim:])
			}
		}
	}); err != nil {
		return err
	}
	d := buffer.Resize(&s.reverse.mid, n*l.rank)
	if err := s.backLinear(d, dup, ldup, vectors, n, false, l.kvUp); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			copy(dkv[t*ldkv:][:l.rank], d[t*l.rank:])
		}
	})
}
