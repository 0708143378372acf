package eval

import (
	"fmt"
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/quants"
)

// sharedKVAttention is attention that may reuse the keys and values of an earlier layer (shared KV). Values have an RMS
// norm without weights, and are the keys in layers without a matrix of values.
type sharedKVAttention struct {
	heads
	q, k, v, out *linear // k nil where they are another layer's; v nil where it is k
	qNorm, kNorm *headNorm
	swa          bool
	source       *sharedKVAttention // the layer whose keys and values it reuses; nil for its own
	shared       bool
}

// newSharedKVAttention returns the attention of layer i.
func newSharedKVAttention(b *builder, i int) mixer {
	p, t := b.p, b.t
	l := &sharedKVAttention{heads: b.heads(i), swa: p.isSWA(i)}
	if l.swa {
		l.keyLen = b.k.Size("attention.key_length_swa", l.keyLen)
		l.valueLen = b.k.Size("attention.value_length_swa", l.valueLen)
	}
	dims := p.rope.dims
	if l.swa {
		dims = p.swaRope.dims
	}
	if l.keyLen != l.valueLen || dims > l.keyLen || dims%2 != 0 {
		t.fail(errBroken, "layer %d has keys of %d values, of which RoPE rotates %d, and values of %d", i, l.keyLen,
			dims, l.valueLen)
	}
	l.q = t.requiredLinear(b.name(i, "attn_q"), p.width, l.n*l.keyLen)
	l.qNorm = t.headNorm(b.name(i, "attn_q_norm"), l.n, l.keyLen)
	l.out = t.requiredLinear(b.name(i, "attn_output"), l.n*l.valueLen, p.width)
	if own := p.layers - b.k.Size("attention.shared_kv_layers", 0); i >= own {
		at := own - 1
		if l.swa {
			at--
		}
		if at >= 0 {
			l.source, _ = b.m.layers[at].mixer.(*sharedKVAttention)
		}
		if l.source == nil || l.source.swa != l.swa || l.source.kv != l.kv || l.source.keyLen != l.keyLen {
			t.fail(errUnsupported, "layer %d reuses the keys of layer %d, whose window or heads differ", i, at)
		}
		l.source.shared = true
		for _, name := range []string{"attn_k", "attn_v", "attn_k_norm"} { // unused; some files have them
			t.used[b.name(i, name)+".weight"] = true
		}
		return l
	}
	l.k, l.v = t.requiredLinear(b.name(i, "attn_k"), p.width, l.kv*l.keyLen),
		t.linear(b.name(i, "attn_v"), p.width, l.kv*l.valueLen)
	l.kNorm = t.headNorm(b.name(i, "attn_k_norm"), l.kv, l.keyLen)
	return l
}

