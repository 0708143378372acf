package eval

import (
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

// backNorm is the backward pass of norm: it turns d from the gradient w.r.t. the normalized rows of x into the gradient
// w.r.t. x. The first row is that of token t, as eachRows counts them.
func (s *stream) backNorm(w *norm, d, x []float32, t int) {
	if w != nil {
		s.backNormOf(s.m.p, w, d, x, s.m.p.width, t)
	}
}

// backNormOf is backNorm for a norm of kind p of rows of n values.
func (s *stream) backNormOf(p *params, w *norm, d, x []float32, n, t int) {
	s.addNormGradient(p, w, d, x, n/max(1, w.groups), t)
	p.backNorm(w, d, x, n)
}

// backNorm turns d from the gradient w.r.t. the normalized rows of x, n values each, into the gradient w.r.t. x.
func (p *params) backNorm(w *norm, d, x []float32, n int) {
	eps, size := p.epsilon(w), n/max(1, w.groups)
	for ; len(x) > 0; d, x = d[n:], x[n:] {
		if w.weight != nil {
			vecmath.Mul(d[:n], w.weight)
		}
		for at := 0; at < n; at += size {
			d, x := d[at:][:size], x[at:][:size]
			var mean, dmean float64 // of x, of d
			along := vecmath.SumProducts(d, x)
			if !p.rms {
				sum := vecmath.Sum(d)
				mean, dmean = vecmath.Sum(x)/float64(size), sum/float64(size)
				along -= float64(sum * mean)
			}
			f := 1 / math.Sqrt(vecmath.SumSquares(x, mean)/float64(size)+eps)
			along *= f * f / float64(size)
			for i, v := range x {
				d[i] = float32(f * ((float64(d[i]) - dmean) - float64((float64(v)-mean)*along)))
			}
		}
	}
}

// backHeadNorm turns d from the gradient w.r.t. the output of headNorm for the heads x of token t into the gradient
// w.r.t. x.
func (s *stream) backHeadNorm(p *params, w *headNorm, d, x []float32, t int) {
	if w == nil {
		return
	}
	s.addNormGradient(p, &w.norm, d, x, w.size, t)
	if len(w.weight) > w.size {
		vecmath.Mul(d, w.weight)
		p.backNorm(&norm{}, d, x, w.size)
		return
	}
	p.backNorm(&w.norm, d, x, w.size)
}

// backLinear sets dx (or adds to it, with add) the gradient w.r.t. the inputs of layers for a number of rows. dy is the
// gradient w.r.t. their outputs, laid out as by linear. With x, the inputs, it calls report; with nil the caller does.
func (s *stream) backLinear(dx, dy []float32, ld int, x []float32, rows int, add bool, layers ...*linear) error {
	for len(layers) > 0 {
		n := sameInputs(layers)
		if err := s.backFolded(dx, dy, ld, x, rows, add, layers[:n]...); err != nil {
			return err
		}
		for _, l := range layers[:n] {
			dy = dy[l.w.Rows:]
		}
		add, layers = true, layers[n:]
	}
	return nil
}

// backFolded is backLinear for layers that multiply the same inputs: x as it is, or its transform.
func (s *stream) backFolded(dx, dy []float32, ld int, x []float32, rows int, add bool, layers ...*linear) error {
	t, k := layers[0].fold, layers[0].w.K
	if t == nil {
		return s.backProducts(dx, dy, ld, x, rows, add, layers...)
	}
	d := buffer.Resize(&s.reverse.folded, 2*rows*k)
	if err := s.backProducts(d, dy, ld, x, rows, false, layers...); err != nil {
		return err
	}
	return s.eachRows(rows, func(a, b int) {
		for i := a; i < b; i++ {
			to, row := dx[i*k:][:k], d[(rows+i)*k:][:k]
			t.undo(row, d[i*k:][:k])
			if add {
				vecmath.Add(to, row)
			} else {
				copy(to, row)
			}
		}
	})
}

// backProducts is backLinear for the inputs that the matrices multiply.
func (s *stream) backProducts(dx, dy []float32, ld int, x []float32, rows int, add bool, layers ...*linear) error {
	if x != nil {
		if err := s.report(x, dy, ld, rows, layers...); err != nil {
			return err
		}
	}
	at := 0
	for _, l := range layers {
		n := l.w.Rows
		s.xp.Reset(rows, n)
		by, apart := dy[at:], ld
		if l.scale != nil {
			by, apart = s.scaled(l, by, ld, rows), n
		}
		if err := s.eachRows(rows, func(a, b int) { s.xp.PackRows(by[a*apart:], apart, a, b) }); err != nil {
			return err
		}
		if err := gemm.Transposed(s.ctx, s.scratch, dx, l.w.K, &s.xp, s.weights(l.w), add); err != nil {
			return err
		}
		add = true
		at += n
	}
	return nil
}

// scaled returns dy, the gradient w.r.t. the outputs of a layer, times the layer's scale: the gradient w.r.t. the
// outputs of its matrix.
func (s *stream) scaled(l *linear, dy []float32, ld, rows int) []float32 {
	n := l.w.Rows
	y := buffer.Resize(&s.reverse.copy, rows*n)
	for t := range rows {
		vecmath.Scale(y[t*n:][:n], dy[t*ld:][:n], *l.scale)
	}
	return y
}

// report passes inputs x and output gradients dy of layers to the caller's Linear function, if there is one.
func (s *stream) report(x, dy []float32, ld, rows int, layers ...*linear) error {
	if s.reverse.g.Linear == nil {
		return nil
	}
	at := 0
	for _, l := range layers {
		n := l.w.Rows
		x, err := s.folded(l.fold, x, rows, l.w.K)
		if err != nil {
			return err
		}
		g := dy[:rows*n]
		if l.scale != nil {
			g = s.scaled(l, dy[at:], ld, rows)
		} else if ld != n {
			g = buffer.Resize(&s.reverse.copy, rows*n)
			for t := range rows {
				copy(g[t*n:][:n], dy[t*ld+at:])
			}
		}
		if err := s.reverse.g.Linear(LinearGradient{l.inputs(x, rows), g}); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// backLayer turns d from the gradient w.r.t. the residual stream after layer i into the gradient w.r.t. the residual
// stream before it, h.
func (s *stream) backLayer(i int, h, d []float32) error {
	l, width := &s.m.layers[i], s.m.p.width
	blocks := func(f func(a, b, n int) error) error {
		defer s.dropHeld()
		for from := 0; from < len(d); {
			n := s.blockTokens((len(d) - from) / width)
			s.firstToken = from / width
			if err := f(from, from+n*width, n); err != nil {
				return err
			}
			from += n * width
		}
		return nil
	}
	var ends []int // of segments
	for _, end := range l.segments() {
		ends = append(ends, end)
	}
	from := func(k int) int {
		if k == 0 {
			return 0
		}
		return ends[k-1]
	}
	for k := len(ends) - 1; k >= 0; k-- {
		x := withExperts(l.steps[from(k)])
		before := h // the stream before the segment
		if k > 0 || x != nil {
			s.h = s.h[:copy(s.h, h)]
			before = s.h
		}
		for j := range k {
			var err error
			if r := withExperts(l.steps[from(j)]); r != nil {
				err = s.addExperts(r, []*Run{s.r}, false)
			} else {
				err = blocks(func(a, b, n int) error {
					_, err := s.runSteps(i, from(j), ends[j], s.h[a:b], n)
					return err
				})
			}
			if err != nil {
				return err
			}
		}
		var err error
		if s.rereads = true; x != nil {
			err = s.backExperts(&x.branches[0], h, d)
		} else {
			err = blocks(func(a, b, n int) error {
				return s.backSteps(l.steps[from(k):ends[k]], before[a:b], d[a:b], n)
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// backSteps turns d from the gradient w.r.t. the states of n tokens after some steps into the gradient w.r.t. the
// states before them, h.
func (s *stream) backSteps(steps []step, h, d []float32, n int) error {
	r := s.reverse
	for len(r.before) < len(steps) {
		r.before, r.outputs = append(r.before, nil), append(r.outputs, nil)
	}
	before, outputs := make([][]float32, len(steps)), make([][]float32, len(steps))
	before[0] = h
	for k := range len(steps) - 1 {
		if _, ok := steps[k].(*routeEarly); ok { // the experts' way back has computed it
			before[k+1] = before[k]
			continue
		}
		next := buffer.Resize(&r.before[k+1], len(h))
		copy(next, before[k])
		if b := normedBranch(steps[k]); b != nil {
			outputs[k] = buffer.Resize(&r.outputs[k], len(h))
			if err := s.branchOutputs(b, outputs[k], before[k], n); err != nil {
				return err
			}
			y := buffer.Resize(&s.y, len(h))
			copy(y, outputs[k]) // addBranch changes it
			if err := s.eachState(next, y, func(h, y []float32) { s.addBranch(b, h, y) }); err != nil {
				return err
			}
		} else if _, err := steps[k].forward(s, next, n, false); err != nil {
			return err
		}
		before[k+1] = next
	}
	for k := len(steps) - 1; k >= 0; k-- {
		if err := steps[k].(reversibleStep).back(s, before[k], d, outputs[k], n); err != nil {
			return err
		}
	}
	return nil
}

// normedBranch returns the only branch of a step, if its outputs have a norm; else nil.
func normedBranch(s step) *branch {
	if r, ok := s.(*residual); ok && len(r.branches) == 1 && r.branches[0].post != nil {
		return &r.branches[0]
	}
	return nil
}

// branchOutputs sets y to the outputs of a branch's part for the states h of n tokens.
func (s *stream) branchOutputs(b *branch, y, h []float32, n int) error {
	x, err := s.branchInputs(b, h)
	if err != nil {
		return err
	}
	return b.part.mix(s, y, x, n, false)
}

// branchInputs returns what a branch's part reads where the stream is h.
func (s *stream) branchInputs(b *branch, h []float32) ([]float32, error) {
	if b.pre == nil {
		return h, nil
	}
	x := buffer.Resize(&s.x, len(h))
	return x, s.eachState(x, h, func(x, h []float32) { s.norm(b.pre, x, h) })
}

func (r *residual) back(s *stream, h, d, y []float32, n int) error {
	of := s.reverse
	for len(of.inputs) < len(r.branches) {
		of.inputs = append(of.inputs, nil)
	}
	dy := buffer.Resize(&of.dy, len(h))
	for i := len(r.branches) - 1; i >= 0; i-- {
		b := &r.branches[i]
		if b.post != nil && y == nil {
			y = buffer.Resize(&of.y, len(h))
			if err := s.branchOutputs(b, y, h, n); err != nil {
				return err
			}
		}
		x, err := s.branchInputs(b, h)
		if err != nil {
			return err
		}
		if err := s.backBranch(dy, d, y, b); err != nil {
			return err
		}
		dx := buffer.Resize(&of.inputs[i], len(h))
		if err := b.part.(reversible).back(s, dx, dy, x, n); err != nil {
			return err
		}
		y = nil
	}
	width := s.m.p.width
	return s.eachRows(n, func(from, to int) {
		from, to = from*width, to*width
		for i := len(r.branches) - 1; i >= 0; i-- {
			dx := of.inputs[i][from:to]
			if i > 0 && !r.apart {
				vecmath.Add(of.inputs[i-1][from:to], dx)
				continue
			}
			s.backNorm(r.branches[i].pre, dx, h[from:to], from/width)
			vecmath.Add(d[from:to], dx)
		}
	})
}

// backBranch sets dy to the gradient w.r.t. the outputs y of a branch's part, from d, the gradient w.r.t. the residual
// stream that they are added to.
func (s *stream) backBranch(dy, d, y []float32, b *branch) error {
	width := s.m.p.width
	return s.eachRows(len(d)/width, func(from, to int) {
		from, to = from*width, to*width
		copy(dy[from:to], d[from:to])
		if b.scale != 1 {
			vecmath.Scale(dy[from:to], dy[from:to], b.scale)
		}
		if b.post != nil {
			s.backNorm(b.post, dy[from:to], y[from:to], from/width)
		}
	})
}

func (a *normalize) back(s *stream, h, d, _ []float32, _ int) error {
	width := s.m.p.width
	return s.eachRows(len(h)/width, func(from, to int) {
		s.backNorm(a.norm, d[from*width:to*width], h[from*width:to*width], from)
	})
}

func (f scaleStream) back(s *stream, _, d, _ []float32, _ int) error {
	return s.eachState(d, nil, func(d, _ []float32) { vecmath.Scale(d, d, float32(f)) })
}

func (r *routeEarly) back(s *stream, _, d, _ []float32, _ int) error {
	return s.eachState(d, s.reverse.early[s.firstToken*s.m.p.width:], vecmath.Add)
}

func (f *feedForward) back(s *stream, dx, dy, x []float32, n int) error {
	return s.backFeedForward(f, dx, dy, x, n, nil)
}

// rowScale has a factor w per row for the output of an FFN, such as an expert's weight; dw is set to the gradient
// w.r.t. the factors.
type rowScale struct{ w, dw []float32 }

// backFeedForward is the backward pass of an FFN: it sets dx to the gradient w.r.t. the inputs x from dy, the gradient
// w.r.t. the outputs. With by, the outputs are multiplied by its factors; dy is then multiplied in place.
func (s *stream) backFeedForward(f *feedForward, dx, dy, x []float32, rows int, by *rowScale) error {
	ld, layers := f.ff, []*linear{f.up}
	gated := f.gate != nil || f.fused
	if gated {
		ld = 2 * f.ff
	}
	if f.gate != nil {
		layers = []*linear{f.gate, f.up}
	}
	mid, hidden, dmid := buffer.Resize(&s.mid, rows*ld), buffer.Resize(&s.a, rows*f.ff),
		buffer.Resize(&s.reverse.mid, rows*ld)
	if err := s.linear(mid, ld, x, rows, layers...); err != nil {
		return err
	}
	dhidden := buffer.Resize(&s.reverse.hidden, rows*f.ff)
	if err := s.backLinear(dhidden, dy, s.m.p.width, nil, rows, false, f.down); err != nil {
		return err
	}
	act, width := f.act, s.m.p.width
	if err := s.eachRows(rows, func(a, b int) {
		for t := a; t < b; t++ {
			in, y, d, dy := mid[t*ld:][:ld], hidden[t*f.ff:][:f.ff], dmid[t*ld:][:ld], dy[t*width:][:width]
			if f.activation != nil {
				f.activation.apply(y, in[:f.ff], in[f.ff:])
			} else if act.Apply(y, in[:f.ff]); gated {
				copy(d[f.ff:], y) // the activated gate
				vecmath.Mul(y, in[f.ff:])
			}
			dh := dhidden[t*f.ff:][:f.ff]
			if by != nil {
				dw := vecmath.SumProducts(dh, y)
				if f.down.bias != nil {
					dw += vecmath.SumProducts(dy, f.down.bias)
				}
				by.dw[t] = float32(dw)
				vecmath.Scale(dh, dh, by.w[t])
				vecmath.Scale(dy, dy, by.w[t])
			}
			if f.activation != nil {
				f.activation.derivatives(d[:f.ff], d[f.ff:], in[:f.ff], in[f.ff:])
			} else {
				act.Slope(d[:f.ff], in[:f.ff])
			}
			if gated {
				vecmath.Mul(d[f.ff:], dh)
				if f.activation == nil {
					vecmath.Mul(dh, in[f.ff:])
				}
			}
			vecmath.Mul(d[:f.ff], dh)
		}
	}); err != nil {
		return err
	}
	if err := s.report(hidden, dy, width, rows, f.down); err != nil {
		return err
	}
	return s.backLinear(dx, dmid, ld, x, rows, false, layers...)
}
