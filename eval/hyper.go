package eval

import (
	"slices"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/vecmath"
)

// hyper are the residual streams of hyper-connections before and after a part; the first one is the model's.
//
// Source: Zhu et al., Hyper-Connections, 2024; Xie et al., mHC, 2025; the graphs of llama.cpp for Hunyuan 4 and
// DeepSeek V4.
type hyper struct {
	n              int // streams
	mixes          *linear
	scale, base    []float32 // of mixes: a number for each kind of outputs; a number for each output
	eps, magnitude float32
	gateEps        float32
	iterations     int           // of dividing by sums; 0 where streams are not mixed
	gated          *gatedStreams // in place of all but n, or nil
}

// hyperStreams are the other streams of all tokens, and the first stream before a part and the factors by which the
// part's outputs and other streams are added to streams.
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
	hyperMean  struct{ n int } // in place of hyperEnd
)

// newHyper returns the hyper-connections whose tensors' names begin with prefix. gates: also those after a part.
func newHyper(b *builder, prefix string, gates bool) *hyper {
	x := &hyper{n: b.count("@hyper_connection.count"), eps: float32(b.float("@hyper_connection.epsilon"))}
	kinds := 1
	if gates {
		kinds, x.magnitude, x.gateEps = 2, float32(b.float("@hyper_connection.magnitude")), x.eps
	}
	x.mixes = b.t.requiredLinear(prefix+"_fn", b.p.width*x.n, x.n*kinds)
	x.scale, x.base = b.t.requiredValues(prefix+"_scale.weight", kinds), b.t.requiredValues(prefix+"_base.weight", x.n*kinds)
	return x
}

// newMixed returns hyper-connections that mix streams.
func newMixed(b *builder, prefix string) *hyper {
	x := &hyper{n: b.count("@hyper_connection.count"), eps: float32(b.float("@hyper_connection.epsilon")), magnitude: 2,
		iterations: b.count("@hyper_connection.sinkhorn_iterations")}
	outputs := x.n * (x.n + 2)
	x.mixes = b.t.requiredLinear(prefix+"_fn", b.p.width*x.n, outputs)
	x.scale = b.t.requiredValues(prefix+"_scale.weight", 3)
	x.base = b.t.requiredValues(prefix+"_base.weight", outputs)
	return x
}

// gatesOf returns how many factors are kept for a token, with n streams: one for each, and one for each pair.
func gatesOf(n int) int { return n * (n + 1) }

// rows returns the rows of the other of n streams for the states h of the tokens that go through the layer now.
func (x *hyperStreams) rows(s *stream, h []float32, n int) [][]float32 {
	if x.others == nil {
		x.others = make([][]float32, n-1)
		for i := range x.others {
			x.others[i] = make([]float32, len(s.h))
		}
		x.first, x.gates = make([]float32, len(s.h)), make([]float32, len(s.h)/s.m.p.width*gatesOf(n))
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
	return s.hyper.first[s.firstToken*width:][:n*width], s.hyper.gates[s.firstToken*gatesOf(x.n):][:n*gatesOf(x.n)]
}

// move moves the rows of n tokens from token from on to token to, as the model's stream moves.
func (x *hyperStreams) move(width, to, from, n int) {
	if x.others == nil || to == from {
		return
	}
	for _, rows := range append(slices.Clone(x.others), x.first) {
		copy(rows[to*width:], rows[from*width:][:n*width])
	}
	gates := gatesOf(len(x.others) + 1)
	copy(x.gates[to*gates:], x.gates[from*gates:][:n*gates])
}

func (x hyperStart) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	for _, y := range s.hyper.rows(s, h, x.n) {
		copy(y, h)
	}
	return h, nil
}