func (l *sharedKVAttention) mix(s *stream, y, x []float32, n int, last bool) error {
	p, ld, nq, nk := s.m.p, l.qkvLen(), l.n*l.keyLen, l.kv*l.keyLen
	qkv, table, dims := buffer.Resize(&s.qkv, n*ld), s.rope, p.rope.dims
	if l.swa {
		table, dims = s.swaRope, p.swaRope.dims
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
	shared := s.sharedKV(l)
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			rotations := table[t%s.r.Chunk*dims:][:dims]
			q, kv := qkv[t*ld:][:nq], qkv[t*ld+nq:][:2*nk]
			p.headNorm(l.qNorm, q)
			p.applyRoPE(q, l.keyLen, rotations)
			if l.source != nil {
				copy(kv, shared[(s.firstToken+t)*2*nk:])
				continue
			}
			if l.v == nil {
				copy(kv[nk:], kv[:nk])
			}
			p.headNorm(l.kNorm, kv[:nk])
			p.applyRoPE(kv[:nk], l.keyLen, rotations)
			p.normalize(&norm{}, kv[nk:], kv[nk:], l.valueLen)
			if shared != nil {
				copy(shared[(s.firstToken+t)*2*nk:], kv)
			}
		}
	}); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*nq)
	if err := l.eachGroup(s, n, func(worker *attentionScratch, head, q, k, v, o int) {
		l.attend(worker, head, out[o:], qkv[q:], qkv[k:], qkv[v:], s.r.Chunk, ld, ld, ld, nq)
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}

// sharedKV returns the keys and values that layers share with l, of all tokens; nil if it shares none. Each such layer
// takes 8 bytes for each token and value of a key.
func (s *stream) sharedKV(l *sharedKVAttention) []float32 {
	source := l
	if l.source != nil {
		source = l.source
	}
	if !source.shared {
		return nil
	}
	if s.sharedKVs == nil {
		s.sharedKVs = map[*sharedKVAttention][]float32{}
	}
	if s.sharedKVs[source] == nil {
		s.sharedKVs[source] = make([]float32, len(s.h)/s.m.p.width*2*source.kv*source.keyLen)
	}
	return s.sharedKVs[source]
}

// perLayerEmbedding adds a residual update after a layer: a function of the layer's own embeddings of the tokens and of
// a projection of the token embeddings.
type perLayerEmbedding struct {
	size, layer int
	embed       *model.Tensor // [layers * size, tokens]
	common      *linear       // of the embeddings of all layers
	norm, post  *norm         // of the projection; of the residual update
	gate, proj  *linear
}

// perLayerEmbedding returns the per-layer embedding of layer i, nil for none.
func (b *builder) perLayerEmbedding(i int) *perLayerEmbedding {
	p, t := b.p, b.t
	n := b.k.Size("embedding_length_per_layer_input", 0)
	if n == 0 {
		return nil
	}
	l := &perLayerEmbedding{size: n, layer: i, embed: t.required("per_layer_token_embd.weight", n*p.layers, p.vocab),
		norm: t.requiredNorm("per_layer_proj_norm", n)}
	if l.embed != nil && int64(n)%l.embed.Type.BlockLen() != 0 {
		t.fail(errUnsupported, "tensor %q is of type %v, blocks of which are of several layers, of %d values each",
			l.embed.Name, l.embed.Type, n)
	}
	l.gate, l.proj, l.post = t.requiredLinear(b.name(i, "inp_gate"), p.width, n),
		t.requiredLinear(b.name(i, "proj"), n, p.width),
		t.requiredNorm(b.name(i, "post_norm"), p.width)
	if x := t.required("per_layer_model_proj.weight", p.width, n*p.layers); x != nil {
		// its inputs are the same for all layers
		l.common = &linear{name: x.Name, w: t.weights(x, i*n, n), reportedByOther: i > 0}
	}
	return l
}

// addPerLayerEmbedding adds the residual update of a per-layer embedding to the states h: all of them, or if last the
// wanted ones.
func (s *stream) addPerLayerEmbedding(l *perLayerEmbedding, h []float32, last bool) error {
	p, n := s.m.p, len(s.tokens)
	x, mine, bufs := buffer.Resize(&s.x, n*p.width), buffer.Resize(&s.routerLogits, n*l.size),
		make([][]byte, len(s.scratch))
	defer func() { s.routerLogits = s.routerLogits[:0] }()
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
		p.normalize(l.norm, row, row, l.size)
		vecmath.Scale(own, own, root)
		vecmath.Add(row, own)
		vecmath.Scale(row, row, 1/float32(math.Sqrt(2)))
		return nil
	}); err != nil {
		return err
	}
	if last {
		n = s.keepPredicting(mine, l.size, n)
	}
	gate := buffer.Resize(&s.mid, n*l.size)
	if err := s.linear(gate, l.size, h, n, l.gate); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		g := gate[a*l.size : b*l.size]
		s.activation(s.m.graph.Activation)(g, g)
		vecmath.Mul(g, mine[a*l.size:b*l.size])
	}); err != nil {
		return err
	}
	y := buffer.Resize(&s.y, n*p.width)
	if err := s.linear(y, p.width, gate, n, l.proj); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) { s.addResidual(h[a*p.width:b*p.width], y[a*p.width:b*p.width], l.post) })
}
