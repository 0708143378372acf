package eval

import (
	"math"

	"ggforge/arch/graph"
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
	fused          bool // up has the rows of the gate, then its own
	act            vecmath.Function
	activation     ffnActivation // in place of act, or nil
	norm           *norm         // of the inputs of down, or nil
	// sparse, unless 0, is how many standard deviations above the mean the gate is cut off
	sparse float32
}

var _ = operation(func(b *builder, of graph.FFN) mixer { return b.feedForward(of, "", b.p.width, b.size("n_ff")) })

// feedForward returns a feed-forward network from width values to ff and back. Names of its tensors have the suffix.
func (b *builder) feedForward(of graph.FFN, suffix string, width, ff int) *feedForward {
	t, name := b.t, func(s string) string { return b.name(s + suffix) }
	f := &feedForward{ff: ff}
	f.act, f.activation = b.activation(of.Act)
	n := ff
	if of.Gate == graph.Gated {
		up := t.all[name("ffn_up")+".weight"]
		f.gate = t.linear(name("ffn_gate"), width, ff)
		if f.fused = f.gate == nil && up != nil; f.fused {
			n = 2 * ff
		} else if f.gate == nil {
			t.required(name("ffn_gate") + ".weight")
		}
	}
	if of.Norm.Name != "" {
		f.norm = t.requiredNorm(name(of.Norm.Name), ff)
	}
	if sparse, ok := of.Act.(graph.SparseGELU); ok {
		f.sparse = float32(b.float(sparse.By))
	}
	f.up, f.down = t.requiredLinear(name("ffn_up"), width, n), t.requiredLinear(name("ffn_down"), ff, width)
	return f
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
	act := s.activation(f.act)
	if err := s.eachRows(rows, func(a, b int) {
		for t := a; t < b; t++ {
			row, y := mid[t*ld:][:ld], hidden[t*f.ff:][:f.ff]
			if f.activation != nil {
				f.activation.apply(y, row[:f.ff], row[f.ff:])
				continue
			}
			if f.sparse != 0 {
				cutOff(row[:f.ff], f.sparse)
			}
			act(y, row[:f.ff])
			if gated {
				vecmath.Mul(y, row[f.ff:])
			}
			if f.norm != nil {
				s.m.p.normalize(f.norm, y, y, f.ff)
			}
		}
	}); err != nil {
		return err
	}
	return s.linear(y, f.down.w.Rows, hidden, rows, f.down)
}

// cutOff sets x to max(0, x - m - by·d) for the mean m of x and the standard deviation d, of a sample.
func cutOff(x []float32, by float32) {
	mean := vecmath.Sum(x) / float64(len(x))
	deviation := math.Sqrt(vecmath.SumSquares(x, mean) / float64(len(x)-1))
	least := float32(mean) + float32(by*float32(deviation))
	for i, v := range x {
		x[i] = max(0, v-least)
	}
}

// matrix is a part of one matrix.
type matrix struct{ w *linear }

var _ = operation(func(b *builder, of graph.Matrix) mixer {
	return &matrix{b.t.requiredLinear(b.name(of.Name), b.p.width, b.p.width)}
})

func (m *matrix) mix(s *stream, y, x []float32, n int, _ bool) error {
	return s.linear(y, m.w.w.Rows, x, n, m.w)
}

func (m *matrix) back(s *stream, dx, dy, x []float32, n int) error {
	return s.backLinear(dx, dy, m.w.w.Rows, x, n, false, m.w)
}

// normed is a part with norms of its own, or nil: post(part(pre(x))).
type normed struct {
	pre  *norm
	part mixer
	post *norm
}

var _ = operation(func(b *builder, of graph.Normed) mixer {
	n := &normed{pre: b.norm(of.Pre), part: b.part(of.Part), post: b.norm(of.Post)}
	for _, x := range inside(nil, n.part) {
		if n.pre != nil && x.pre != nil {
			b.unsupported("two norms, one after the other, in", of)
		}
	}
	return n
})

func (p *normed) mix(s *stream, y, x []float32, n int, last bool) error {
	if p.pre != nil {
		in := buffer.Resize(&s.inner, len(x))
		if err := s.eachState(in, x, func(in, x []float32) { s.norm(p.pre, in, x) }); err != nil {
			return err
		}
		x = in
	}
	if err := p.part.mix(s, y, x, n, last); err != nil || p.post == nil {
		return err
	}
	if last {
		n = s.predicting(n)
	}
	return s.eachState(y[:n*s.m.p.width], nil, func(y, _ []float32) { s.norm(p.post, y, y) })
}

// scaled is the output of a part times a number.
type scaled struct {
	by   float32
	part mixer
}

var _ = operation(func(b *builder, of graph.Scaled) mixer { return &scaled{float32(b.float(of.By)), b.part(of.Part)} })

func (p *scaled) mix(s *stream, y, x []float32, n int, last bool) error {
	if err := p.part.mix(s, y, x, n, last); err != nil {
		return err
	}
	if last {
		n = s.predicting(n)
	}
	return s.eachState(y[:n*s.m.p.width], nil, func(y, _ []float32) { vecmath.Scale(y, y, p.by) })
}
