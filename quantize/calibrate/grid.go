package calibrate

import (
	"math"
	"math/bits"

	"ggforge/internal/kernel/vecmath"
	"ggforge/quants/parts"
)

// grid chooses codebook points for groups, among those near the levels that would be best if errors of elements were
// independent: the others are hardly ever better.
type grid struct {
	*parts.Grid
	points     []float32 // see parts.Grid.Nearby
	first, per float32   // the least level, and levels per unit
}

func newGrid(p *parts.Grid) *grid {
	if p == nil {
		return nil
	}
	first := float32(p.Levels[0])
	return &grid{p, p.Nearby(), first, 1 / (float32(p.Levels[1]) - first)}
}

// forms returns the quadratic forms of the errors of groups, see vecmath.Quadratic: h has the moments of n columns,
// rows ld apart; only those within blocks of size columns are used.
func (c *grid) forms(h []float32, ld, n, size int) (all []uint32) {
	for at := 0; at < n; at += c.Dim {
		block := at / size * size
		for i := range c.Dim {
			for j := range i + 1 {
				m := h[(at+i)*ld+at-block+j]
				if j < i {
					m *= 2
				}
				all = append(all, math.Float32bits(m))
			}
		}
	}
	return all
}

// Which points groups may take: those shifted up, down, or any.
const (
	shiftUp = iota
	shiftDown
	shiftAny
)

// attempt is new levels for the columns of a sub-block.
type attempt struct {
	change float64     // of the error
	v, g   [32]float32 // values, and half the gradients
	levels [32]int8
	code   int16 // of the scale
}

// norm measures the errors of a sub-block.
type norm struct {
	h     []float32 // moments among its columns, ld apart
	ld, n int
	forms []uint32 // of its groups: (Dim+1)/2 for each column
}

// all chooses all groups of an attempt anew, one after the other.
func (c *grid) all(a *attempt, m *norm, scale float32, shift int) {
	for at := 0; at < m.n; at += 8 {
		switch {
		case c.Dim == 8 && c.Signs == parts.EvenSigns:
			c.group(a, m, at, scale, 0, shift)
		case c.Dim == 8:
			c.group(a, m, at, scale, anySigns, shift)
		case c.Signs != parts.EvenSigns:
			c.group(a, m, at, scale, anySigns, shift)
			c.group(a, m, at+4, scale, anySigns, shift)
		default: // both halves have an even number of signs, or none
			other := *a
			c.group(a, m, at, scale, 0, shift)
			c.group(a, m, at+4, scale, 0, shift)
			c.group(&other, m, at, scale, 1, shift)
			c.group(&other, m, at+4, scale, 1, shift)
			if other.change < a.change {
				*a = other
			}
		}
	}
}

// anySigns permits any number of negative elements.
const anySigns = -1

// group chooses the levels of the group from column at on. odd is the number of negative ones modulo 2, or anySigns.
func (c *grid) group(a *attempt, m *norm, at int, scale float32, odd, shift int) {
	dim := c.Dim
	f := vecmath.Quadratic{Form: m.forms[at*(dim+1)/2:][:dim*(dim+1)/2]}
	v, g := a.v[at:][:dim], a.g[at:][:dim]
	var want [8]float32 // levels
	negative := 0
	for i, x := range v {
		f.Linear[i] = math.Float32bits(2 * g[i])
		want[i] = (x - g[i]/m.h[(at+i)*m.ld+at+i]) / scale
		if want[i] < 0 {
			negative |= 1 << i
		}
	}
	var found, points []float32
	var k, signs int
	var up float32
	least := float32(math.Inf(1))
	try := func(pattern int, plus float32) {
		rank, times := 0, 1
		for i, x := range v {
			w, s := want[i], scale
			if pattern>>i&1 != 0 {
				w, s = -w, -scale
			}
			f.Times[i], f.Plus[i] = math.Float32bits(s), math.Float32bits(float32(plus*scale)-x)
			if w = float32((w-plus-c.first)*c.per) + 0.5; w > 0 { // so it is a number, too
				rank += times * int(min(w, float32(len(c.Levels)-1)))
			}
			times *= len(c.Levels)
		}
		points = c.points[rank*dim*parts.Near:][:dim*parts.Near]
		if p, e := f.Least(points, parts.Near); p >= 0 && e < least {
			least, found, k, signs, up = e, points, p, pattern, plus
		}
	}
	if c.Shifts() {
		if shift != shiftDown {
			try(0, parts.Shift)
		}
		if shift != shiftUp {
			try(0, -parts.Shift)
		}
	} else {
		if odd != anySigns && bits.OnesCount(uint(negative))&1 != odd {
			flip, cheapest := 0, float32(math.Inf(1))
			for i, x := range want[:dim] {
				if x < 0 {
					x = -x
				}
				if cost := m.h[(at+i)*m.ld+at+i] * x * max(x, c.first); cost < cheapest {
					flip, cheapest = i, cost
				}
			}
			negative ^= 1 << flip
		}
		try(negative, 0)
	}
	if found == nil { // nothing is finite
		a.change = math.Inf(1)
		return
	}
	var levels [8]int8
	var values [8]float32
	var step [8]uint32 // bits
	var wide [8]float64
	moved := false
	for i := range dim {
		level := found[i*parts.Near+k] + up
		if signs>>i&1 != 0 {
			level = -level
		}
		levels[i], values[i] = int8(level), float32(scale*level)
		by := values[i] - v[i]
		step[i], wide[i] = math.Float32bits(by), float64(by)
		moved = moved || by != 0
	}
	if !moved {
		return
	}
	change := 0.0
	for i := range dim {
		s := 2 * float64(g[i])
		for j, x := range m.h[(at+i)*m.ld+at:][:dim] {
			s += float64(float64(x) * wide[j])
		}
		change += float64(s * wide[i])
	}
	if !(change < 0) && c.permits(a.levels[at:][:dim], odd, shift) && v[0] == float32(scale*float32(a.levels[at])) {
		return
	}
	a.change += change
	copy(a.levels[at:], levels[:dim])
	copy(v, values[:dim])
	vecmath.Combine(a.g[:m.n], m.h[at*m.ld:], m.ld, step[:dim])
}

