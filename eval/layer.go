package eval

import (
	"sync/atomic"

	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// norm normalizes rows; w nil copies them.
func (s *stream) norm(w *norm, dst, src []float32) {
	if w == nil {
		copy(dst, src)
		return
	}
	s.m.p.normalize(w, dst, src, s.m.p.width)
}

// requireFinite returns an error if y, which again computes, has a value that is not finite. It computes y once more
// with checks of each product, to name the tensor.
func (s *stream) requireFinite(y []float32, again func() error) error {
	var broken atomic.Bool
	err := s.eachRows(len(y)/s.m.p.width, func(a, b int) {
		if !vecmath.Finite(y[a*s.m.p.width : b*s.m.p.width]) {
			broken.Store(true)
		}
	})
	if err != nil || !broken.Load() {
		return err
	}
	s.checksFinite = true
	defer func() { s.checksFinite = false }()
	if err := again(); err != nil {
		return err
	}
	return fault.Errorf(fault.Broken, "the output of the layer is not finite")
}

// layerBlock runs the states of n tokens, whole chunks, through a layer, or up to its experts.
// It returns the states; from the last layer only the wanted ones.
func (s *stream) layerBlock(l *layer, h []float32, n int, last bool) ([]float32, error) {
	p := s.m.p
	if l.experts != nil && l.experts.earlyRouter {
		if err := s.routeEarly(l.experts, h, n, last); err != nil {
			return nil, err
		}
	}
	x := h
	if l.attnNorm != nil {
		x = buffer.Resize(&s.x, n*p.width)
		if err := s.eachRows(n, func(a, b int) {
			s.norm(l.attnNorm, x[a*p.width:b*p.width],
				h[a*p.width:b*p.width])
		}); err != nil {
			return nil, err
		}
	}
	y := buffer.Resize(&s.y, n*p.width)
	early := last && !l.ffnNeedsAllTokens
	mix := func() error { return l.mixer.mix(s, y, x, n, early) }
	if err := mix(); err != nil {
		return nil, err
	}
	kept := n
	if early {
		kept = s.predicting(n)
	}
	if err := s.requireFinite(y[:kept*p.width], mix); err != nil {
		return nil, err
	}
	if early && s.r.First > 0 {
		if l.attnNorm != nil {
			s.keepPredicting(x, p.width, n)
		}
		n = s.keepPredicting(h, p.width, n)
		h = h[:n*p.width]
	}
	in := buffer.Resize(&s.x, n*p.width) // of the feed-forward layer
	err := s.eachRows(n, func(a, b int) {
		a, b = a*p.width, b*p.width
		if l.parallel && l.ffnNorm != nil {
			s.norm(l.ffnNorm, in[a:b], h[a:b])
		}
		if l.residualNorms[1] != nil {
			copy(in[a:b], h[a:b])
		}
		s.addResidual(h[a:b], y[a:b], l.postAttn)
		if l.residualNorms[0] != nil {
			s.norm(l.residualNorms[0], h[a:b], h[a:b])
		}
		if l.residualNorms[1] != nil {
			vecmath.Add(h[a:b], in[a:b])
			s.norm(l.residualNorms[1], h[a:b], h[a:b])
		}
		if l.ffn != nil && !l.parallel {
			s.norm(l.ffnNorm, in[a:b], h[a:b])
		}
	})
	if err != nil {
		return nil, err
	}
	if l.ffn != nil {
		feed := func() error { return l.ffn.mix(s, y, in, n, false) }
		if err := feed(); err != nil {
			return nil, err
		}
		if err := s.requireFinite(y[:n*p.width], feed); err != nil {
			return nil, err
		}
		if err := s.eachRows(n, func(a, b int) {
			s.addFFN(l, h[a*p.width:b*p.width],
				y[a*p.width:b*p.width])
		}); err != nil {
			return nil, err
		}
	}
	if l.perLayer != nil {
		if err := s.addPerLayerEmbedding(l.perLayer, h, early); err != nil {
			return nil, err
		}
	}
	if l.outputScale != nil {
		if err := s.eachRows(n, func(a, b int) {
			vecmath.Scale(h[a*p.width:b*p.width], h[a*p.width:b*p.width],
				*l.outputScale)
		}); err != nil {
			return nil, err
		}
	}
	if l.halved {
		if err := s.eachRows(n, func(a, b int) {
			vecmath.Scale(h[a*p.width:b*p.width], h[a*p.width:b*p.width],
				0.5)
		}); err != nil {
			return nil, err
		}
	}
	if last && l.ffnNeedsAllTokens {
		h = h[:s.keepPredicting(h, p.width, n)*p.width]
	}
	return h, nil
}

// predicting returns how many of n tokens, whole chunks, are at positions from First on.
func (s *stream) predicting(n int) int { return n / s.r.Chunk * (s.r.Chunk - s.r.First) }

// keepPredicting moves the rows of x at positions from First on to its beginning and returns their number.
func (s *stream) keepPredicting(x []float32, width, n int) (kept int) {
	if s.r.First == 0 {
		return n
	}
	for t := range n {
		if t%s.r.Chunk >= s.r.First {
			copy(x[kept*width:], x[t*width:][:width])
			kept++
		}
	}
	return kept
}

// addResidual adds the output y of a block to the residual stream h, after its norm and the residual scale.
func (s *stream) addResidual(h, y []float32, post *norm) {
	if post != nil {
		s.norm(post, y, y)
	}
	if f := s.m.p.residualScale; f != 1 {
		vecmath.Scale(y, y, float32(f))
	}
	vecmath.Add(h, y)
}

// addFFN adds the output of the feed-forward network or the experts to the residual stream.
func (s *stream) addFFN(l *layer, h, y []float32) {
	if s.addResidual(h, y, l.postFFN); l.residualNorms[2] != nil {
		s.norm(l.residualNorms[2], h, h)
	}
}
