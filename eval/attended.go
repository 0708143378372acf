package eval

import (
	"ggforge/arch/graph"
	"ggforge/internal/kernel/vecmath"
)

// attended is attention over the stream and its states before earlier layers, which are the other streams of
// hyperStreams.
//
// Source: Kimi Team, Attention Residuals, 2026; the graph of llama.cpp for Kimi K3.
type attended struct {
	score *norm // the sum of a normalized state is its score
	kept  int   // states that have been kept
	all   int   // states that the model keeps
	keeps bool  // the state before this step is the next one
}

// Steps before and after the residual of a part, and after the last layer.
type (
	attendedIn  struct{ *attended }
	attendedOut struct{ *attended }
	attendedEnd struct{ *attended }
)

// newAttended returns the attention with the scores of a tensor after so many layers have kept states.
func (b *builder) newAttended(tensor string, layers int) *attended {
	every := b.count("@attn_res.block_size")
	kept := func(layers int) int { return (layers + every - 1) / every }
	return &attended{score: &norm{weight: b.t.requiredValues(tensor+".weight", b.p.width)}, kept: kept(layers),
		all: kept(b.p.layers)}
}

// attended adds the steps of a residual of which the part reads a sum of states.
func (b *builder) attended(of graph.Attended) {
	if of.Carry != "" || of.Sum != (graph.Norm{}) {
		b.unsupported("a factor of the stream, or a norm, in", of)
	}
	layers := b.Layer()
	if !of.Keeps {
		layers++
	}
	x := b.newAttended(b.name(of.Name+"_res_score"), layers)
	x.keeps = of.Keeps && b.Layer()%b.count("@attn_res.block_size") == 0
	of.Carry = "0"
	b.layer.steps = append(b.layer.steps, attendedIn{x})
	n := len(b.layer.steps)
	if b.residual(graph.Parallel{of.Residual}); len(b.layer.steps) != n+1 {
		b.unsupported("without a part of its own, the step", of)
	}
	b.layer.steps = append(b.layer.steps, attendedOut{x})
}

// join sets h to the weighted sum of the stream h and of the kept states.
func (x *attended) join(s *stream, h []float32, states [][]float32) error {
	if x.kept == 0 {
		return nil
	}
	p := s.m.p
	width := p.width
	return s.eachRows(len(h)/width, func(from, to int) {
		row, weights := make([]float32, width), make([]float32, x.kept+1)
		for t := from; t < to; t++ {
			own := h[t*width:][:width]
			state := func(i int) []float32 {
				if i < x.kept {
					return states[i][t*width:][:width]
				}
				return own
			}
			for i := range weights {
				p.normalize(x.score, row, state(i), width)
				weights[i] = float32(vecmath.Sum(row))
			}
			most, _ := vecmath.Max(weights)
			var sum float64
			for i, w := range weights {
				weights[i] = vecmath.Exp(w - most)
				sum += float64(weights[i])
			}
			vecmath.Scale(weights, weights, float32(1/sum))
			clear(row)
			for i, w := range weights {
				vecmath.AddScaled(row, state(i), w)
			}
			copy(own, row)
		}
	})
}

func (x attendedIn) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	width := s.m.p.width
	states := s.hyper.rows(s, h, x.all+1)
	s.hyper.tokens = n
	copy(s.hyper.first[s.firstToken*width:], h)
	if x.keeps {
		copy(states[x.kept], h)
	}
	return h, x.join(s, h, states)
}

func (x attendedOut) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	first, _, _ := s.hyper.after(s, n, x.all+1)
	if x.keeps {
		return h, nil
	}
	return h, s.eachState(h, first, vecmath.Add)
}

func (x attendedEnd) forward(s *stream, h []float32, _ int, _ bool) ([]float32, error) {
	return h, x.join(s, h, s.hyper.rows(s, h, x.all+1))
}
