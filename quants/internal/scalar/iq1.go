package scalar

import (
	"math"
	"sync"

	"ggforge/quants/internal/codebook"
	"ggforge/quants/internal/pack"
)

// IQ1_S and IQ1_M share codebook.GridIQ1 and the values of its levels, which
// are -1, 0 and 1 moved by 1/8 up or down.

// ValuesIQ1 are the values of the levels, moved up (0) and down (1).
var ValuesIQ1 = [2][3]float32{{-0.875, 0.125, 1.125}, {-1.125, -0.125, 0.875}}

// iq1Fit is what is found for a superblock, and the weights.
type iq1Fit struct {
	w      [pack.QK_K]float32
	scales [16]float32 // by sub-block
	codes  [32]uint16  // by group
	shifts [32]uint8   // by sub-block (IQ1_S) or group (IQ1_M)
}

var iq1Fits = sync.Pool{New: func() any { return new(iq1Fit) }}

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

// SnapIQ1 replaces codes that are not points of the codebook by the near point that
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
	Cut1, cut2  int     // -1 if there is none
	kind        int     // which shifts
	// A search may start from a lower bound, best, in place of worstFit. Its result
	// is the same if the first fit that is better is better than above as well; else
	// doubtful is set.
	Above    float32
	Bounded  bool // no fit yet
	Doubtful bool
}

// worstFit is less than any fit.
const worstFit = -math.MaxFloat32

var NoCuts = CutFit{Best: worstFit, Cut1: -1, cut2: -1}

// skips reports whether second cut i of a row has no fit to take. Second cuts i with
// one i%len(hits) have a fit that is better than start, or the hit is 0; len(hits) is
// a power of two, or 0: nothing is known. A fit that is taken may leave a best that is
// less than start, by rounding: then all must be tried.
func (f *CutFit) skips(hits []int32, i int, start float32) bool {
	return len(hits) > 0 && hits[i&(len(hits)-1)] == 0 && f.Best >= start
}

// take makes a fit with sums a and b the best.
func (f *CutFit) take(a, b float32, cut1, cut2, kind int) {
	if f.Bounded {
		f.Bounded = false
		f.Doubtful = !(a*a > f.Above*b)
	}
	f.scale = a / b
	f.Best = f.scale * a
	f.Cut1, f.cut2, f.kind = cut1, cut2, kind
}

// CutsLen is the number of cuts of 32 elements, and room to read a vector of any
// size from the last.
const CutsLen = pack.QK + 16

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
