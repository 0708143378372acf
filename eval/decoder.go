package eval

import (
	"context"
	"fmt"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
)

// Decodes reports whether the model is an encoder-decoder, whose decoder predicts a text for a source: it is run with
// Run.Sources. Without them it is its encoder.
func (m *Model) Decodes() bool { return m.decoder != nil }

// second builds the second stack of layers.
func (b *builder) second(s graph.Second) {
	switch s := s.(type) {
	case nil:
	case graph.Decoder:
		encoder, p := b.m, *b.p
		p.layers, p.bidirectional = b.d.DecoderLayers(), false
		m := &Model{source: encoder.source, graph: encoder.graph, p: &p, embed: encoder.embed,
			embedNorm: encoder.embedNorm, costs: encoder.costs}
		b.m, b.p, b.Scope = m, &p, b.d.At(-1)
		b.norms = map[string]*norm{}
		b.final(s.Final)
		b.head(s.Head)
		m.layers, b.attentions = make([]layer, p.layers), make([]*attention, p.layers)
		for i := range m.layers {
			b.Scope, b.norms = b.d.InDecoder(i), map[string]*norm{}
			b.layer = &m.layers[i]
			b.steps(s.Layer)
			b.layer.finish()
		}
		encoder.decoder = m
		b.m, b.p = encoder, encoder.p
		b.checkLengths(encoder)
		b.checkLengths(m)
	case graph.Decision:
		b.decision(s)
	default:
		b.unsupported("second stack", s)
	}
}

// checkLengths refuses layers that do not compute chunks of different lengths together.
func (b *builder) checkLengths(m *Model) {
	if m.positions != nil || len(m.temperatures) > 0 {
		b.fail(fault.Unsupported, "an encoder-decoder with positions")
	}
	for i := range m.layers {
		for part := range m.layers[i].parts() {
			switch part := part.(type) {
			case *feedForward, *crossAttention:
				continue
			case *attention:
				if len(part.steps) == 0 {
					continue
				}
			}
			b.fail(fault.Unsupported, "an encoder-decoder with the %s of layer %d", partName(part), i)
		}
	}
}

// encoderStates are the last states of an encoder: the source of each chunk of a decoder's run, one after the other.
type encoderStates struct {
	data  []float32
	width int
	ends  []int // of sources, in rows
}

// from returns the first row of the source of chunk i.
func (e *encoderStates) from(i int) int {
	if i == 0 {
		return 0
	}
	return e.ends[i-1]
}

// encode runs the encoder over the sources of a run.
func (m *Model) encode(ctx context.Context, r *Run) (*encoderStates, error) {
	run := Run{Workers: r.Workers, Inputs: r.Inputs, HalfGELU: r.HalfGELU, Progress: r.Progress, dry: r.dry}
	e := &encoderStates{width: m.p.width}
	for _, ids := range r.Sources {
		run.Tokens, run.Lengths = append(run.Tokens, ids...), append(run.Lengths, len(ids))
		e.ends = append(e.ends, len(run.Tokens))
	}
	run.Chunk = meanLength(len(run.Tokens), len(run.Lengths))
	states, err := m.forward(ctx, []*Run{&run})
	if err != nil {
		return nil, err
	}
	e.data = states.data
	return e, nil
}

// decode runs the encoder over the sources of a run, and the decoder over its tokens.
func (m *Model) decode(ctx context.Context, r Run) (*States, error) {
	if err := r.checkSources(m); err != nil {
		return nil, err
	}
	encoder, sources := r, 0
	for _, ids := range r.Sources {
		sources += len(ids)
	}
	if r.Progress != nil { // layers of both have about as many weights
		done := float64(sources * len(m.layers))
		share := done / (done + float64(len(r.Tokens)*len(m.decoder.layers)))
		encoder.Progress = func(p Progress) { r.Progress(Progress{Done: share * p.Done}) }
		progress := r.Progress
		r.Progress = func(p Progress) { progress(Progress{Done: share + (1-share)*p.Done}) }
	}
	var err error
	if r.encoded, err = m.encode(ctx, &encoder); err != nil {
		return nil, fmt.Errorf("encoder: %w", err)
	}
	return m.decoder.forward(ctx, []*Run{&r})
}

// crossAttention is a mixer: attention of a decoder's tokens to the states of the encoder.
type crossAttention struct {
	heads
	q, k, v, out *linear
}

var _ = operation(func(b *builder, a graph.CrossAttention) mixer {
	p, t := b.p, b.t
	l := &crossAttention{heads: b.heads(graph.Attention{Scale: a.Scale, Sees: graph.Both})}
	l.q = t.requiredLinear(b.name("cross_attn_q"), p.width, l.n*l.keyLen)
	l.k = t.requiredLinear(b.name("cross_attn_k"), p.width, l.kv*l.keyLen)
	l.v = t.requiredLinear(b.name("cross_attn_v"), p.width, l.kv*l.valueLen)
	l.out = t.requiredLinear(b.name("cross_attn_o"), l.n*l.valueLen, p.width)
	t.used[b.name("cross_attn_rel_b")+".weight"] = true
	return l
})

func (l *crossAttention) mix(s *stream, y, x []float32, n int, last bool) error {
	nq, nk, no := l.n*l.keyLen, l.kv*l.keyLen, l.n*l.valueLen
	chunks, e := s.chunks(n), s.r.encoded
	if e == nil {
		return fault.Errorf(fault.Usage, "a decoder without the states of its encoder")
	}
	q := buffer.Resize(&s.qkv, n*nq)
	if err := s.linear(q, nq, x, n, l.q); err != nil {
		return err
	}
	first, end := e.from(s.firstChunk), e.ends[s.firstChunk+len(chunks)-1]
	ld := nk + l.kv*l.valueLen
	kv := buffer.Resize(&s.latent.kv, (end-first)*ld)
	if err := s.linear(kv, ld, e.data[first*e.width:end*e.width], end-first, l.k, l.v); err != nil {
		return err
	}
	out := buffer.Resize(&s.a, n*no)
	if err := parallel.For(s.ctx, len(s.attention), len(chunks)*l.kv, func(i, worker int) error {
		c, group := i/l.kv, i%l.kv
		from := e.from(s.firstChunk + c)
		rows, head, at := e.ends[s.firstChunk+c]-from, group*(l.n/l.kv), chunks[c].at
		keys := kv[(from-first)*ld:]
		l.attend(&s.attention[worker], head, out[at*no+head*l.valueLen:], q[at*nq+head*l.keyLen:],
			keys[group*l.keyLen:], keys[nk+group*l.valueLen:], chunks[c].n, rows, nq, ld, ld, no)
		return nil
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}
