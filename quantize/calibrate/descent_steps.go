package calibrate

import (
	"math"

	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
	"ggforge/quants/parts"
)

// visit improves one row in the columns of l: v are its values and g half the gradient in these columns. Changes are
// added to m.
func (d *CoordinateDescent) visit(l *neighbours, s *state, row *rowState, pass int, m *moves, v, g []float32) {
	f := d.Format
	s.old = append(s.old[:0], v...)
	for at := 0; at < l.n; at += f.Block {
		b := &row.blocks[(l.at+at)/f.Block]
		if b.D == 0 || !finite(b.D) {
			continue
		}
		for j := range f.Subs() {
			from := at + j*f.Sub
			if scale, _ := f.Scale(b, j); !finite(scale) {
				continue
			}
			if pass > 0 && f.Scales[0] < f.Scales[1] {
				d.scaleStep(l, s, row, b, j, from, v, g)
			}
			if d.grid != nil {
				d.groupStep(l, s, row, b, j, from, v, g)
			} else {
				d.levelStep(l, row, b, j, from, v, g)
			}
		}
		if f.HasD() && (f.Scales[0] == f.Scales[1] && pass > 0 || d.grid != nil && pass == 1) {
			d.blockStep(l, s, row, b, at, v, g)
		}
	}
	for i, old := range s.old {
		if step := v[i] - old; step != 0 {
			m.at, m.steps = append(m.at, int32(l.at+i)), append(m.steps, math.Float32bits(step))
		}
	}
}

// move changes value i by d.
func (l *neighbours) move(g []float32, i int, d float32) {
	vecmath.AddScaled(g, l.h[i*l.n:][:l.n], d)
}

// levelStep improves the levels of sub-block j of b, which begins at column from.
func (d *CoordinateDescent) levelStep(l *neighbours, row *rowState, b *parts.Block, j, from int, v, g []float32) {
	f := d.Format
	scale, min := f.Scale(b, j)
	if scale == 0 {
		return
	}
	levels := b.Levels[j*f.Sub:][:f.Sub]
	reach, size := l.reach[from:][:f.Sub], max(scale, -scale)
	for k := range levels {
		i := from + k
		if x := g[i]; max(x, -x) <= reach[k]*size {
			continue // no other level is nearer to where the gradient is 0
		}
		h := l.h[i*l.n+i]
		level := f.Nearest(v[i]-g[i]/h, scale, min)
		if level == levels[k] {
			continue
		}
		next := float32(scale*float32(level)) - min
		step := next - v[i]
		if row.take(float64(step)*(2*float64(g[i])+float64(float64(step)*float64(h))), minGainLevel, 1) {
			levels[k], v[i] = level, next
			row.sizes[(l.at+from)/f.Sub].known = false
			l.move(g, i, step)
		}
	}
}

// quadratic is the change of the error for steps a and b along two directions:
// 2(a gu + b gw) + a² uu + 2ab uo + b² oo.
type quadratic struct{ gu, gw, uu, uo, oo float64 }

func (q *quadratic) at(a, b float64) float64 {
	first := float64(a*q.gu) + float64(b*q.gw)
	return 2*first + float64(a*a*q.uu) + float64(2*a*b*q.uo) + float64(b*b*q.oo)
}

// least returns the minimum; along the first direction alone if the two are dependent.
func (q *quadratic) least() (a, b float64) {
	if det := float64(q.uu*q.oo) - float64(q.uo*q.uo); q.oo > 0 && det > 1e-9*q.uu*q.oo {
		return (float64(q.gw*q.uo) - float64(q.gu*q.oo)) / det, (float64(q.gu*q.uo) - float64(q.gw*q.uu)) / det
	}
	if q.uu > 0 {
		return -q.gu / q.uu, 0
	}
	return 0, 0
}

// around is the largest change of a code of a scale or minimum in one step.
const around = 4

