package eval

import (
	"fmt"
	"math"

	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/quants"
)

// lending is attention whose keys and values may be those of an earlier layer; values are
// normalized without weights, and are those of keys where they have no matrix.
type lending struct {
	heads
	q, k, v, out *linear // k nil where they are another layer's; v nil where it is k
	qNorm, kNorm *headNorm
	local        bool
	from         *lending // whose keys and values are used; nil for its own
	lends        bool
}

// newLending returns the attention of layer i.
func newLending(b *builder, i int) mixer {
	p, t := b.p, b.t
	l := &lending{heads: b.heads(i), local: p.local(i)}
	if l.local {
		l.keyLen = b.k.size("attention.key_length_swa", l.keyLen)
		l.valueLen = b.k.size("attention.value_length_swa", l.valueLen)
	}
	dims := p.rope.dims
	if l.local {
		dims = p.localRope.dims
	}
	if l.keyLen != l.valueLen || dims > l.keyLen || dims%2 != 0 {
		t.fail(errBroken, "layer %d has keys of %d values, of which %d are turned, and values of %d", i, l.keyLen,
			dims, l.valueLen)
	}
	l.q = t.needed(b.name(i, "attn_q"), p.width, l.n*l.keyLen)
	l.qNorm = t.headNorm(b.name(i, "attn_q_norm"), l.n, l.keyLen)
	l.out = t.needed(b.name(i, "attn_output"), l.n*l.valueLen, p.width)
	if own := p.layers - b.k.size("attention.shared_kv_layers", 0); i >= own {
		at := own - 1
		if l.local {
			at--
		}
		if at >= 0 {
			l.from, _ = b.m.layers[at].mixer.(*lending)
		}
		if l.from == nil || l.from.local != l.local || l.from.kv != l.kv || l.from.keyLen != l.keyLen {
			t.fail(errUnsupported, "layer %d uses the keys of layer %d, which is of another kind", i, at)
		}
		l.from.lends = true
		for _, name := range []string{"attn_k", "attn_v", "attn_k_norm"} { // that some files have all the same
			t.used[b.name(i, name)+".weight"] = true
		}
		return l
	}
	l.k, l.v = t.needed(b.name(i, "attn_k"), p.width, l.kv*l.keyLen),
		t.linear(b.name(i, "attn_v"), p.width, l.kv*l.valueLen)
	l.kNorm = t.headNorm(b.name(i, "attn_k_norm"), l.kv, l.keyLen)
	return l
}

