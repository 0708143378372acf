// Package search has the scalar searches for a scale, and a minimum, of a few values.
package search

import (
	"math"

	"ggforge/quants/internal/arith"
)

// The searches below fit a scale (and a minimum) to a few values x with
// weights w. They try scales on a fixed grid around the obvious one, take for
// each the levels it rounds to, and keep the candidate with the smallest
// weighted error (the largest sum(w*x*l)^2 / sum(w*l*l), which is the same for
// the best scale of given levels).
//
// For each candidate only the sums that decide are computed; the codes of the winner are recomputed at the end from its
// step.
//
// x, w and codes have one length, at most MaxLen.
//
// Source: the make_q*_quants functions of ggml 0.27.0 (ggml-quants.c), in the
// form of their arithmetic only.

const (
	// MaxLen is the largest number of values in one search.
	MaxLen = 32
	// GroupMaxEps: values whose magnitude does not reach it count as zero.
	GroupMaxEps float32 = 1e-15
)

// Sym fits x by scale*l with -levels <= l < levels. It stores the codes
// l+levels and returns the scale, whose sign is that of the fit. Values all
// below GroupMaxEps give codes 0 and scale 0.
func Sym(levels int32, x, w []float32, codes []uint8) float32 {
	m := arith.Largest(x)
	if arith.Abs(m) < GroupMaxEps {
		clear(codes)
		return 0
	}
	n := float32(levels)
	step := -n / m
	a, b := sumsSym(levels, step, x, w)
	var scale float32
	if b != 0 {
		scale = a / b
	}
	best := scale * a
	for t := float32(-9); t <= 9; t++ {
		if t == 0 {
			continue
		}
		s := -(n + float32(0.1*t)) / m
		a, b := sumsSym(levels, s, x, w)
		if b > 0 && a*a > best*b {
			scale = a / b
			best = scale * a
			step = s
		}
	}
	for i, v := range x {
		codes[i] = uint8(LevelSym(levels, float32(step*v)) + levels)
	}
	return scale
}

func LevelSym(levels int32, v float32) int32 {
	return min(max(arith.RoundEven(v), -levels), levels-1)
}

// sumsSym returns sum(w*x*l) and sum(w*l*l) for the levels of step.
func sumsSym(levels int32, step float32, x, w []float32) (a, b float32) {
	w = w[:len(x)]
	for i, v := range x {
		l := float32(LevelSym(levels, float32(step*v)))
		a += float32(float32(w[i]*v) * l)
		b += float32(float32(w[i]*l) * l)
	}
	return a, b
}