// scaleStep improves the scale and minimum of a sub-block with fixed levels.
func (d *CoordinateDescent) scaleStep(l *neighbours, s *state, row *rowState, b *parts.Block, j, from int, v,
	g []float32) {
	f := d.Format
	u, sums := buffer.Resize(&s.u, f.Sub), &row.sizes[(l.at+from)/f.Sub]
	for k := range u {
		u[k] = float32(b.Levels[j*f.Sub+k])
	}
	mins := f.Mins[0] < f.Mins[1]
	if !sums.known {
		hu, bits := buffer.Resize(&s.hu, f.Sub), s.resizeBits(f.Sub)
		for k, v := range u {
			bits[k] = math.Float32bits(v)
		}
		clear(hu)
		vecmath.Combine(hu, l.h[from*l.n+from:], l.n, bits)
		*sums = size{uu: vecmath.SumProducts(hu, u), known: true}
		if mins {
			sums.uo = vecmath.Sum(hu)
		}
	}
	gs := g[from:][:f.Sub]
	q := quadratic{gu: vecmath.SumProducts(gs, u), uu: sums.uu, uo: sums.uo}
	if mins {
		q.gw, q.oo = vecmath.Sum(gs), l.all[from/f.Sub]
	}
	if least := q.at(q.least()); least > -float64(row.share*minGainScale)*float64(f.Sub)*(1-1e-6) {
		return // no codes gain more than the best numbers
	}
	s0, m0 := int(b.Scales[j]), int(b.Mins[j])
	best, bs, bm := 0.0, s0, m0
	for sc := max(f.Scales[0], s0-around); sc <= min(f.Scales[1], s0+around); sc++ {
		da, m, db := float64(b.D)*(float64(f.Factor(int16(sc)))-float64(f.Factor(int16(s0)))), m0, 0.0
		if f.Mins[0] < f.Mins[1] && b.Min != 0 && q.oo > 0 { // the best one for the scale
			to := float64(m0) + (q.gw+float64(da*q.uo))/float64(q.oo*float64(b.Min))
			if to == to {
				m = int(math.Floor(max(float64(f.Mins[0]), min(float64(f.Mins[1]), to)) + 0.5))
			}
			db = -float64(float64(b.Min) * float64(m-m0))
		}
		if e := q.at(da, db); e < best {
			best, bs, bm = e, sc, m
		}
	}
	if !row.take(best, minGainScale, f.Sub) {
		return
	}
	b.Scales[j], b.Mins[j] = int16(bs), int16(bm)
	d.set(l, s, b, j, from, v, g)
}

// set sets the values of a sub-block to those of its scale, minimum and levels.
func (d *CoordinateDescent) set(l *neighbours, s *state, b *parts.Block, j, from int, v, g []float32) {
	f := d.Format
	scale, min := f.Scale(b, j)
	bits := s.resizeBits(f.Sub)
	for k := range bits {
		next := float32(scale*float32(b.Levels[j*f.Sub+k])) - min
		bits[k] = math.Float32bits(next - v[from+k])
		v[from+k] = next
	}
	vecmath.Combine(g, l.h[from*l.n:], l.n, bits)
}

// blockStep improves d and dmin of a block with fixed levels.
func (d *CoordinateDescent) blockStep(l *neighbours, s *state, row *rowState, b *parts.Block, at int, v, g []float32) {
	f := d.Format
	u, hu, ho := buffer.Resize(&s.u, f.Block), buffer.Resize(&s.hu, f.Block), buffer.Resize(&s.ho, f.Block)
	clear(hu)
	clear(ho)
	bits := s.resizeBits(f.Block)
	var q quadratic
	for j := range f.Subs() {
		for k := j * f.Sub; k < (j+1)*f.Sub; k++ {
			u[k] = f.Factor(b.Scales[j]) * float32(b.Levels[k])
			bits[k] = math.Float32bits(u[k])
		}
		if m := float32(b.Mins[j]); f.HasMins() && m != 0 {
			vecmath.AddScaled(ho, l.ones[at/f.Sub+j][at:][:f.Block], m)
			q.gw += float64(float64(m) * vecmath.Sum(g[at+j*f.Sub:][:f.Sub]))
		}
	}
	vecmath.Combine(hu, l.h[at*l.n+at:], l.n, bits)
	q.gu, q.uu = vecmath.SumProducts(g[at:][:f.Block], u), vecmath.SumProducts(hu, u)
	for j := range f.Subs() {
		if m := float64(b.Mins[j]); m != 0 {
			q.oo += float64(m * vecmath.Sum(ho[j*f.Sub:][:f.Sub]))
			q.uo += float64(m * vecmath.Sum(hu[j*f.Sub:][:f.Sub]))
		}
	}
	da, dm := q.least()
	nextD, nextMin := f.RoundD(float32(float64(b.D)+da)), b.Min
	if f.HasMins() {
		nextMin = f.RoundMin(float32(float64(b.Min) - dm))
		if f.Mins[0] < f.Mins[1] && nextMin < 0 {
			nextD, nextMin = f.RoundD(float32(float64(b.D)-q.gu/q.uu)), b.Min
		}
	}
	if !finite(nextD) || !finite(nextMin) || nextD == 0 {
		return
	}
	minGain := minGainD
	if f.Scales[0] == f.Scales[1] {
		minGain = minGainScale
	}
	if !row.take(q.at(float64(nextD)-float64(b.D), -(float64(nextMin)-float64(b.Min))), minGain, f.Block) {
		return
	}
	b.D, b.Min = nextD, nextMin
	for j := range f.Subs() {
		d.set(l, s, b, j, at+j*f.Sub, v, g)
	}
}