func (l *lending) mix(s *stream, y, x []float32, n int, last bool) error {
	p, ld, nq, nk := s.m.p, l.row(), l.n*l.keyLen, l.kv*l.keyLen
	qkv, table, dims := grow(&s.qkv, n*ld), s.global, p.rope.dims
	if l.local {
		table, dims = s.local, p.localRope.dims
	}
	matrices := []*linear{l.q}
	if l.k != nil {
		matrices = append(matrices, l.k)
	}
	if l.v != nil {
		matrices = append(matrices, l.v)
	}
	if err := s.linear(qkv, ld, x, n, matrices...); err != nil {
		return err
	}
	lent := s.lent(l)
	if err := s.each(n, func(a, b int) {
		for t := a; t < b; t++ {
			turns := table[t%s.r.Chunk*dims:][:dims]
			q, kv := qkv[t*ld:][:nq], qkv[t*ld+nq:][:2*nk]
			p.headNorm(l.qNorm, q)
			p.turn(q, l.keyLen, turns)
			if l.from != nil {
				copy(kv, lent[(s.at+t)*2*nk:])
				continue
			}
			if l.v == nil {
				copy(kv[nk:], kv[:nk])
			}
			p.headNorm(l.kNorm, kv[:nk])
			p.turn(kv[:nk], l.keyLen, turns)
			p.apply(&norm{}, kv[nk:], kv[nk:], l.valueLen)
			if lent != nil {
				copy(lent[(s.at+t)*2*nk:], kv)
			}
		}
	}); err != nil {
		return err
	}
	out := grow(&s.a, n*nq)
	if err := l.each(s, n, func(worker *attending, head, q, k, v, o int) {
		l.attend(worker, head, out[o:], qkv[q:], qkv[k:], qkv[v:], s.r.Chunk, ld, ld, ld, nq)
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}

// lent returns the keys and values of all tokens that layers share, nil for none: 4 bytes
// times twice the length of a layer's keys for each token, for each layer that lends.
func (s *stream) lent(l *lending) []float32 {
	of := l
	if l.from != nil {
		of = l.from
	}
	if !of.lends {
		return nil
	}
	if s.keysLent == nil {
		s.keysLent = map[*lending][]float32{}
	}
	if s.keysLent[of] == nil {
		s.keysLent[of] = make([]float32, len(s.h)/s.m.p.width*2*of.kv*of.keyLen)
	}
	return s.keysLent[of]
}

// perLayer adds to the stream after a layer what it makes of the embeddings of tokens that
// the layer has of its own and of what a matrix makes of those of all layers.
type perLayer struct {
	size, layer int
	embed       *model.Tensor // [layers * size, tokens]
	common      *linear       // of the embeddings of all layers
	norm, post  *norm         // of what it makes; of what is added
	gate, proj  *linear
}

// perLayer returns what follows layer i, nil for nothing.
func (b *builder) perLayer(i int) *perLayer {
	p, t := b.p, b.t
	n := b.k.size("embedding_length_per_layer_input", 0)
	if n == 0 {
		return nil
	}
	l := &perLayer{size: n, layer: i, embed: t.must("per_layer_token_embd.weight", n*p.layers, p.vocab),
		norm: t.neededNorm("per_layer_proj_norm", n)}
	if l.embed != nil && int64(n)%l.embed.Type.BlockLen() != 0 {
		t.fail(errUnsupported, "tensor %q is of type %v, blocks of which are of several layers, of %d values each",
			l.embed.Name, l.embed.Type, n)
	}
	l.gate, l.proj, l.post = t.needed(b.name(i, "inp_gate"), p.width, n), t.needed(b.name(i, "proj"), n, p.width),
		t.neededNorm(b.name(i, "post_norm"), p.width)
	if x := t.must("per_layer_model_proj.weight", p.width, n*p.layers); x != nil {
		// its inputs are the same for all layers
		l.common = &linear{name: x.Name, w: t.weights(x, i*n, n), silent: i > 0}
	}
	return l
}

// follow adds to the states h what follows a layer: to all, or if last to those that are
// wanted.
func (s *stream) follow(l *perLayer, h []float32, last bool) error {
	p, n := s.m.p, len(s.tokens)
	x, mine, bufs := grow(&s.x, n*p.width), grow(&s.early, n*l.size), make([][]byte, len(s.scratch))
	defer func() { s.early = s.early[:0] }()
	if err := parallel.For(s.ctx, len(s.scratch), n, func(t, worker int) error {
		row, id := x[t*p.width:][:p.width], int64(s.tokens[t])
		if err := decode(s.m.embed, row, &bufs[worker], id, id+1); err != nil {
			return fmt.Errorf("tensor %q: %w", s.m.embed.Name, err)
		}
		vecmath.Scale(row, row, float32(p.embedScale))
		return nil
	}); err != nil {
		return err
	}
	if err := s.linear(mine, l.size, x, n, l.common); err != nil {
		return err
	}
	root, part := float32(math.Sqrt(float64(l.size))), l.embed.Type.RowBytes(int64(l.size))
	if err := parallel.For(s.ctx, len(s.scratch), n, func(t, worker int) error {
		id, row, own := int64(s.tokens[t]), mine[t*l.size:][:l.size], make([]float32, l.size)
		raw, err := l.embed.Source.Raw(&bufs[worker], id, id+1)
		if err == nil {
			err = quants.Lookup(l.embed.Type).Dequantize(own, raw[int64(l.layer)*part:][:part])
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", l.embed.Name, err)
		}
		vecmath.Scale(row, row, 1/float32(math.Sqrt(float64(p.width))))
		p.apply(l.norm, row, row, l.size)
		vecmath.Scale(own, own, root)
		vecmath.Add(row, own)
		vecmath.Scale(row, row, 1/float32(math.Sqrt(2)))
		return nil
	}); err != nil {
		return err
	}
	if last {
		n = s.keep(mine, l.size, n)
	}
	gate := grow(&s.mid, n*l.size)
	if err := s.linear(gate, l.size, h, n, l.gate); err != nil {
		return err
	}
	if err := s.each(n, func(a, b int) {
		g := gate[a*l.size : b*l.size]
		s.act(s.m.graph.Act)(g, g)
		vecmath.Mul(g, mine[a*l.size:b*l.size])
	}); err != nil {
		return err
	}
	y := grow(&s.y, n*p.width)
	if err := s.linear(y, p.width, gate, n, l.proj); err != nil {
		return err
	}
	return s.each(n, func(a, b int) { s.add(h[a*p.width:b*p.width], y[a*p.width:b*p.width], l.post) })
}
