package eval

import (
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

// backNorm is the backward pass of norm: it turns d from the gradient w.r.t. the normalized rows of x into the gradient
// w.r.t. x.
func (s *stream) backNorm(w *norm, d, x []float32) {
	if w != nil {
		s.m.p.backNorm(w, d, x, s.m.p.width)
	}
}

// backNorm turns d from the gradient w.r.t. the normalized rows of x, n values each, into the gradient w.r.t. x.
func (p *params) backNorm(w *norm, d, x []float32, n int) {
	for ; len(x) > 0; d, x = d[n:], x[n:] {
		d, x := d[:n], x[:n]
		if w.weight != nil {
			vecmath.Mul(d, w.weight)
		}
		var mean, dmean float64 // of x, of d
		along := vecmath.SumProducts(d, x)
		if !p.rms {
			sum := vecmath.Sum(d)
			mean, dmean = vecmath.Sum(x)/float64(n), sum/float64(n)
			along -= float64(sum * mean)
		}
		f := 1 / math.Sqrt(vecmath.SumSquares(x, mean)/float64(n)+p.eps)
		along *= f * f / float64(n)
		for i, v := range x {
			d[i] = float32(f * ((float64(d[i]) - dmean) - float64((float64(v)-mean)*along)))
		}
	}
}

// backHeadNorm turns d from the gradient w.r.t. the output of headNorm for the heads x of a token into the gradient
// w.r.t. x.
func (p *params) backHeadNorm(w *headNorm, d, x []float32) {
	if w == nil {
		return
	}
	if len(w.weight) > w.size {
		vecmath.Mul(d, w.weight)
		p.backNorm(&norm{}, d, x, w.size)
		return
	}
	p.backNorm(&w.norm, d, x, w.size)
}

// backRoPE turns d from the gradient w.r.t. the outputs of applyRoPE for the heads of a token into the gradient w.r.t.
// its inputs.
func (p *params) backRoPE(d []float32, size int, table []float32) {
	half := len(table) / 2
	apart, next := 1, 2
	if p.ropeStyle == RoPENeoX {
		apart, next = half, 1
	}
	for ; len(d) > 0; d = d[size:] {
		for i := range half {
			a, b := &d[i*next], &d[i*next+apart]
			cos, sin := table[2*i], table[2*i+1]
			*a, *b = float32(*a*cos)+float32(*b*sin), float32(*b*cos)-float32(*a*sin)
		}
	}
}

// backLinear sets dx (or adds to it, with add) the gradient w.r.t. the inputs of layers for a number of rows. dy is the
// gradient w.r.t. their outputs, laid out as by linear. With x, the inputs, it calls report; with nil the caller does.
func (s *stream) backLinear(dx, dy []float32, ld int, x []float32, rows int, add bool, layers ...*linear) error {
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
		for from := 0; from < len(d); {
			n := s.blockTokens((len(d) - from) / width)
			if err := f(from, from+n*width, n); err != nil {
				return err
			}
			from += n * width
		}
		return nil
	}
	if l.experts != nil {
		s.h = s.h[:copy(s.h, h)]
		if err := blocks(func(a, b, n int) error {
			_,
				err := s.layerBlock(l, s.h[a:b], n, false)
			return err
		}); err != nil {
			return err
		}
		if err := s.backExperts(l, h, d); err != nil {
			return err
		}
	}
	s.rereads = true
	defer s.dropHeld()
	return blocks(func(a, b, n int) error {
		err := s.backBlock(l, h[a:b], d[a:b], n)
		if err != nil || l.experts == nil || !l.experts.earlyRouter {
			return err
		}
		early := s.reverse.early[a:b]
		return s.eachRows(n, func(x, y int) { vecmath.Add(d[a:b][x*width:y*width], early[x*width:y*width]) })
	})
}

