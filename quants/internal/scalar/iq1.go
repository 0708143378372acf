package scalar

import (
	"math"

	"ggforge/quants/internal/codebook"
)

// IQ1_S and IQ1_M share codebook.GridIQ1 and the values of its levels, which
// are -1, 0 and 1 moved by 1/8 up or down.

// ValuesIQ1 are the values of the levels, moved up (0) and down (1).
var ValuesIQ1 = [2][3]float32{{-0.875, 0.125, 1.125}, {-1.125, -0.125, 0.875}}

// FitIQ1 is the fit of a superblock.
type FitIQ1 struct {
	Scales [16]float32 // by sub-block
	Codes  [32]uint16  // by group
	Shifts [32]uint8   // by sub-block (IQ1_S) or group (IQ1_M)
}

// sortOrder sets order to the indices of x by ascending value, equal values in
// their order. Both have one length, at most search.MaxLen.
func sortOrder(order []uint8, x []float32) {
	order = order[:len(x)]
	for i, v := range x {
		k := i
		for ; k > 0 && v < x[order[k-1]]; k-- {
			order[k] = order[k-1]
		}
		order[k] = uint8(i)
	}
}

// levelCodes packs the levels of the groups of 8 elements: order[:i1] have level 0,
// order[i1:i2] level 1, the rest level 2; the other way round if mirrored.
func levelCodes(codes []uint16, order []uint8, i1, i2 int, mirrored bool) {
	clear(codes)
	for k, i := range order {
		var l uint16
		if k >= i1 {
			l++
		}
		if k >= i2 {
			l++
		}
		if mirrored {
			l = 2 - l
		}
		codes[i>>3] |= l << (i & 7 * 2)
	}
}

// SnapIQ1 replaces codes that are not points of the codebook by the neighbour that
// fits x best with that scale and, per group, shift. The weights are those of the
// fit. It returns the scale, fitted again if there was any such code, or +Inf if
// the errors overflow.
func SnapIQ1(codes []uint16, x, w []float32, scale float32, shifts []uint8) float32 {
	cb := &codebook.IQ1
	snapped := false
	for g, code := range codes {
		list := cb.List(code)
		if len(list) == 0 {
			continue
		}
		snapped = true
		var values [3]float32
		for l, q := range ValuesIQ1[shifts[g]&1] {
			values[l] = float32(scale * q)
		}
		var c codebook.Costs
		c.Set(x[8*g:][:8], w[8*g:][:8], values[:])
		var ok bool
		if codes[g], ok = cb.Nearest(list, &c); !ok {
			return float32(math.Inf(1))
		}
	}
	if snapped {
		return RefitIQ1(scale, codes, x, w, shifts)
	}
	return scale
}

// RefitIQ1 returns the best scale for the codes, or the given one if there is
// none that is positive.
func RefitIQ1(scale float32, codes []uint16, x, w []float32, shifts []uint8) float32 {
	var a, b float32
	for g, code := range codes {
		values := &ValuesIQ1[shifts[g]&1]
		x, w := x[8*g:][:8], w[8*g:][:8]
		for i, v := range x {
			q := values[code>>(2*i)&3]
			wq := float32(w[i] * q)
			a += float32(wq * v)
			b += float32(wq * q)
		}
	}
	if a > 0 && b > 0 {
		return a / b
	}
	return scale
}

// CutFit is the best of the fits tried so far, in the order of the cuts. A fit is
// better if a*a > best*b.
type CutFit struct {
	Best, scale float32 // scale*a of that fit, and the scale
	Cut1, Cut2  int     // -1 if there is none
	kind        int     // which shifts
	start       float32 // Best at the beginning
	above       float32 // see FitFrom
	Bounded     bool    // no fit yet that is better than start
	Doubtful    bool
}

// FitFrom is a search that starts from a lower bound for the best fit. Its result is that of a
// search from NoCuts, if the first fit that is better than start is better by 2^-20 at least,
// and Best never falls below start, which it may by rounding; else it becomes Doubtful.
// Fits that are not better than start may be left out then.
func FitFrom(start float32) CutFit {
	return CutFit{Best: start, Cut1: -1, Cut2: -1, start: start, above: start * (1 + 0x1p-20), Bounded: true}
}

// worstFit is less than any fit.
const worstFit = -math.MaxFloat32

var NoCuts = CutFit{Best: worstFit, Cut1: -1, Cut2: -1, start: worstFit}

// take makes a fit with sums a and b the best.
func (f *CutFit) take(a, b float32, cut1, cut2, kind int) {
	if f.Bounded {
		f.Bounded = false
		f.Doubtful = !(a*a > f.above*b)
	}
	f.scale = a / b
	f.Best = f.scale * a
	f.Doubtful = f.Doubtful || f.Best < f.start
	f.Cut1, f.Cut2, f.kind = cut1, cut2, kind
}

// Upright returns the fit with a positive scale. If that takes the negative levels, which are
// those of the other shifts, it is mirrored. There are so many kinds.
func (f *CutFit) Upright(kinds int) (scale float32, kind int, mirrored bool) {
	if f.scale < 0 {
		return -f.scale, kinds - 1 - f.kind, true
	}
	return f.scale, f.kind, false
}

// decodeIQ1 decodes a group of 8.
func decodeIQ1(y []float32, d float32, code uint16, shift uint8) {
	var scaled [4]float32
	for l, q := range &ValuesIQ1[shift&1] {
		scaled[l] = d * q
	}
	for i := range y[:8] {
		y[i] = scaled[code>>(2*i)&3]
	}
}
