package quants

import (
	"math"
	"sync"
)

// gridSearch are the parameters of the search that IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS
// and IQ3_S share. It fits the magnitudes y of a sub-block by scale*(2*l + 1),
// where the levels l of each group of elements form a point of the codebook, and
// the signs are kept apart.
type gridSearch struct {
	cb   *codebook
	size int // elements of a sub-block
	// Weights are importance*sqrt(S + x*x), S being sumFactor times the mean square
	// of the superblock. Without importance they are plainFactor*S + x*x.
	sumFactor, plainFactor float32
	// evenSigns: the number of negative elements of 8 is even, see evenSigns.
	evenSigns bool
	// limit: sub-blocks whose largest y is below it get scale 0, and no codes or
	// signs.
	limit float32
	// fitFirst: mx (below) is three times the scale of a fit by levels 0..4 that
	// need not form points; else it is the largest y.
	fitFirst bool
	// Candidate t = -steps..steps takes the levels of y*id, id = (top + step*t)/mx;
	// top = 2*(largest level) + 1.
	top, step float32
	steps     int
	// offGrid: all groups count as off grid before a candidate is kept.
	offGrid bool
	refit   refitKind
}

// refitKind says which groups get new levels for the scale of the best
// candidate.
type refitKind uint8

const (
	refitOffGrid refitKind = iota // those that were off grid
	refitAny                      // all, if any was off grid
	refitAlways                   // all
)

// maxGroups is the largest number of groups in a sub-block: IQ3 has 8 of 4
// elements.
const maxGroups = 8

// gridFit is what is found for a superblock.
type gridFit struct {
	scales [16]float32 // by sub-block, not negative
	zero   [16]bool    // by sub-block: below the limit
	codes  [64]uint16  // by group of the codebook's dimension
	signs  [32]uint8   // by 8 elements
}

// gridFitter is the signature of superblock, for which there may be a vector
// version.
type gridFitter func(p *gridSearch, r *gridFit, x, importance []float32) float32

var gridFits = sync.Pool{New: func() any { return new(gridFit) }}

// gridGroups is the work of one sub-block: the codes of its groups, and whether
// rounding hit a point of the codebook.
type gridGroups struct {
	codes  [maxGroups]uint16
	onGrid [maxGroups]bool
	failed bool // no near point had a finite error, at any time
}

// superblock fits the 256 elements x and returns the largest scale. importance
// is nil or of the same length. The lists of the codebook must be loaded.
func (p *gridSearch) superblock(r *gridFit, x, importance []float32) float32 {
	var yArray, wArray, vArray [maxSearch]float32
	var free [maxSearch]uint8 // levels of the first fit, not needed
	y, w, v := yArray[:p.size], wArray[:p.size], vArray[:p.size]
	s := float32(float32(p.sumFactor*sumSquares(x)) / qkK)
	groups := p.size / p.cb.dim
	for j := range len(x) / p.size {
		sub, signs := x[p.size*j:][:p.size], r.signs[p.size/8*j:][:p.size/8]
		switch {
		case importance != nil:
			importanceWeights(w, sub, importance[p.size*j:][:p.size], s)
		case p.plainFactor == 0:
			squareWeights(w, sub)
		default:
			for i, e := range sub {
				w[i] = float32(p.plainFactor*s) + float32(e*e)
			}
		}
		for i, e := range w {
			v[i] = sqrt32(e)
		}
		for g := range signs {
			if p.evenSigns {
				signs[g] = evenSigns(y[8*g:][:8], sub[8*g:][:8], w[8*g:][:8])
			} else {
				signs[g] = splitSigns(y[8*g:][:8], sub[8*g:][:8])
			}
		}
		codes := r.codes[groups*j:][:groups]
		mx := maxOf(y)
		scale := mx / p.top
		r.zero[j] = mx < p.limit
		if p.fitFirst && !r.zero[j] {
			scale = searchPos(int32(p.top)>>1+2, y, w, free[:p.size])
			mx = scale * 3
			r.zero[j] = mx <= 0
		}
		if r.zero[j] {
			r.scales[j] = 0
			clear(codes)
			clear(signs)
			continue
		}
		scale = p.search(y, w, v, mx, scale, codes)
		if scale < 0 {
			scale = -scale
			for g := range signs {
				signs[g] = ^signs[g]
			}
		}
		r.scales[j] = scale
	}
	return maxOf(r.scales[:len(x)/p.size])
}

// search sets codes to those of the groups of y and returns the scale. w are the
// weights of the fit, v their roots, which weigh the choice among near points. mx
// is what the candidates' top level is put at, scale what is returned if no
// candidate has a weighted fit. The scale is negative only if y is mostly so, and
// +Inf if the errors overflow.
func (p *gridSearch) search(y, w, v []float32, mx, scale float32, codes []uint16) float32 {
	var best, trial gridGroups
	var values [8]float32
	groups := len(codes)
	for g := range groups {
		best.onGrid[g] = !p.offGrid
	}
	var bestFit float32
	for t := -p.steps; t <= p.steps; t++ {
		id := (p.top + float32(float32(t)*p.step)) / mx
		p.setValues(&values, 1/id)
		for g := range groups {
			p.round(&trial, g, y, v, id, &values)
		}
		a, b := p.sums(&trial, y, w)
		if b > 0 && a*a > bestFit*b {
			scale = a / b
			bestFit = scale * a
			best = trial
		}
	}
	best.failed = trial.failed // by any candidate
	if scale > 0 {
		refit, all := p.refit == refitAlways, p.refit != refitOffGrid
		for g := range groups {
			refit = refit || !best.onGrid[g]
		}
		if refit {
			p.setValues(&values, scale)
			id := 1 / scale
			for g := range groups {
				if all || !best.onGrid[g] {
					p.round(&best, g, y, v, id, &values)
				}
			}
			if a, b := p.sums(&best, y, w); b > 0 {
				scale = a / b
			}
		}
	}
	if best.failed {
		scale = float32(math.Inf(1))
	}
	copy(codes, best.codes[:])
	return scale
}

