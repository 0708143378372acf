package eval

import (
	"fmt"
	"math"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
	"ggforge/quants"
)

// perLayerEmbedding adds a residual update after a layer: a function of the layer's own embeddings of the tokens and of
// a projection of the token embeddings.
type perLayerEmbedding struct {
	size, layer int
	embed       *model.Tensor // [layers * size, tokens], or nil
	common      *linear       // of the embeddings of all layers
	norm, post  *norm         // of the projection; of the residual update
	gate, proj  *linear
	act         vecmath.Function
}

// perLayerEmbedding returns the per-layer embedding of the layer, nil for none.
func (b *builder) perLayerEmbedding(of graph.PerLayerEmbedding) *perLayerEmbedding {
	p, t, i := b.p, b.t, b.Layer()
	n := b.size("@embedding_length_per_layer_input or 0")
	if n == 0 {
		return nil
	}
	l := &perLayerEmbedding{size: n, layer: i, norm: t.requiredNorm("per_layer_proj_norm", n)}
	if !of.Computed {
		l.embed = t.required("per_layer_token_embd.weight", n*p.layers, p.vocab)
	}
	if l.embed != nil && int64(n)%l.embed.Type.BlockLen() != 0 {
		t.fail(errUnsupported, "tensor %q is of type %v, blocks of which are of several layers, of %d values each",
			l.embed.Name, l.embed.Type, n)
	}
	act, ok := functions[of.Act]
	if !ok {
		b.unsupported("in per-layer embeddings, the activation", of.Act)
	}
	l.act = act
	l.gate, l.proj, l.post = t.requiredLinear(b.name("inp_gate"), p.width, n),
		t.requiredLinear(b.name("proj"), n, p.width),
		t.requiredNorm(b.name("post_norm"), p.width)
	if x := t.required("per_layer_model_proj.weight", p.width, n*p.layers); x != nil {
		// its inputs are the same for all layers
		l.common = &linear{name: x.Name, w: t.weights(x, i*n, n), reportedByOther: i > 0}
	}
	return l
}

func (l *perLayerEmbedding) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, l.add(s, h)
}

// add adds the residual update to the states h of the stream's tokens.
func (l *perLayerEmbedding) add(s *stream, h []float32) error {
	y, err := l.update(s, h)
	if err != nil {
		return err
	}
	return s.eachState(h, y, vecmath.Add)
}

// update returns the residual update for the states h of the stream's tokens.
func (l *perLayerEmbedding) update(s *stream, h []float32) ([]float32, error) {
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
		return nil, err
	}
	if err := s.linear(mine, l.size, x, n, l.common); err != nil {
		return nil, err
	}
	root := float32(math.Sqrt(float64(l.size)))
	if err := parallel.For(s.ctx, len(s.scratch), n, func(t, worker int) error {
		id, row, own := int64(s.tokens[t]), mine[t*l.size:][:l.size], make([]float32, l.size)
		vecmath.Scale(row, row, 1/float32(math.Sqrt(float64(p.width))))
		p.normalize(l.norm, row, row, l.size)
		if l.embed == nil {
			return nil
		}
		part := l.embed.Type.RowBytes(int64(l.size))
		raw, err := l.embed.Source.Raw(&bufs[worker], id, id+1)
		if err == nil {
			err = quants.Lookup(l.embed.Type).Dequantize(own, raw[int64(l.layer)*part:][:part])
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", l.embed.Name, err)
		}
		vecmath.Scale(own, own, root)
		vecmath.Add(row, own)
		vecmath.Scale(row, row, 1/float32(math.Sqrt(2)))
		return nil
	}); err != nil {
		return nil, err
	}
	gate := buffer.Resize(&s.mid, n*l.size)
	if err := s.linear(gate, l.size, h, n, l.gate); err != nil {
		return nil, err
	}
	if err := s.eachRows(n, func(a, b int) {
		g := gate[a*l.size : b*l.size]
		s.activation(l.act)(g, g)
		vecmath.Mul(g, mine[a*l.size:b*l.size])
	}); err != nil {
		return nil, err
	}
	y := buffer.Resize(&s.y, n*p.width)
	if err := s.linear(y, p.width, gate, n, l.proj); err != nil {
		return nil, err
	}
	return y, s.eachState(y, nil, func(y, _ []float32) { s.norm(l.post, y, y) })
}