// permits reports whether levels of a group may be, see group.
func (c *grid) permits(levels []int8, odd, shift int) bool {
	if c.Shifts() {
		return shift == shiftAny || parts.IsDown(levels[0]) == (shift == shiftDown)
	}
	if odd == anySigns {
		return true
	}
	negative := 0
	for _, v := range levels {
		negative += int(uint8(v) >> 7)
	}
	return negative&1 == odd
}

// choose returns levels, and the code of a scale, for sub-block j of b, of so many sweeps over
// its groups: load sets an attempt to the levels of the sub-block. Scales up to tries codes away
// are tried.
func (c *grid) choose(s *state, f *parts.Format, b *parts.Block, j int, m *norm, tries, sweeps int,
	load func(a *attempt)) *attempt {
	now, best, other := &s.attempts[0], &s.attempts[1], &s.attempts[2]
	load(now)
	shift := shiftAny
	if c.Signs == parts.ShiftBySub {
		shift = shiftUp
		if parts.IsDown(b.Levels[j*f.Sub]) {
			shift = shiftDown
		}
	}
	code := b.Scales[j]
	best.change = math.Inf(1)
	try := func(code int16, shift int) {
		*other = *now
		other.change, other.code = 0, code
		for range sweeps {
			c.all(other, m, b.D*f.Factor(code), shift)
		}
		if other.change < best.change {
			best, other = other, best
		}
	}
	try(code, shift)
	if shift != shiftAny {
		try(code, shift^1)
	}
	for k := int16(1); k <= int16(tries); k++ {
		for _, next := range []int16{code - k, code + k} {
			if int(next) >= f.Scales[0] && int(next) <= f.Scales[1] {
				try(next, shift)
			}
		}
	}
	return best
}

// groupStep looks for better levels in sub-block j of b, from column from on.
func (d *CoordinateDescent) groupStep(l *neighbours, s *state, row *rowState, b *parts.Block, j, from int, v,
	g []float32) {
	f := d.Format
	if scale, _ := f.Scale(b, j); scale == 0 {
		return
	}
	m := norm{l.h[from*l.n+from:], l.n, f.Sub, l.forms[from*(d.grid.Dim+1)/2:]}
	best := d.grid.choose(s, f, b, j, &m, 0, 1, func(a *attempt) {
		copy(a.v[:], v[from:][:f.Sub])
		copy(a.g[:], g[from:][:f.Sub])
		copy(a.levels[:], b.Levels[j*f.Sub:][:f.Sub])
	})
	if !row.take(best.change, minGainLevel, f.Sub) {
		return
	}
	b.Scales[j] = best.code
	copy(b.Levels[j*f.Sub:], best.levels[:f.Sub])
	row.sizes[(l.at+from)/f.Sub].known = false
	d.set(l, s, b, j, from, v, g)
}
