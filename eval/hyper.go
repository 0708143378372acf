package eval

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/vecmath"
)

// hyper are the residual streams of hyper-connections before and after a part; the first one is the model's.
//
// Source: Zhu et al., Hyper-Connections, 2024; the graph of llama.cpp for Hunyuan 4.
type hyper struct {
	n              int // streams
	mixes          *linear
	scale, base    []float32 // of mixes: two numbers; a number for each output
	eps, magnitude float32
}

// hyperStreams are the other streams of all tokens, and the first stream before a part and the factors by which the
// part's outputs are added to streams.
type hyperStreams struct {
	others [][]float32
	first  []float32
	gates  []float32
	tokens int // that went through the last hyperIn
}

// Steps before the first layer, before and after the residual of a part, and after the last layer.
type (
	hyperStart struct{ n int }
	hyperIn    struct{ *hyper }
	hyperOut   struct{ *hyper }
	hyperEnd   struct{ *hyper }
)

// newHyper returns the hyper-connections whose tensors' names begin with prefix. gates: also those after a part.
func newHyper(b *builder, prefix string, gates bool) *hyper {
	x := &hyper{n: b.count("@hyper_connection.count"), eps: float32(b.float("@hyper_connection.epsilon"))}
	kinds := 1
	if gates {
		kinds, x.magnitude = 2, float32(b.float("@hyper_connection.magnitude"))
	}
	x.mixes = b.t.requiredLinear(prefix+"_fn", b.p.width*x.n, x.n*kinds)
	x.scale, x.base = b.t.requiredValues(prefix+"_scale.weight", kinds), b.t.requiredValues(prefix+"_base.weight", x.n*kinds)
	return x
}

// rows returns the rows of the other of n streams for the states h of the tokens that go through the layer now.
func (x *hyperStreams) rows(s *stream, h []float32, n int) [][]float32 {
	if x.others == nil {
		x.others = make([][]float32, n-1)
		for i := range x.others {
			x.others[i] = make([]float32, len(s.h))
		}
		x.first, x.gates = make([]float32, len(s.h)), make([]float32, len(s.h)/s.m.p.width*n)
	}
	rows, at := make([][]float32, n-1), s.firstToken*s.m.p.width
	for i := range rows {
		rows[i] = x.others[i][at:][:len(h)]
	}
	return rows
}

// before returns the rows of the first stream and of the factors for n tokens that go through the layer now.
func (x *hyper) before(s *stream, n int) (first, gates []float32) {
	width := s.m.p.width
	return s.hyper.first[s.firstToken*width:][:n*width], s.hyper.gates[s.firstToken*x.n:][:n*x.n]
}

// move moves the rows of n tokens from token from on to token to, as the model's stream moves.
func (x *hyperStreams) move(width, to, from, n int) {
	if x.others == nil || to == from {
		return
	}
	for _, rows := range append(slices.Clone(x.others), x.first) {
		copy(rows[to*width:], rows[from*width:][:n*width])
	}
	streams := len(x.others) + 1
	copy(x.gates[to*streams:], x.gates[from*streams:][:n*streams])
}

func (x hyperStart) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	for _, y := range s.hyper.rows(s, h, x.n) {
		copy(y, h)
	}
	return h, nil
}

// join sets h to the weighted sum of all streams. gates, unless they are nil, are set to the factors of the outputs.
func (x *hyper) join(s *stream, h, gates []float32) error {
	width := s.m.p.width
	n := len(h) / width
	others, all, mixes := s.hyper.rows(s, h, x.n), make([]float32, len(h)*x.n), make([]float32, n*x.mixes.w.Rows)
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			row := all[t*width*x.n:][:width*x.n]
			copy(row, h[t*width:][:width])
			for i, y := range others {
				copy(row[(i+1)*width:], y[t*width:][:width])
			}
			s.m.p.normalize(&norm{}, row, row, len(row))
		}
	}); err != nil {
		return err
	}
	if err := s.linear(mixes, x.mixes.w.Rows, all, n, x.mixes); err != nil {
		return err
	}
	return s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			m, y := mixes[t*x.mixes.w.Rows:][:x.mixes.w.Rows], h[t*width:][:width]
			for i := range x.n {
				f := vecmath.Sigmoid(float32(m[i]*x.scale[0])+x.base[i]) + x.eps
				if i == 0 {
					vecmath.Scale(y, y, f)
				} else {
					vecmath.AddScaled(y, others[i-1][t*width:][:width], f)
				}
			}
			for i := range gates[min(len(gates), t*x.n):min(len(gates), (t+1)*x.n)] {
				gates[t*x.n+i] = float32(vecmath.Sigmoid(float32(m[x.n+i]*x.scale[1])+x.base[x.n+i])*x.magnitude) + x.eps
			}
		}
	})
}

func (x hyperIn) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	s.hyper.tokens = n
	first, gates := x.before(s, n)
	copy(first, h)
	return h, x.join(s, h, gates)
}

// after returns the first of streams and the factors as they were before a part, and the other streams, for the n
// tokens that are left after it.
func (x *hyperStreams) after(s *stream, n, streams int) (first, gates []float32, others [][]float32) {
	width, all := s.m.p.width, n
	if s.leavesOut { // in the last layer, after which the wanted tokens are left
		all = x.tokens
	}
	first, gates = x.first[s.firstToken*width:][:all*width], x.gates[s.firstToken*streams:][:all*streams]
	others = x.rows(s, first, streams)
	if n < all {
		s.keepPredicting(first, width, all)
		s.keepPredicting(gates, streams, all)
		for i := range others {
			s.keepPredicting(others[i], width, all)
		}
	}
	return first, gates, others
}

func (x hyperOut) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	width := s.m.p.width
	first, gates, others := s.hyper.after(s, n, x.n)
	return h, s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			y := h[t*width:][:width]
			for i, z := range others {
				vecmath.AddScaled(z[t*width:][:width], y, gates[t*x.n+1+i])
			}
			z := first[t*width:][:width]
			vecmath.AddScaled(z, y, gates[t*x.n])
			copy(y, z)
		}
	})
}

func (x hyperEnd) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, x.join(s, h, nil)
}

// connected adds the steps of a residual with hyper-connections to the layer.
func (b *builder) connected(of graph.Connected) {
	if of.Carry != "" || of.Sum != (graph.Norm{}) {
		b.unsupported("a factor of the stream, or a norm, in", of)
	}
	x := newHyper(b, b.name("hc_"+of.Name), true)
	of.Carry = "0"
	b.layer.steps = append(b.layer.steps, hyperIn{x})
	n := len(b.layer.steps)
	if b.residual(graph.Parallel{of.Residual}); len(b.layer.steps) != n+1 {
		b.unsupported("without a part of its own, the step", of)
	}
	b.layer.steps = append(b.layer.steps, hyperOut{x})
}
