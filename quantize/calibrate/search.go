package calibrate

import (
	"math"

	"ggforge/internal/kernel/vecmath"
	"ggforge/quants/parts"
)

// searcher searches scales and minima of blocks for a diagonal H, with levels that follow. Coordinate descent, which
// changes one at a time, stops earlier.
type searcher struct {
	f    *parts.Format
	x, w []float32 // targets, and weights of their errors

	candidates vecmath.Candidates
	bits       [2][256]uint32 // of x and w
}

// searches is how often a block is gone through at most, near how far codes of scales and
// minima are tried from where they are.
const (
	searches = 6
	near     = 2
)

// search improves b, whose levels are set to the nearest ones, for weights x whose errors
// count w. It is for formats without a grid.
func (s *searcher) search(f *parts.Format, b *parts.Block, x, w []float32) {
	s.f, s.x, s.w = f, x, w
	if b.D == 0 || !finite(b.D) || !finite(b.Min) {
		return
	}
	for i, v := range x {
		s.bits[0][i], s.bits[1][i] = math.Float32bits(v), math.Float32bits(w[i])
	}
	best := s.nearest(b)
	for range searches {
		old := best
		if f.Scales[0] < f.Scales[1] {
			for j := range f.Subs() {
				s.around(b, j)
			}
			best = s.nearest(b)
		}
		if best = s.fit(b, best); best > old*0.9995 {
			break
		}
	}
}

// nearest sets the levels to the nearest ones and returns the error.
func (s *searcher) nearest(b *parts.Block) (sum float32) {
	f := s.f
	for j := range f.Subs() {
		scale, min := f.Scale(b, j)
		for i := j * f.Sub; i < (j+1)*f.Sub; i++ {
			if scale != 0 {
				b.Levels[i] = f.Nearest(s.x[i], scale, min)
			}
			e := s.x[i] - (float32(scale*float32(b.Levels[i])) - min)
			sum += float32(s.w[i] * float32(e*e))
		}
	}
	return sum
}

// around sets the codes of a sub-block's scale and minimum to the best ones near the present ones, which win against
// equal ones.
func (s *searcher) around(b *parts.Block, j int) {
	f, c := s.f, &s.candidates
	var codes [len(c.Scale)][2]int16
	s0, m0 := int(b.Scales[j]), int(b.Mins[j])
	codes[0], c.Scale[0], c.Min[0] = [2]int16{b.Scales[j], b.Mins[j]}, b.D*f.Factor(b.Scales[j]), b.Min*float32(m0)
	lo, hi := m0, m0
	if f.Mins[0] < f.Mins[1] {
		lo, hi = max(f.Mins[0], m0-near), min(f.Mins[1], m0+near)
	}
	n := 1
	for sc := max(f.Scales[0], s0-near); sc <= min(f.Scales[1], s0+near); sc++ {
		for m := lo; m <= hi; m++ {
			if sc == s0 && m == m0 {
				continue
			}
			codes[n], c.Scale[n], c.Min[n] = [2]int16{int16(sc), int16(m)}, b.D*f.Factor(int16(sc)), b.Min*float32(m)
			n++
		}
	}
	c.Measure(n, s.bits[0][j*f.Sub:][:f.Sub], s.bits[1][j*f.Sub:][:f.Sub])
	best := 0
	for k, e := range c.Errors[:n] {
		if e < c.Errors[best] {
			best = k
		}
	}
	b.Scales[j], b.Mins[j] = codes[best][0], codes[best][1]
}

// fit sets d and dmin to the best values for the levels, as long as the error falls.
func (s *searcher) fit(b *parts.Block, best float32) float32 {
	f := s.f
	for range 3 {
		var q quadratic
		for j := range f.Subs() {
			m := float64(b.Mins[j])
			fac := float64(f.Factor(b.Scales[j]))
			for i := j * f.Sub; i < (j+1)*f.Sub; i++ {
				u, w, x := fac*float64(b.Levels[i]), float64(s.w[i]), float64(s.x[i])
				q.uu += float64(w * float64(u*u))
				q.uo += float64(w * float64(u*m))
				q.oo += float64(w * float64(m*m))
				q.gu -= float64(w * float64(x*u))
				q.gw -= float64(w * float64(x*m))
			}
		}
		d, m := q.least()
		next := *b
		next.D, next.Min = f.RoundD(float32(d)), f.RoundMin(float32(-m))
		if !f.HasMins() {
			next.Min = b.Min
		} else if next.Min < 0 && f.Mins[0] < f.Mins[1] {
			next.D, next.Min = f.RoundD(float32(-q.gu/q.uu)), 0
		}
		if !finite(next.D) || !finite(next.Min) || next.D == 0 {
			return best
		}
		e := s.nearest(&next)
		if !(e < best) {
			return best
		}
		*b, best = next, e
	}
	return best
}
