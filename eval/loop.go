package eval

import (
	"fmt"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// before adds the steps before a layer's own. pass is the number of layers that run before.
func (b *builder) before(pass int) {
	if of, ok := b.m.graph.Streams.(graph.AltUp); ok {
		a := newAltUp(b, of)
		if b.altUp = a; pass == 0 {
			b.layer.steps = append(b.layer.steps, altUpStart{a})
		}
		b.layer.steps = append(b.layer.steps, altUpPredict{a})
	}
	switch b.m.graph.Streams.(type) {
	case graph.HyperConnections, graph.GatedStreams:
		if pass == 0 {
			b.layer.steps = append(b.layer.steps, hyperStart{b.count("@hyper_connection.count")})
		}
	}
	if _, ok := b.m.graph.Loop.(graph.HRM); ok && pass == 0 {
		b.t.required("hrm.z_l_init", b.p.width)
		b.layer.steps = append(b.layer.steps, &hrmStart{b.t.vector("hrm.z_l_init", b.p.width)})
	}
}

// after adds the steps after a layer's own. passes is how many layers run.
func (b *builder) after(pass, passes int) {
	if a := b.altUp; a != nil {
		b.layer.steps = append(b.layer.steps, altUpCorrect{a})
		if pass+1 == passes {
			b.layer.steps = append(b.layer.steps, altUpEnd{a})
		}
	}
	if of, ok := b.m.graph.Streams.(graph.HyperConnections); ok && pass+1 == passes {
		if of.Mean {
			b.layer.steps = append(b.layer.steps, hyperMean{b.count("@hyper_connection.count")})
		} else {
			b.layer.steps = append(b.layer.steps, hyperEnd{newHyper(b, "output_hc", false)})
		}
	}
	if _, ok := b.m.graph.Streams.(graph.AttentionResiduals); ok && pass+1 == passes {
		b.layer.steps = append(b.layer.steps, attendedEnd{b.newAttended("output_res_score", passes)})
	}
	if _, ok := b.m.graph.Streams.(graph.GatedStreams); ok && pass+1 == passes {
		b.layer.steps = append(b.layer.steps, hyperEnd{&hyper{gated: newGatedStreams(b, "output_hc", false)}})
	}
	switch loop := b.m.graph.Loop.(type) {
	case graph.Repeat:
		if (pass+1)%b.p.layers == 0 && pass+1 < passes {
			b.Scope, b.norms = b.d.At(-1), map[string]*norm{}
			b.steps(loop.Between)
		}
	case graph.HRM:
		if n := b.p.layers / 2; (pass+1)%n == 0 {
			b.layer.steps = append(b.layer.steps, &hrmEnd{high: b.Layer() >= n, last: pass+1 == passes})
		}
	}
}

// hrmStart is the step before the first layer of HRM-Text: the stream of the high stack is the embedding, to which that
// of the low stack is added, the vector start.
type hrmStart struct{ start []float32 }

// hrmEnd is the step after a stack: the stream of the stack is the norm of its last states, and the next stack begins
// with the sum of both streams. The last one leaves the norm.
type hrmEnd struct{ high, last bool }

// hrmStreams are the streams of the high and of the low stack, of all tokens.
type hrmStreams struct{ high, low []float32 }

// rows returns the rows of both for the states h of the tokens that go through the layer now.
func (x *hrmStreams) rows(s *stream, h []float32) (high, low []float32) {
	if len(x.high) != len(s.h) {
		x.high, x.low = make([]float32, len(s.h)), make([]float32, len(s.h))
	}
	at := s.firstToken * s.m.p.width
	return x.high[at:][:len(h)], x.low[at:][:len(h)]
}

func (x *hrmStart) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	high, _ := s.hrm.rows(s, h)
	copy(high, h)
	width := s.m.p.width
	return h, s.eachState(h, nil, func(h, _ []float32) {
		for ; len(h) > 0; h = h[width:] {
			vecmath.Add(h[:width], x.start)
		}
	})
}

func (x *hrmEnd) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	if err := s.eachState(h, nil, func(h, _ []float32) { s.norm(&norm{}, h, h) }); err != nil || x.last {
		return h, err
	}
	high, low := s.hrm.rows(s, h)
	if x.high {
		copy(high, h)
	} else {
		copy(low, h)
	}
	copy(h, high)
	return h, s.eachState(h, low, vecmath.Add)
}

// addEmbedding adds the normalized embeddings of tokens times a number.
type addEmbedding float32

func (f addEmbedding) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	p, rows, bufs := s.m.p, make([][]float32, len(s.scratch)), make([][]byte, len(s.scratch))
	return h, parallel.For(s.ctx, len(s.scratch), len(s.tokens), func(t, worker int) error {
		if rows[worker] == nil {
			rows[worker] = make([]float32, p.width)
		}
		row, id := rows[worker], int64(s.tokens[t])
		if err := decode(s.m.embed, row, &bufs[worker], id, id+1); err != nil {
			return fmt.Errorf("tensor %q: %w", s.m.embed.Name, err)
		}
		if p.embedScale != 1 {
			vecmath.Scale(row, row, float32(p.embedScale))
		}
		if s.m.embedNorm != nil {
			s.norm(s.m.embedNorm, row, row)
		}
		vecmath.Scale(row, row, float32(f))
		vecmath.Add(h[t*p.width:][:p.width], row)
		return nil
	})
}
