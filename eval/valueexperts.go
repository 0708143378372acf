package eval

import (
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// valueExperts computes values of attention by the experts that a router chooses: the weighted sum of SiLU(expert·x).
type valueExperts struct {
	experts // its router, number, normalization and scale
	values  []*linear
}

// newValueExperts returns the experts of the layer's values, size of a token.
func newValueExperts(b *builder, size int) *valueExperts {
	n := b.count("@attention.value_expert_count")
	x := &valueExperts{experts: experts{n: n, used: b.size("@attention.value_expert_used_count"), score: sigmoidScore,
		normalizeTopK: b.flag("expert_weights_norm", false), scale: float32(b.number("expert_weights_scale", 1))}}
	if x.used < 1 || x.used > n {
		b.t.fail(fault.Broken, "layer %d: %d of %d experts of values", b.Layer(), x.used, n)
	}
	x.router, x.values = b.t.requiredLinear(b.name("attn_v_gate"), b.p.width, n), b.t.stack(b.name("attn_v_exps"),
		b.p.width, size, n)
	for _, l := range x.values {
		l.routed = true
	}
	return x
}

// compute sets the values of n tokens, in rows that are ld apart.
func (x *valueExperts) compute(s *stream, values []float32, ld int, in []float32, n int) error {
	width, size := s.m.p.width, x.values[0].w.Rows
	logits, chosen := make([]float32, n*x.n), make([]choice, n*x.used)
	if err := s.linear(logits, x.n, in, n, x.router); err != nil {
		return err
	}
	if err := s.eachRowsErr(n, func(a, b int) error {
		for t := a; t < b; t++ {
			clear(values[t*ld:][:size])
			if err := x.choose(chosen[t*x.used:][:x.used], logits[t*x.n:][:x.n]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	for e, list := range x.assignments(chosen) {
		if len(list) == 0 {
			continue
		}
		rows, y := buffer.Resize(&s.temp[0], len(list)*width), buffer.Resize(&s.temp[1], len(list)*size)
		for i, at := range list {
			copy(rows[i*width:][:width], in[int(at)/x.used*width:])
		}
		if err := s.linear(y, size, rows, len(list), x.values[e]); err != nil {
			return err
		}
		for i, at := range list {
			row := y[i*size:][:size]
			vecmath.SiLUOf.Apply(row, row)
			vecmath.AddScaled(values[int(at)/x.used*ld:][:size], row, chosen[at].weight)
		}
	}
	return nil
}