// setValues sets values to what the levels stand for with that scale.
func (p *gridSearch) setValues(values *[8]float32, scale float32) {
	for l := range values {
		values[l] = float32(scale * float32(2*l+1))
	}
}

// round chooses the point of group g: the levels nearest to (y*id - 1)/2 (half to
// even) or, if they are none, the near point whose values fit y best.
func (p *gridSearch) round(t *gridGroups, g int, y, v []float32, id float32, values *[8]float32) {
	cb := p.cb
	y, v = y[g*cb.dim:][:cb.dim], v[g*cb.dim:][:cb.dim]
	top := int32(p.top) >> 1
	var code uint16
	for i, e := range y {
		l := min(max(rn(0.5*(float32(id*e)-1)), 0), top)
		code |= uint16(l) << (i * cb.bits)
	}
	list := cb.list(code)
	t.onGrid[g] = len(list) == 0
	if len(list) > 0 {
		var c costs
		c.set(y, v, values[:top+1])
		var ok bool
		if code, ok = cb.nearest(list, &c); !ok {
			t.failed = true
		}
	}
	t.codes[g] = code
}

// sums returns sum(w*y*q) and sum(w*q*q), q = 2*l + 1.
func (p *gridSearch) sums(t *gridGroups, y, w []float32) (a, b float32) {
	dim, bits := p.cb.dim, p.cb.bits
	mask := uint16(1)<<bits - 1
	for g := 0; len(y) > 0; g++ {
		code, w1 := t.codes[g], w[:dim]
		for i, v := range y[:dim] {
			q := float32(int32(2*(code&mask) + 1))
			code >>= bits & 3
			a += float32(float32(w1[i]*v) * q)
			b += float32(float32(w1[i]*q) * q)
		}
		y, w = y[dim:], w[dim:]
	}
	return a, b
}

// splitSigns sets y to the magnitudes of x and returns the sign bits, bit i for a
// negative x[i]. There are 8 elements.
func splitSigns(y, x []float32) (signs uint8) {
	y = y[:len(x)]
	for i, v := range x {
		// v < 0, without a branch, which would be hard to predict: the sign bit
		// with any other bit.
		b := math.Float32bits(v)
		neg := b >> 31 & ((b<<1 | -(b << 1)) >> 31)
		signs |= uint8(neg << i)
		y[i] = math.Float32frombits(b ^ neg<<31)
	}
	return signs
}

// evenSigns is splitSigns for the types that store 7 of the 8 sign bits: to make
// the number of set bits even, it may flip the element that costs least (the
// first of smallest w*x*x), which leaves its y negative.
func evenSigns(y, x, w []float32) (signs uint8) {
	signs = splitSigns(y, x)
	if signs == signs7[signs&127] {
		return signs
	}
	w = w[:len(x)]
	at, least := 0, float32(math.MaxFloat32)
	for i, v := range x {
		if c := float32(w[i]*v) * v; c < least || i == 0 {
			at, least = i, c
		}
	}
	y[at] = -y[at]
	return signs ^ 1<<at
}

// maxOf returns the largest element of x, at least 0.
func maxOf(x []float32) (m float32) {
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// scaleCode returns the code c of 0..levels for which d*(2*c + 1) is nearest to
// s, id being 1/d.
func scaleCode(levels int32, id, s float32) uint8 {
	return uint8(min(max(rn(0.5*(float32(id*s)-1)), 0), levels))
}

// packScaleCodes codes pairs of scales in 4 bits each, as scaleCode does, the
// first of a pair in the low half of its byte.
func packScaleCodes(dst []byte, id float32, scales []float32) {
	scales = scales[:2*len(dst)]
	for j := range dst {
		dst[j] = scaleCode(15, id, scales[2*j]) | scaleCode(15, id, scales[2*j+1])<<4
	}
}

// decodeGroup8 decodes 8 elements from their levels and signs; values are those
// of the levels.
func decodeGroup8(y []float32, code uint16, signs uint8, values *[4]float32) {
	for i := range y[:8] {
		v := values[code>>(2*i)&3]
		y[i] = math.Float32frombits(math.Float32bits(v) ^ uint32(signs>>i&1)<<31)
	}
}

// decodeGroup4 decodes 4 elements; their signs are the low 4 bits.
func decodeGroup4(y []float32, code uint16, signs uint8, values *[8]float32) {
	for i := range y[:4] {
		v := values[code>>(3*i)&7]
		y[i] = math.Float32frombits(math.Float32bits(v) ^ uint32(signs>>i&1)<<31)
	}
}

// valuesIQ2 returns the values of the levels of the IQ2 types for a scale code.
func valuesIQ2(d float32, code uint8) (values [4]float32) {
	d = d * (0.5 + float32(code)) * 0.25
	for l, q := range levelsIQ2 {
		values[l] = d * q
	}
	return values
}
