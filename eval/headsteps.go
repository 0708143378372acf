package eval

import (
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/vecmath"
)

// headStep changes the queries, keys or values of a token.
type headStep interface {
	// apply changes the row of token t. Keys and values that are another layer's are not in it.
	apply(s *stream, row headRow, t int)
	// back turns d from the gradient w.r.t. the row after the step into the gradient w.r.t. the row before it, which is
	// x; or x is the zero value, if the step does not need it.
	back(s *stream, d, x headRow, t int)
	needsInput() bool
}

// headRow is the queries, keys and values of a token; k and v may be nil.
type headRow struct {
	*heads
	all, q, k, v []float32
}

type (
	// clampStep limits all values to ± the number.
	clampStep float32
	// normStep normalizes heads; norms may be nil.
	normStep struct {
		q, k, v *headNorm
		kind    *params // of norms, nil for that of the model
	}
	// ropeStep rotates queries and keys; the number is an index of Model.ropes.
	ropeStep int
	// gainStep multiplies each head of queries by its number.
	gainStep []float32
	// temperatureStep multiplies queries; the number is an index of Model.temperatures.
	temperatureStep int
)

// headSteps returns the steps of an attention; with own unset it has no keys and values of its own.
func (b *builder) headSteps(steps []graph.HeadStep, h *heads, own bool) []headStep {
	var list []headStep
	for _, s := range b.HeadSteps(steps) {
		switch s := s.(type) {
		case graph.RoPE:
			list = append(list, ropeStep(b.rope(s, h.keyLen)))
		case graph.QKNorm:
			n := normStep{q: b.t.headNorm(b.name("attn_q_norm"), h.n, h.keyLen)}
			if own {
				n.k = b.t.headNorm(b.name("attn_k_norm"), h.kv, h.keyLen)
			}
			if n.q == nil && !s.May {
				b.t.fail(fault.Broken, "no tensor %q", b.name("attn_q_norm.weight"))
			}
			if n.q != nil || n.k != nil {
				list = append(list, n)
			}
		case graph.QKLayerNorm:
			n := normStep{q: b.t.headNorm(b.name("attn_q_norm"), h.n, h.keyLen),
				k: b.t.headNorm(b.name("attn_k_norm"), h.kv, h.keyLen), kind: &params{eps: b.float(s.Eps)}}
			if n.q == nil || n.k == nil || !own {
				b.t.fail(fault.Broken, "no tensor %q or %q", b.name("attn_q_norm.weight"), b.name("attn_k_norm.weight"))
			}
			list = append(list, n)
		case graph.UnitNorm:
			list = append(list, normStep{q: &headNorm{size: h.keyLen}, k: &headNorm{size: h.keyLen}})
		case graph.QueryGain:
			list = append(list, gainStep(b.t.requiredValues(b.name("attn_q_norm.weight"), 1, h.n)))
		case graph.ValueNorm:
			list = append(list, normStep{v: &headNorm{size: h.valueLen}})
		case graph.Temperature:
			if i, ok := b.temperature(s); ok {
				list = append(list, temperatureStep(i))
			}
		case graph.Clamp:
			if f := b.float(s.By); f != 0 {
				list = append(list, clampStep(f))
			}
		default:
			b.unsupported("step of queries and keys", s)
		}
	}
	return list
}

func (c clampStep) apply(_ *stream, row headRow, _ int) { clamp(row.all, float32(c)) }

func (c clampStep) back(_ *stream, d, x headRow, _ int) {
	limit := float32(c)
	for i, v := range x.all {
		if v > limit || v < -limit {
			d.all[i] = 0
		}
	}
}

func (clampStep) needsInput() bool { return true }

func (n normStep) apply(s *stream, row headRow, _ int) {
	p := n.params(s)
	p.headNorm(n.q, row.q)
	p.headNorm(n.k, row.k)
	p.headNorm(n.v, row.v)
}

func (n normStep) back(s *stream, d, x headRow, t int) {
	p := n.params(s)
	s.backHeadNorm(p, n.q, d.q, x.q, t)
	s.backHeadNorm(p, n.k, d.k, x.k, t)
	s.backHeadNorm(p, n.v, d.v, x.v, t)
}

// params has the kind of norms.
func (n normStep) params(s *stream) *params {
	if n.kind != nil {
		return n.kind
	}
	return s.m.p
}

func (normStep) needsInput() bool { return true }

func (r ropeStep) apply(s *stream, row headRow, t int) {
	angles := s.angles(int(r), t)
	s.m.ropes[r].apply(row.q, row.keyLen, angles)
	s.m.ropes[r].apply(row.k, row.keyLen, angles)
}

func (r ropeStep) back(s *stream, d, _ headRow, t int) {
	angles := s.angles(int(r), t)
	s.m.ropes[r].back(d.q, d.keyLen, angles)
	s.m.ropes[r].back(d.k, d.keyLen, angles)
}

func (ropeStep) needsInput() bool { return false }

// angles returns the cosines and sines of a RoPE for token t.
func (s *stream) angles(rope, t int) []float32 {
	dims := s.m.ropes[rope].dims
	return s.rotations[rope][s.position(t)*dims:][:dims]
}

func (g gainStep) apply(_ *stream, row headRow, _ int) {
	for i, f := range g {
		q := row.q[i*row.keyLen:][:row.keyLen]
		vecmath.Scale(q, q, f)
	}
}

func (g gainStep) back(s *stream, d, _ headRow, t int) { g.apply(s, d, t) }

func (gainStep) needsInput() bool { return false }

func (i temperatureStep) apply(s *stream, row headRow, t int) {
	vecmath.Scale(row.q, row.q, s.queryFactors[i][s.position(t)])
}

func (i temperatureStep) back(s *stream, d, _ headRow, t int) { i.apply(s, d, t) }

func (temperatureStep) needsInput() bool { return false }
