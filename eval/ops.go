package eval

import (
	"math"

	"ggforge/internal/kernel/vecmath"
)

// normalize normalizes rows of n values, from src to dst, which may be the same.
func (p *params) normalize(w *norm, dst, src []float32, n int) {
	eps, size := p.epsilon(w), n/max(1, w.groups)
	for ; len(src) > 0; dst, src = dst[n:], src[n:] {
		for at := 0; at < n; at += size {
			x, y := src[at:][:size], dst[at:][:size]
			mean := 0.0
			if !p.rms {
				mean = vecmath.Sum(x) / float64(size)
			}
			f := 1 / math.Sqrt(vecmath.SumSquares(x, mean)/float64(size)+eps)
			if p.rms {
				vecmath.Scale(y, x, float32(f))
				continue
			}
			for i, v := range x {
				y[i] = float32((float64(v) - mean) * f)
			}
		}
		if w.weight != nil {
			vecmath.Mul(dst[:n], w.weight)
		}
		if w.bias != nil {
			vecmath.Add(dst[:n], w.bias)
		}
	}
}

// epsilon returns the epsilon of a norm.
func (p *params) epsilon(w *norm) float64 {
	if w.eps != nil {
		return *w.eps
	}
	return p.eps
}

// headNorm normalizes the heads of a token in place; w may be nil.
func (p *params) headNorm(w *headNorm, x []float32) {
	if w == nil {
		return
	}
	if len(w.weight) > w.size { // each head has weights of its own
		p.normalize(&norm{}, x, x, w.size)
		vecmath.Mul(x, w.weight)
		if w.bias != nil {
			vecmath.Add(x, w.bias)
		}
		return
	}
	p.normalize(&w.norm, x, x, w.size)
}

// clamp limits x to -limit to limit.
func clamp(x []float32, limit float32) {
	for i, v := range x {
		x[i] = max(-limit, min(limit, v))
	}
}

// softCap limits x smoothly: limit * tanh(x/limit).
func softCap(x []float32, limit float32) {
	vecmath.Scale(x, x, 1/limit)
	vecmath.TanhOf.Apply(x, x)
	vecmath.Scale(x, x, limit)
}