// backBlock turns d from the gradient w.r.t. the hidden states of n tokens after a layer (before the experts of an MoE
// layer) into the gradient w.r.t. the hidden states before it, h.
func (s *stream) backBlock(l *layer, h, d []float32, n int) error {
	p, r := s.m.p, s.reverse
	size := n * p.width
	x := h
	if l.attnNorm != nil {
		x = buffer.Resize(&s.x, size)
		if err := s.eachRows(n, func(a, b int) {
			s.norm(l.attnNorm, x[a*p.width:b*p.width],
				h[a*p.width:b*p.width])
		}); err != nil {
			return err
		}
	}
	var y []float32 // the output of the mixer
	if l.postAttn != nil || l.ffn != nil && !l.parallel {
		y = buffer.Resize(&r.y, size)
		if err := l.mixer.mix(s, y, x, n, false); err != nil {
			return err
		}
	}
	dy, dx := buffer.Resize(&r.dy, size), buffer.Resize(&s.y, size)
	if l.ffn != nil {
		in := x
		mid := h // the residual stream before the FFN's norm
		if !l.parallel {
			mid = buffer.Resize(&r.h, size)
			if err := s.eachRows(n, func(a, b int) {
				a, b = a*p.width, b*p.width
				copy(dx[a:b], y[a:b]) // addResidual changes it
				copy(mid[a:b], h[a:b])
				s.addResidual(mid[a:b], dx[a:b], l.postAttn)
			}); err != nil {
				return err
			}
		}
		if !l.parallel || l.ffnNorm != nil {
			in = buffer.Resize(&r.in, size)
			if err := s.eachRows(n, func(a, b int) {
				s.norm(l.ffnNorm, in[a*p.width:b*p.width],
					mid[a*p.width:b*p.width])
			}); err != nil {
				return err
			}
		}
		if l.postFFN != nil {
			if err := l.ffn.mix(s, dx, in, n, false); err != nil {
				return err
			}
		}
		if err := s.backResidual(dy, d, dx, l.postFFN, n); err != nil {
			return err
		}
		din := buffer.Resize(&r.din, size)
		if err := l.ffn.(reversible).back(s, din, dy, in, n); err != nil {
			return err
		}
		if !l.parallel {
			if err := s.eachRows(n, func(a, b int) {
				a, b = a*p.width, b*p.width
				s.backNorm(l.ffnNorm, din[a:b], mid[a:b])
				vecmath.Add(d[a:b], din[a:b])
			}); err != nil {
				return err
			}
		}
	}
	if err := s.backResidual(dy, d, y, l.postAttn, n); err != nil {
		return err
	}
	if err := l.mixer.(reversible).back(s, dx, dy, x, n); err != nil {
		return err
	}
	return s.eachRows(n, func(a, b int) {
		a, b = a*p.width, b*p.width
		if l.ffn != nil && l.parallel {
			din := r.din[a:b]
			if l.ffnNorm != nil {
				s.backNorm(l.ffnNorm, din, h[a:b])
				vecmath.Add(d[a:b], din)
			} else {
				vecmath.Add(dx[a:b], din)
			}
		}
		s.backNorm(l.attnNorm, dx[a:b], h[a:b])
		vecmath.Add(d[a:b], dx[a:b])
	})
}

// backResidual sets dy to the gradient w.r.t. the output y of a block for n tokens, from d, the gradient w.r.t. the
// residual stream that the output is added to.
func (s *stream) backResidual(dy, d, y []float32, post *norm, n int) error {
	width, f := s.m.p.width, float32(s.m.p.residualScale)
	return s.eachRows(n, func(a, b int) {
		a, b = a*width, b*width
		copy(dy[a:b], d[a:b])
		if f != 1 {
			vecmath.Scale(dy[a:b], dy[a:b], f)
		}
		if post != nil {
			s.backNorm(post, dy[a:b], y[a:b])
		}
	})
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
	act := s.m.graph.Activation
	width := s.m.p.width
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
