package eval

import (
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/half"
	"ggforge/internal/kernel/vecmath"
)

func halfGELU(dst, src []float32) {
	for i, x := range src {
		switch {
		case x <= -10:
			x = 0
		case x < 10:
			x = half.RoundF16(vecmath.GELU(half.RoundF16(x)))
		}
		dst[i] = x
	}
}

// activation returns the function, or the 16-bit table of llama.cpp in its place.
func (s *stream) activation(f vecmath.Function) func(dst, src []float32) {
	if s.r.HalfGELU && f.Is(vecmath.GELUOf) {
		return halfGELU
	}
	return f.Apply
}

// feedForward is a layer of two or three matrices.
type feedForward struct {
	gate, up, down *linear // gate nil for none
	ff             int
	fused          bool          // up has the rows of the gate, then its own
	activation     ffnActivation // nil for the graph's activation
}

// mix is feedForward: tokens do not depend on each other.
func (f *feedForward) mix(s *stream, y, x []float32, n int, _ bool) error {
	return s.feedForward(f, y, x, n)
}

// feedForward sets y to the output of a feed-forward layer for rows of x.
func (s *stream) feedForward(f *feedForward, y, x []float32, rows int) error {
	ld, layers := f.ff, []*linear{f.up}
	gated := f.gate != nil || f.fused
	if gated {
		ld = 2 * f.ff
	}
	if f.gate != nil {
		layers = []*linear{f.gate, f.up}
	}
	mid := buffer.Resize(&s.mid, rows*ld)
	if err := s.linear(mid, ld, x, rows, layers...); err != nil {
		return err
	}
	hidden := buffer.Resize(&s.a, rows*f.ff)
	act := s.activation(s.m.p.activation)
	if !gated && s.m.graph.UngatedActivation != nil {
		act = s.activation(*s.m.graph.UngatedActivation)
	}
	if err := s.eachRows(rows, func(a, b int) {
		for t := a; t < b; t++ {
			row, y := mid[t*ld:][:ld], hidden[t*f.ff:][:f.ff]
			if f.activation != nil {
				f.activation.apply(y, row[:f.ff], row[f.ff:])
				continue
			}
			act(y, row[:f.ff])
			if gated {
				vecmath.Mul(y, row[f.ff:])
			}
		}
	}); err != nil {
		return err
	}
	return s.linear(y, f.down.w.Rows, hidden, rows, f.down)
}
