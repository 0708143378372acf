package eval

import (
	"math"

	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// altUp are the residual streams of Gemma 3n: the first one is the model's, which layers read.
//
// Source: Baykal et al., Alternating Updates for Efficient Transformers, 2023; the graph of llama.cpp.
type altUp struct {
	n              int       // streams
	start, end     []*linear // of the others
	router         *linear
	routerNorm     *norm
	predict        *linear // coefficients of n streams for each
	correct        *linear
	correctedScale []float32
	embedding      *perLayerEmbedding // or nil
}

// altUpStreams are the other streams of all tokens, and for those that go through a layer now, the predictions of all
// streams.
type altUpStreams struct {
	others      [][]float32
	predictions [][]float32
	tokens      int // of predictions
}

// Steps before the first layer, before and after each layer, and after the last one.
type (
	altUpStart   struct{ *altUp }
	altUpPredict struct{ *altUp }
	altUpCorrect struct{ *altUp }
	altUpEnd     struct{ *altUp }
)

// newAltUp returns the streams of the layer.
func newAltUp(b *builder, of graph.AltUp) *altUp {
	t, w := b.t, b.p.width
	n := b.count("@altup.num_inputs")
	a := &altUp{n: n, router: t.requiredLinear(b.name("altup_router"), w, n),
		routerNorm: t.requiredNorm(b.name("altup_router_norm"), w),
		predict:    t.requiredLinear(b.name("altup_predict_coef"), n, n*n),
		correct:    t.requiredLinear(b.name("altup_correct_coef"), n, n),
		start:      t.stack("altup_proj", w, w, n-1), end: t.stack("altup_unembd_proj", w, w, n-1),
		embedding: b.perLayerEmbedding(graph.PerLayerEmbedding{Act: of.Act})}
	a.correctedScale = t.requiredValues(b.name("altup_correct_scale.weight"), w)
	return a
}

// others returns the rows of the other streams for n tokens that go through the layer now.
func (s *stream) others(a *altUp, n int) [][]float32 {
	if s.altUp.others == nil {
		s.altUp.others = make([][]float32, a.n-1)
		for i := range s.altUp.others {
			s.altUp.others[i] = make([]float32, len(s.h))
		}
	}
	rows, width := make([][]float32, a.n-1), s.m.p.width
	for i := range rows {
		rows[i] = s.altUp.others[i][s.firstToken*width:][:n*width]
	}
	return rows
}

// toLength scales rows of y to the lengths of those of x.
func (s *stream) toLength(y, x []float32) error {
	width := s.m.p.width
	return s.eachState(y, x, func(y, x []float32) {
		for ; len(y) > 0; y, x = y[width:], x[width:] {
			row := y[:width]
			if own := float32(math.Sqrt(vecmath.SumSquares(row, 0))); own != 0 { // Pair leaves out products
				vecmath.Scale(row, row, float32(math.Sqrt(vecmath.SumSquares(x[:width], 0)))/own)
			}
		}
	})
}

func (a altUpStart) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	for i, y := range s.others(a.altUp, n) {
		if err := s.linear(y, s.m.p.width, h, n, a.start[i]); err != nil {
			return nil, err
		}
		if err := s.toLength(y, h); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// coefficients returns the outputs of a matrix for the router's outputs for the states x of n tokens.
func (a *altUp) coefficients(s *stream, x []float32, n int, by *linear) ([]float32, error) {
	in, modalities := buffer.Resize(&s.x, len(x)), make([]float32, n*a.n)
	if err := s.eachState(in, x, func(in, x []float32) {
		s.norm(a.routerNorm, in, x)
		vecmath.Scale(in, in, 1/float32(s.m.p.width))
	}); err != nil {
		return nil, err
	}
	if err := s.linear(modalities, a.n, in, n, a.router); err != nil {
		return nil, err
	}
	vecmath.TanhOf.Apply(modalities, modalities)
	coefficients := make([]float32, n*by.w.Rows)
	return coefficients, s.linear(coefficients, by.w.Rows, modalities, n, by)
}

func (a altUpPredict) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	c, err := a.coefficients(s, h, n, a.predict)
	if err != nil {
		return nil, err
	}
	x, width := append([][]float32{h}, s.others(a.altUp, n)...), s.m.p.width
	if s.altUp.predictions == nil {
		s.altUp.predictions = make([][]float32, a.n)
	}
	s.altUp.tokens = n
	for j := range a.n {
		buffer.Resize(&s.altUp.predictions[j], n*width)
	}
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			for j := range a.n {
				y := s.altUp.predictions[j][t*width:][:width]
				clear(y)
				for i := range a.n {
					vecmath.AddScaled(y, x[i][t*width:][:width], c[(t*a.n+j)*a.n+i])
				}
				vecmath.Add(y, x[j][t*width:][:width])
			}
		}
	}); err != nil {
		return nil, err
	}
	copy(h, s.altUp.predictions[0][:n*width])
	return h, nil
}

