package eval

import (
	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// lightning is lightning attention: each head has a state matrix, which decays.
//
//	S = decay·S + k ⊗ v
//	y = Sᵀq
//
// Source: Qin et al., Lightning Attention-2, 2024.
type lightning struct {
	heads, size    int       // size is that of queries, keys and values
	qkv, gate, out *linear   // qkv has the query, key and value of a head next to each other
	norm           *norm     // over all heads
	decay          []float32 // by head
}

var _ = operation(newLightning)

func newLightning(b *builder, _ graph.Lightning) mixer {
	p, t := b.p, b.t
	l := &lightning{heads: b.count("n_head"), size: b.count("n_embd_head_k")}
	all := l.heads * l.size
	l.qkv, l.gate, l.out = t.requiredLinear(b.name("attn_qkv"), p.width, 3*all),
		t.requiredLinear(b.name("attn_gate"), p.width, all), t.requiredLinear(b.name("attn_output"), all, p.width)
	l.norm = t.requiredNorm(b.name("attn_norm_2"), all)
	share := float32(1 + 1e-5)
	if p.layers > 1 {
		share = 1 - float32(b.Layer())/float32(p.layers-1) + 1e-5
	}
	for _, slope := range alibiSlopes(8, l.heads) {
		l.decay = append(l.decay, vecmath.Exp(-float32(slope*share)))
	}
	return l
}

func (l *lightning) mix(s *stream, y, x []float32, n int, last bool) error {
	all := l.heads * l.size
	qkv, gates, out := buffer.Resize(&s.qkv, n*3*all), buffer.Resize(&s.mid, n*all), buffer.Resize(&s.a, n*all)
	if err := s.linear(qkv, 3*all, x, n, l.qkv); err != nil {
		return err
	}
	if err := s.linear(gates, all, x, n, l.gate); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		vecmath.SiLUOf.Apply(qkv[a*3*all:b*3*all], qkv[a*3*all:b*3*all])
	}); err != nil {
		return err
	}
	clear(out)
	if err := parallel.For(s.ctx, len(s.states), n/s.r.Chunk*l.heads, func(i, worker int) error {
		h, first := i%l.heads, i/l.heads*s.r.Chunk
		state := newDeltaState(&s.states[worker], l.size, l.size)
		for j := range state.decay {
			state.decay[j] = l.decay[h]
		}
		for t := first; t < first+s.r.Chunk; t++ {
			row := qkv[(t*l.heads+h)*3*l.size:][:3*l.size]
			vecmath.Recur(out[t*all+h*l.size:][:l.size], state.state, row[2*l.size:], state.decay, row[l.size:][:l.size],
				row[:l.size])
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		out, gates := out[a*all:b*all], gates[a*all:b*all]
		s.m.p.normalize(l.norm, out, out, all)
		vecmath.SigmoidOf.Apply(gates, gates)
		vecmath.Mul(out, gates)
	}); err != nil {
		return err
	}
	return s.project(y, out, n, last, l.out)
}