// join sets h to the weighted sum of all streams. gates, unless they are nil, are set to the factors of the outputs.
func (x *hyper) join(s *stream, h, gates []float32) error {
	if x.gated != nil {
		return x.gated.join(s, h, gates)
	}
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
			if gates == nil {
				continue
			}
			g := gates[t*gatesOf(x.n):][:gatesOf(x.n)]
			for i := range x.n {
				g[i] = float32(vecmath.Sigmoid(float32(m[x.n+i]*x.scale[1])+x.base[x.n+i])*x.magnitude) + x.gateEps
			}
			if x.iterations > 0 {
				x.pairs(g[x.n:], m[2*x.n:])
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
	first, gates = x.first[s.firstToken*width:][:all*width], x.gates[s.firstToken*gatesOf(streams):][:all*gatesOf(streams)]
	others = x.rows(s, first, streams)
	if n < all {
		s.keepPredicting(first, width, all)
		s.keepPredicting(gates, gatesOf(streams), all)
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
			y, gates := h[t*width:][:width], gates[t*gatesOf(x.n):]
			if x.iterations > 0 {
				x.mix(y, append([][]float32{first}, others...), gates, t)
				continue
			}
			for i, z := range others {
				vecmath.AddScaled(z[t*width:][:width], y, gates[1+i])
			}
			z := first[t*width:][:width]
			vecmath.AddScaled(z, y, gates[0])
			copy(y, z)
		}
	})
}

// mix sets rows t of all streams, the first of which becomes y, to the sums of y and of all streams, with factors.
func (x *hyper) mix(y []float32, streams [][]float32, gates []float32, t int) {
	width := len(y)
	sums := make([]float32, x.n*width)
	for i := range streams {
		sum := sums[i*width:][:width]
		vecmath.Scale(sum, y, gates[i])
		for k, z := range streams {
			vecmath.AddScaled(sum, z[t*width:][:width], gates[x.n+k*x.n+i])
		}
	}
	for i, z := range streams[1:] {
		copy(z[t*width:][:width], sums[(i+1)*width:])
	}
	copy(y, sums)
}

// pairs sets c, a row for each stream that is added to others, to the factors of mixing streams from outputs m.
func (x *hyper) pairs(c, m []float32) {
	n := x.n
	for from := range n {
		row := c[from*n:][:n]
		for i := range row {
			row[i] = float32(m[from*n+i]*x.scale[2]) + x.base[2*n+from*n+i]
		}
		most, _ := vecmath.Max(row)
		for i := range row {
			row[i] -= most
		}
		vecmath.ExpOf.Apply(row, row)
		vecmath.Scale(row, row, float32(1/vecmath.Sum(row)))
		for i := range row {
			row[i] += x.eps
		}
	}
	divide := func(from, apart int) { // n numbers by their sum
		var sum float64
		for i := range n {
			sum += float64(c[from+i*apart])
		}
		f := float32(sum) + x.eps
		for i := range n {
			c[from+i*apart] /= f
		}
	}
	for k := range x.iterations {
		if k > 0 {
			for i := range n {
				divide(i*n, 1)
			}
		}
		for i := range n {
			divide(i, n)
		}
	}
}

func (x hyperEnd) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, x.join(s, h, nil)
}

// connected adds the steps of a residual with hyper-connections to the layer.
func (b *builder) connected(of graph.Residual, x *hyper) {
	if of.Carry != "" || of.Sum != (graph.Norm{}) {
		b.unsupported("with hyper-connections, a factor of the stream, or a norm, in", of)
	}
	of.Carry = "0"
	b.layer.steps = append(b.layer.steps, hyperIn{x})
	n := len(b.layer.steps)
	if b.residual(graph.Parallel{of}); len(b.layer.steps) != n+1 {
		b.unsupported("with hyper-connections, without a part of its own, the step", of)
	}
	b.layer.steps = append(b.layer.steps, hyperOut{x})
}

func (x hyperMean) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	for _, y := range s.hyper.rows(s, h, x.n) {
		if err := s.eachState(h, y, vecmath.Add); err != nil {
			return nil, err
		}
	}
	return h, s.eachState(h, nil, func(h, _ []float32) { vecmath.Scale(h, h, 1/float32(x.n)) })
}