func (a altUpCorrect) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	width, all := s.m.p.width, s.altUp.tokens
	predictions := make([][]float32, a.n)
	for j := range predictions {
		if predictions[j] = s.altUp.predictions[j][:all*width]; n < all { // in the last layer
			predictions[j] = predictions[j][:s.keepPredicting(predictions[j], width, all)*width]
		}
	}
	c, err := a.coefficients(s, h, n, a.correct)
	if err != nil {
		return nil, err
	}
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			x := h[t*width:][:width]
			vecmath.AddScaled(x, predictions[0][t*width:][:width], -1)
			for j := range a.n {
				vecmath.AddScaled(predictions[j][t*width:][:width], x, c[t*a.n+j]+1)
			}
			copy(x, predictions[0][t*width:])
		}
	}); err != nil {
		return nil, err
	}
	others := s.others(a.altUp, n)
	for i, x := range others {
		copy(x, predictions[i+1])
	}
	if a.embedding == nil {
		return h, nil
	}
	first := predictions[0]
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			vecmath.Mul(first[t*width:][:width], a.correctedScale)
		}
	}); err != nil {
		return nil, err
	}
	y, err := a.embedding.update(s, first)
	if err != nil {
		return nil, err
	}
	for _, x := range others {
		if err := s.eachState(x, y, vecmath.Add); err != nil {
			return nil, err
		}
	}
	return h, nil
}

func (a altUpEnd) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	y, sum := buffer.Resize(&s.y, len(h)), buffer.Resize(&s.x, len(h))
	copy(sum, h)
	for i, x := range s.others(a.altUp, n) {
		if err := s.linear(y, s.m.p.width, x, n, a.end[i]); err != nil {
			return nil, err
		}
		if err := s.toLength(y, h); err != nil {
			return nil, err
		}
		if err := s.eachState(sum, y, vecmath.Add); err != nil {
			return nil, err
		}
	}
	vecmath.Scale(h, sum, 1/float32(a.n))
	return h, nil
}

// laurel is x + norm(r·l·x).
type laurel struct {
	l, r *linear
	norm *norm
}

var _ = operation(func(b *builder, _ graph.Laurel) mixer {
	rank := 0
	if x := b.t.required(b.name("laurel_l.weight"), b.p.width, b.rows("laurel_l")); x != nil {
		rank = int(x.NE[1])
	}
	return &laurel{b.t.requiredLinear(b.name("laurel_l"), b.p.width, rank),
		b.t.requiredLinear(b.name("laurel_r"), rank, b.p.width), b.t.requiredNorm(b.name("laurel_post_norm"), b.p.width)}
})

// rows returns the number of rows of a matrix of the layer, 0 if there is none.
func (b *builder) rows(name string) int {
	if x := b.t.all[b.name(name+".weight")]; x != nil && len(x.NE) == 2 {
		return int(min(x.NE[1], maxSize))
	}
	return 0
}

func (x *laurel) mix(s *stream, y, in []float32, n int, last bool) error {
	rank := x.l.w.Rows
	mid := buffer.Resize(&s.mid, n*rank)
	if err := s.linear(mid, rank, in, n, x.l); err != nil {
		return err
	}
	if err := s.linear(y, s.m.p.width, mid, n, x.r); err != nil {
		return err
	}
	if err := s.eachState(y[:len(in)], in, func(y, in []float32) {
		s.norm(x.norm, y, y)
		vecmath.Add(y, in)
	}); err != nil || !last {
		return err
	}
	s.keepPredicting(y, s.m.p.width, n)
	return nil
}
