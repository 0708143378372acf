package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// outputGate is attention with gated outputs: heads' outputs are multiplied by sigmoid(W x), elementwise or with one
// gate per head.
type outputGate struct {
	attention *attention
	gate      *linear
}

// newOutputGate returns the attention of layer i.
func newOutputGate(b *builder, i int) mixer {
	l := newAttention(b, i).(*attention)
	name, n := b.name(i, "attn_gate"), l.n*l.valueLen
	if x := b.t.all[name+".weight"]; x == nil {
		return l
	} else if len(x.NE) == 2 && x.NE[1] == int64(l.n) {
		n = l.n
	}
	return &outputGate{l, b.t.requiredLinear(name, b.p.width, n)}
}

func (l *outputGate) mix(s *stream, y, x []float32, n int, last bool) error {
	a, err := l.attention.attendAll(s, x, n)
	if err != nil {
		return err
	}
	if err := l.computeGates(s, &s.qkv, x, n); err != nil {
		return err
	}
	if err := s.eachRows(n, func(from, to int) { l.applyGates(a, s.qkv, from, to) }); err != nil {
		return err
	}
	return s.project(y, a, n, last, l.attention.out)
}

func (l *outputGate) back(s *stream, dx, dy, x []float32, n int) error {
	return l.attention.backGated(s, dx, dy, x, n, l)
}

// computeGates computes the gates of n tokens into to.
func (l *outputGate) computeGates(s *stream, to *[]float32, x []float32, n int) error {
	gates := l.gate.w.Rows
	g := buffer.Resize(to, n*gates)
	if err := s.linear(g, gates, x, n, l.gate); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) { vecmath.SigmoidOf.Apply(g[a*gates:b*gates], g[a*gates:b*gates]) })
}

// applyGates multiplies rows [a, b) of x, the concatenated outputs of the heads, by their gates.
func (l *outputGate) applyGates(x, gates []float32, a, b int) {
	row, n := l.attention.n*l.attention.valueLen, l.gate.w.Rows
	x, gates = x[a*row:b*row], gates[a*n:b*n]
	if n == row {
		vecmath.Mul(x, gates)
		return
	}
	size := l.attention.valueLen
	for i, f := range gates {
		head := x[i*size:][:size]
		vecmath.Scale(head, head, f)
	}
}

// backGates sets rows [a, b) of d to the gradient w.r.t. the gate matrix's outputs from dx, the gradient w.r.t. out,
// the heads' outputs, and multiplies out by its gates.
func (l *outputGate) backGates(d, dx, out, gates []float32, a, b int) {
	row, n := l.attention.n*l.attention.valueLen, l.gate.w.Rows
	size := row / n
	for i := a * n; i < b*n; i++ {
		d[i] = float32(vecmath.SumProducts(dx[i*size:][:size], out[i*size:][:size])) * (1 - gates[i])
	}
	l.applyGates(out, gates, a, b)
}