// Sym3 is Sym with weights x*x and another refinement: levels are
// moved one at a time, in at most 5 passes, while that improves the fit.
func Sym3(levels int32, x []float32, codes []uint8) float32 {
	m := arith.Largest(x)
	if arith.Abs(m) < GroupMaxEps {
		clear(codes)
		return 0
	}
	step := -float32(levels) / m
	var lv [MaxLen]int32
	var a, b float32
	for i, v := range x {
		l := LevelSym(levels, float32(step*v))
		lv[i] = l
		w, f := v*v, float32(l)
		a += float32(float32(w*v) * f)
		b += float32(float32(w*f) * f)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			w, f := float32(v*v), float32(lv[i])
			wx := float32(w * v)
			a1 := a - float32(wx*f)
			if !(a1 > 0) {
				continue
			}
			b1 := b - float32(float32(w*f)*f)
			l := LevelSym(levels, float32(v*b1)/a1)
			if l == lv[i] {
				continue
			}
			f = float32(l)
			a1 += float32(wx * f)
			b1 += float32(float32(w*f) * f)
			if b1 > 0 && a1*a1*b > a*a*b1 {
				lv[i], a, b = l, a1, b1
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	for i := range x {
		codes[i] = uint8(lv[i] + levels)
	}
	if b > 0 {
		return a / b
	}
	return 0
}

// AsymParams are the parameters of one use of Asym.
type AsymParams struct {
	Levels int32   // codes are 0..levels
	R0, Dr float32 // candidate k divides the range into levels + R0 + dr*k steps
	Steps  int     // candidates are k = 0..steps
	AbsErr bool    // error |d| instead of d*d
}

// Asym fits x by scale*l + minimum with 0 <= l <= levels and minimum
// <= 0. It stores the codes l and returns
// the scale and the negated minimum (>= 0, possibly -0).
func Asym(p *AsymParams, x, w []float32, codes []uint8) (scale, negMin float32) {
	w, codes = w[:len(x)], codes[:len(x)]
	mn, mx := x[0], x[0]
	sw := w[0]
	sx := float32(sw * x[0])
	for i := 1; i < len(x); i++ {
		v := x[i]
		if v < mn {
			mn = v
		}
		if v > mx {
			mx = v
		}
		sw += w[i]
		sx += float32(w[i] * v)
	}
	if mn > 0 {
		mn = 0
	}
	if mx == mn {
		clear(codes)
		return 0, -mn
	}
	n := float32(p.Levels)
	step, base := n/(mx-mn), mn // the codes are those of step*(x - base)
	scale = 1 / step

	var lvArray [MaxLen]float32
	lv := lvArray[:len(x)]
	for i, v := range x {
		lv[i] = float32(levelAsym(p.Levels, float32(step*(v-mn))))
	}
	best := p.err(scale, mn, x, w, lv)
	for k := 0; k <= p.Steps; k++ {
		// mn is that of the best fit so far, mx always that of x.
		s := (p.R0 + float32(p.Dr*float32(k)) + n) / (mx - mn)
		var sl, sl2, sxl float32
		for i, v := range x {
			l := float32(levelAsym(p.Levels, float32(s*(v-mn))))
			lv[i] = l
			wl := float32(w[i] * l)
			sl += wl
			sl2 += float32(wl * l)
			sxl += float32(wl * v)
		}
		det := float32(sw*sl2) - float32(sl*sl)
		if !(det > 0) {
			continue
		}
		scale1 := (float32(sw*sxl) - float32(sx*sl)) / det
		mn1 := (float32(sl2*sx) - float32(sl*sxl)) / det
		if mn1 > 0 {
			mn1 = 0
			scale1 = sxl / sl2
		}
		if e := p.err(scale1, mn1, x, w, lv); e < best {
			best = e
			step, base = s, mn
			scale, mn = scale1, mn1
		}
	}
	for i, v := range x {
		codes[i] = uint8(levelAsym(p.Levels, float32(step*(v-base))))
	}
	return scale, -mn
}

func levelAsym(levels int32, v float32) int32 {
	return min(max(arith.RoundEven(v), 0), levels)
}

// err returns the weighted error of the fit scale*lv + mn.
func (p *AsymParams) err(scale, mn float32, x, w, lv []float32) (e float32) {
	w, lv = w[:len(x)], lv[:len(x)]
	if p.AbsErr {
		for i, v := range x {
			e += float32(w[i] * arith.Abs(float32(scale*lv[i])+mn-v))
		}
		return e
	}
	for i, v := range x {
		d := float32(scale*lv[i]) + mn - v
		e += float32(w[i] * float32(d*d))
	}
	return e
}

// Pos fits x by scale*l with 0 <= l <= levels, for values that are
// mostly not negative: it fits the scales and minimums of sub-blocks. It
// stores the codes and returns the scale. A negative x gets a negative level,
// stored as a byte and from then on read as that byte (0..255), as in the
// reference; a later move of the level may set it right.
func Pos(levels int32, x, w []float32, codes []uint8) float32 {
	w, codes = w[:len(x)], codes[:len(x)]
	var mx float32
	for _, v := range x {
		if v > mx {
			mx = v
		}
	}
	if mx < GroupMaxEps {
		clear(codes)
		return 0
	}
	n := float32(levels)
	step := n / mx
	inv := 1 / step
	var best float32
	for i, v := range x {
		l := float32(uint8(arith.RoundEven(float32(step * v))))
		d := v - float32(inv*l)
		best += float32(float32(w[i]*d) * d)
	}
	for t := float32(-4); t <= 4; t++ {
		if t == 0 {
			continue
		}
		s := (float32(0.1*t) + n) / mx
		inv := 1 / s
		var e float32
		for i, v := range x {
			l := float32(min(levels, arith.RoundEven(float32(s*v))))
			d := v - float32(inv*l)
			e += float32(float32(w[i]*d) * d)
		}
		if e < best {
			best, step = e, s
		}
	}
	var a, b float32
	for i, v := range x {
		l := min(levels, arith.RoundEven(float32(step*v)))
		codes[i] = uint8(l)
		f := float32(l)
		a += float32(float32(w[i]*v) * f)
		b += float32(float32(w[i]*f) * f)
	}
	for range 5 {
		changed := false
		for i, v := range x {
			f := float32(codes[i])
			wx := float32(w[i] * v)
			a1 := a - float32(wx*f)
			b1 := b - float32(float32(w[i]*f)*f)
			if !(a1 > 0 && b1 > 0) {
				continue
			}
			l := min(levels, arith.RoundEven(float32(v*b1)/a1))
			if l == int32(codes[i]) {
				continue
			}
			f = float32(l)
			a1 += float32(wx * f)
			b1 += float32(float32(w[i]*f) * f)
			if a1*a1*b > a*a*b1 {
				codes[i], a, b = uint8(l), a1, b1
				changed = true
			}
		}
		if !changed {
			break
		}
	}
	if b > 0 {
		return a / b
	}
	return 0
}

// CodeMax codes x against its largest element: codes are the bytes of
// arith.RoundEven(levels/max * x), and the scale max/levels is returned. Without a positive
// element codes and scale are 0.
func CodeMax(levels float32, x []float32, codes []uint8) float32 {
	var mx float32
	for _, v := range x {
		if v > mx {
			mx = v
		}
	}
	var step float32
	if mx > 0 {
		step = levels / mx
	}
	codes = codes[:len(x)]
	for j, v := range x {
		codes[j] = uint8(arith.RoundEven(float32(step * v)))
	}
	return mx / levels
}

// RelevelMin sets codes to the levels 0..levels nearest to (x + mn)/d; codes
// stay as they are when d is 0.
func RelevelMin(levels int32, d, mn float32, x []float32, codes []uint8) {
	if d == 0 {
		return
	}
	codes = codes[:len(x)]
	for i, v := range x {
		codes[i] = uint8(levelAsym(levels, (v+mn)/d))
	}
}

// RelevelSym sets codes to the levels -levels..levels-1 nearest to x/d, plus
// levels; codes stay as they are when d is 0.
func RelevelSym(levels int32, d float32, x []float32, codes []uint8) {
	if d == 0 {
		return
	}
	codes = codes[:len(x)]
	for i, v := range x {
		codes[i] = uint8(LevelSym(levels, v/d) + levels)
	}
}

// BlockRange returns the smallest and the largest element of x, which is not
// empty.
func BlockRange(x []float32) (mn, mx float32) {
	mn, mx = math.MaxFloat32, -math.MaxFloat32
	for _, v := range x {
		if v < mn {
			mn = v
		}
		if v > mx {
			mx = v
		}
	}
	return mn, mx
}
