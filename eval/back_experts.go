package eval

import (
	"ggforge/arch/graph"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// backExperts turns d from the gradient w.r.t. the residual stream after a branch of experts into the gradient w.r.t.
// the residual stream before it, s.h. h is the residual stream before the layer.
func (s *stream) backExperts(b *branch, h, d []float32) error {
	p, x, r := s.m.p, b.part.(*experts), s.reverse
	n, width := len(s.h)/p.width, p.width
	s.tokensOfExperts([]*Run{s.r}, false)
	var acc []float32
	if b.post != nil {
		var err error
		if acc, err = s.expertOutputs(b); err != nil {
			return err
		}
	}
	dacc, din := buffer.Resize(&r.dacc, len(d)), buffer.Resize(&r.dexperts, len(d))
	if err := s.backBranch(dacc, d, acc, b); err != nil {
		return err
	}
	chosen, err := s.route(b, func(int, int, []float32, []float32) error { return nil })
	if err != nil {
		return err
	}
	clear(din)
	dw := make([]float32, len(chosen))
	if err := s.experts(x, chosen, func(e int, list []int32) error {
		return s.backExpert(b, e, list, chosen, dw, dacc, din)
	}); err != nil {
		return err
	}
	if _, err := s.route(b, func(from, rows int, in, logits []float32) error {
		dl, dx := buffer.Resize(&r.mid, rows*x.n), buffer.Resize(&s.y, rows*width)
		if err := s.eachRows(rows, func(a, b int) {
			for t := a; t < b; t++ {
				at, dl := (from+t)*x.used, dl[t*x.n:][:x.n]
				dw, chosen, scores := dw[at:][:x.used], chosen[at:][:x.used], logits[t*x.n:][:x.n]
				next, by := 0, float32(0)
				if r.g.Choices {
					next, by = x.choiceGradient(dw, chosen, scores)
					by *= randomSign(r.firstToken+from+t, x.router.name)
				}
				x.back(dl, dw, chosen, scores)
				if by != 0 {
					dl[chosen[len(chosen)-1].expert] += by
					dl[next] -= by
				}
			}
		}); err != nil {
			return err
		}
		at, end := from*width, (from+rows)*width
		if x.earlyRouter {
			if err := s.backLinear(buffer.Resize(&r.early, len(h))[at:end], dl, x.n, h[at:end], rows, false,
				x.router); err != nil {
				return err
			}
			clear(dx)
		} else if err := s.backLinear(dx, dl, x.n, in, rows, false, x.router); err != nil {
			return err
		}
		add := func() error {
			return s.eachRows(rows, func(a, b int) { vecmath.Add(din[at:end][a*width:b*width], dx[a*width:b*width]) })
		}
		if err := add(); err != nil || x.shared == nil {
			return err
		}
		if err := s.backShared(x, dx, dacc[at:end], in, rows); err != nil {
			return err
		}
		return add()
	}); err != nil {
		return err
	}
	s.routerLogits = s.routerLogits[:0]
	return s.eachRows(n, func(from, to int) {
		from, to = from*width, to*width
		s.backNorm(b.pre, din[from:to], s.h[from:to], from/width)
		vecmath.Add(d[from:to], din[from:to])
	})
}

// backExpert adds to din the gradient w.r.t. the inputs of expert e, for the tokens of list, and sets their elements of
// dw to the gradients w.r.t. the expert's weights.
func (s *stream) backExpert(b *branch, e int, list []int32, chosen []choice, dw, dacc, din []float32) error {
	x, r, width, rows := b.part.(*experts), s.reverse, s.m.p.width, len(list)
	first := x.weighInputs
	in, dy, dx := buffer.Resize(&s.x, rows*width), buffer.Resize(&r.dy, rows*width), buffer.Resize(&s.y, rows*width)
	by := &rowScale{make([]float32, rows), make([]float32, rows)}
	token := func(i int) int { return int(list[i]) / x.used }
	if err := s.eachRows(rows, func(from, to int) {
		for i := from; i < to; i++ {
			row := in[i*width:][:width]
			s.norm(b.pre, row, s.h[token(i)*width:][:width])
			copy(dy[i*width:][:width], dacc[token(i)*width:])
			if by.w[i] = chosen[list[i]].weight; first {
				vecmath.Scale(row, row, by.w[i])
			}
		}
	}); err != nil {
		return err
	}
	after := by
	if first {
		after = nil
	}
	if err := s.backFeedForward(x.expert(e), dx, dy, in, rows, after); err != nil {
		return err
	}
	return s.eachRows(rows, func(from, to int) {
		for i := from; i < to; i++ {
			d := dx[i*width:][:width]
			if first {
				row := in[i*width:][:width]
				s.norm(b.pre, row, s.h[token(i)*width:][:width])
				by.dw[i] = float32(vecmath.SumProducts(d, row))
				vecmath.Scale(d, d, by.w[i])
			}
			dw[list[i]] = by.dw[i]
			vecmath.Add(din[token(i)*width:][:width], d)
		}
	})
}

// backShared sets dx to the gradient w.r.t. the inputs of the shared experts from dacc, the gradient w.r.t. their
// outputs.
func (s *stream) backShared(x *experts, dx, dacc, in []float32, rows int) error {
	r := s.reverse
	dy := buffer.Resize(&r.dy, len(dacc))
	copy(dy, dacc)
	if x.sharedGate == nil {
		return s.backFeedForward(x.shared, dx, dy, in, rows, nil)
	}
	by := &rowScale{make([]float32, rows), make([]float32, rows)}
	if err := s.linear(by.w, 1, in, rows, x.sharedGate); err != nil {
		return err
	}
	vecmath.SigmoidOf.Apply(by.w, by.w)
	if err := s.backFeedForward(x.shared, dx, dy, in, rows, by); err != nil {
		return err
	}
	for i, w := range by.w {
		by.dw[i] *= w * (1 - w)
	}
	return s.backLinear(dx, by.dw, 1, in, rows, true, x.sharedGate)
}

// back sets d to the gradient w.r.t. the router's outputs for a token from dw, the gradients w.r.t. the weights of its
// experts, which it overwrites. scores are the router's scores as choose leaves them.
func (x *experts) back(d, dw []float32, chosen []choice, scores []float32) {
	w := make([]float32, len(chosen)) // before normalization
	for i, c := range chosen {
		w[i] = scores[c.expert]
	}
	if x.score == graph.SoftmaxOfChosen {
		softmax(w)
	}
	if x.scale != 0 && x.scale != 1 {
		vecmath.Scale(dw, dw, x.scale)
	}
	if x.normalizeTopK {
		sum := float32(vecmath.Sum(w))
		if mean := float32(vecmath.SumProducts(dw, w)) / sum; sum > minWeightSum {
			for i := range dw {
				dw[i] -= mean
			}
		}
		for i := range dw {
			dw[i] /= max(sum, minWeightSum)
		}
	}
	clear(d)
	for i, c := range chosen {
		d[c.expert] = dw[i]
	}
	switch mean := float32(vecmath.SumProducts(dw, w)); x.score {
	case graph.Softmax:
		for e, s := range scores {
			d[e] = s * (d[e] - mean)
		}
	case graph.SoftmaxOfChosen:
		for i, c := range chosen {
			d[c.expert] = w[i] * (dw[i] - mean)
		}
	case graph.Sigmoid:
		for i, c := range chosen {
			d[c.expert] = float32(w[i]*(1-w[i])) * dw[i]
		}
	case graph.SqrtSoftplus: // the derivative of w² is 1 - e^-w²
		clear(d)
		for i, c := range chosen { // a table may have an expert twice
			if v := float64(w[i]); v > 0 {
				d[c.expert] += float32((1-vecmath.Exp64(float64(-v*v)))/(2*v)) * dw[i]
			}
		}
	}
}
