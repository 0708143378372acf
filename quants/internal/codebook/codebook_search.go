package codebook

import (
	"math"
	"sync"

	"ggforge/quants/internal/arith"
	"ggforge/quants/internal/pack"
	"ggforge/quants/internal/search"
)

// GridSearch are the parameters of the search that IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS
// and IQ3_S share. It fits the magnitudes y of a sub-block by scale*(2*l + 1),
// where the levels l of each group of elements form a point of the codebook, and
// the signs are kept apart.
type GridSearch struct {
	Cb   *Codebook
	Size int // elements of a sub-block
	// Weights are importance*sqrt(S + x*x), S being SumFactor times the mean square
	// of the superblock. Without importance they are PlainFactor*S + x*x.
	SumFactor, PlainFactor float32
	// EvenSigns: the number of negative elements of 8 is even, see EvenSigns.
	EvenSigns bool
	// Limit: sub-blocks whose largest y is below it get scale 0, and no codes or
	// signs.
	Limit float32
	// FitFirst: mx (below) is three times the scale of a fit by levels 0..4 that
	// need not form points; else it is the largest y.
	FitFirst bool
	// Candidate t = -steps..steps takes the levels of y*id, id = (top + step*t)/mx;
	// top = 2*(largest level) + 1.
	Top, Step float32
	Steps     int
	// OffGrid: all groups count as off grid before a candidate is kept.
	OffGrid bool
	Refit   RefitKind
}

// RefitKind selects the groups that get new levels for the scale of the best candidate.
type RefitKind uint8

const (
	RefitOffGrid RefitKind = iota // those that were off grid
	RefitAny                      // all, if any was off grid
	RefitAlways                   // all
)

// MaxGroups is the largest number of groups in a sub-block: IQ3 has 8 of 4
// elements.
const MaxGroups = 8

// GridFit is the fit of a superblock.
type GridFit struct {
	Scales [16]float32 // by sub-block, not negative
	Zero   [16]bool    // by sub-block: below the limit
	Codes  [64]uint16  // by group of the codebook's dimension
	Signs  [32]uint8   // by 8 elements
}

// GridFitter is the signature of superblock, for which there may be a vector
// version.
type GridFitter func(p *GridSearch, r *GridFit, x, importance []float32) float32

var GridFits = sync.Pool{New: func() any { return new(GridFit) }}

// GridGroups is the work of one sub-block: the codes of its groups, and whether
// rounding hit a point of the codebook.
type GridGroups struct {
	Codes  [MaxGroups]uint16
	OnGrid [MaxGroups]bool
	failed bool // no neighbour had a finite error, at any time
}

// Superblock fits the 256 elements x and returns the largest scale. importance
// is nil or of the same length. The lists of the codebook must be loaded.
func (p *GridSearch) Superblock(r *GridFit, x, importance []float32) float32 {
	var yArray, wArray, vArray [search.MaxLen]float32
	var free [search.MaxLen]uint8 // levels of the first fit, not needed
	y, w, v := yArray[:p.Size], wArray[:p.Size], vArray[:p.Size]
	s := float32(float32(p.SumFactor*arith.SumSquares(x)) / pack.QK_K)
	groups := p.Size / p.Cb.Dim
	for j := range len(x) / p.Size {
		sub, signs := x[p.Size*j:][:p.Size], r.Signs[p.Size/8*j:][:p.Size/8]
		switch {
		case importance != nil:
			arith.ImportanceWeights(w, sub, importance[p.Size*j:][:p.Size], s)
		case p.PlainFactor == 0:
			arith.SquareWeights(w, sub)
		default:
			for i, e := range sub {
				w[i] = float32(p.PlainFactor*s) + float32(e*e)
			}
		}
		for i, e := range w {
			v[i] = arith.Sqrt(e)
		}
		for g := range signs {
			if p.EvenSigns {
				signs[g] = EvenSigns(y[8*g:][:8], sub[8*g:][:8], w[8*g:][:8])
			} else {
				signs[g] = SplitSigns(y[8*g:][:8], sub[8*g:][:8])
			}
		}
		codes := r.Codes[groups*j:][:groups]
		mx := Max(y)
		scale := mx / p.Top
		r.Zero[j] = mx < p.Limit
		if p.FitFirst && !r.Zero[j] {
			scale = search.Pos(int32(p.Top)>>1+2, y, w, free[:p.Size])
			mx = scale * 3
			r.Zero[j] = mx <= 0
		}
		if r.Zero[j] {
			r.Scales[j] = 0
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
		r.Scales[j] = scale
	}
	return Max(r.Scales[:len(x)/p.Size])
}

// search sets codes to those of the groups of y and returns the scale. w are the weights of the fit, v their roots,
// which weigh the choice among neighbours. mx is the value at which candidates put the top level; scale is returned if
// no candidate has a weighted fit. The scale is negative only if y is mostly so, and +Inf if the errors overflow.
func (p *GridSearch) search(y, w, v []float32, mx, scale float32, codes []uint16) float32 {
	var best, trial GridGroups
	var values [8]float32
	groups := len(codes)
	for g := range groups {
		best.OnGrid[g] = !p.OffGrid
	}
	var bestFit float32
	for t := -p.Steps; t <= p.Steps; t++ {
		id := (p.Top + float32(float32(t)*p.Step)) / mx
		p.setValues(&values, 1/id)
		for g := range groups {
			p.round(&trial, g, y, v, id, &values)
		}
		a, b := p.Sums(&trial, y, w)
		if b > 0 && a*a > bestFit*b {
			scale = a / b
			bestFit = scale * a
			best = trial
		}
	}
	best.failed = trial.failed // by any candidate
	if scale > 0 {
		refit, all := p.Refit == RefitAlways, p.Refit != RefitOffGrid
		for g := range groups {
			refit = refit || !best.OnGrid[g]
		}
		if refit {
			p.setValues(&values, scale)
			id := 1 / scale
			for g := range groups {
				if all || !best.OnGrid[g] {
					p.round(&best, g, y, v, id, &values)
				}
			}
			if a, b := p.Sums(&best, y, w); b > 0 {
				scale = a / b
			}
		}
	}
	if best.failed {
		scale = float32(math.Inf(1))
	}
	copy(codes, best.Codes[:])
	return scale
}

// setValues sets values to the values of the levels with that scale.
func (p *GridSearch) setValues(values *[8]float32, scale float32) {
	for l := range values {
		values[l] = float32(scale * float32(2*l+1))
	}
}

// round chooses the point of group g: the levels nearest to (y*id - 1)/2 (half to
// even) or, if they are none, the neighbour whose values fit y best.
func (p *GridSearch) round(t *GridGroups, g int, y, v []float32, id float32, values *[8]float32) {
	cb := p.Cb
	y, v = y[g*cb.Dim:][:cb.Dim], v[g*cb.Dim:][:cb.Dim]
	top := int32(p.Top) >> 1
	var code uint16
	for i, e := range y {
		l := min(max(arith.RoundEven(0.5*(float32(id*e)-1)), 0), top)
		code |= uint16(l) << (i * cb.Bits)
	}
	list := cb.List(code)
	t.OnGrid[g] = len(list) == 0
	if len(list) > 0 {
		var c Costs
		c.Set(y, v, values[:top+1])
		var ok bool
		if code, ok = cb.Nearest(list, &c); !ok {
			t.failed = true
		}
	}
	t.Codes[g] = code
}

// Sums returns sum(w*y*q) and sum(w*q*q), q = 2*l + 1.
func (p *GridSearch) Sums(t *GridGroups, y, w []float32) (a, b float32) {
	dim, bits := p.Cb.Dim, p.Cb.Bits
	mask := uint16(1)<<bits - 1
	for g := 0; len(y) > 0; g++ {
		code, w1 := t.Codes[g], w[:dim]
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

// SplitSigns sets y to the magnitudes of x and returns the sign bits, bit i for a
// negative x[i]. There are 8 elements.
func SplitSigns(y, x []float32) (signs uint8) {
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

// EvenSigns is SplitSigns for the types that store 7 of the 8 sign bits: to make
// the number of set bits even, it may flip the element that costs least (the
// first of smallest w*x*x), which leaves its y negative.
func EvenSigns(y, x, w []float32) (signs uint8) {
	signs = SplitSigns(y, x)
	if signs == Signs7[signs&127] {
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

// Max returns the largest element of x, at least 0.
func Max(x []float32) (m float32) {
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// ScaleCode returns the code c of 0..levels for which d*(2*c + 1) is nearest to
// s, id being 1/d.
func ScaleCode(levels int32, id, s float32) uint8 {
	return uint8(min(max(arith.RoundEven(0.5*(float32(id*s)-1)), 0), levels))
}

// PackScaleCodes codes pairs of scales in 4 bits each, as ScaleCode does, the
// first of a pair in the low half of its byte.
func PackScaleCodes(dst []byte, id float32, scales []float32) {
	scales = scales[:2*len(dst)]
	for j := range dst {
		dst[j] = ScaleCode(15, id, scales[2*j]) | ScaleCode(15, id, scales[2*j+1])<<4
	}
}

// DecodeGroup8 decodes 8 elements from their levels and signs; values are those
// of the levels.
func DecodeGroup8(y []float32, code uint16, signs uint8, values *[4]float32) {
	for i := range y[:8] {
		v := values[code>>(2*i)&3]
		y[i] = math.Float32frombits(math.Float32bits(v) ^ uint32(signs>>i&1)<<31)
	}
}

// DecodeGroup4 decodes 4 elements; their signs are the low 4 bits.
func DecodeGroup4(y []float32, code uint16, signs uint8, values *[8]float32) {
	for i := range y[:4] {
		v := values[code>>(3*i)&7]
		y[i] = math.Float32frombits(math.Float32bits(v) ^ uint32(signs>>i&1)<<31)
	}
}

// ValuesIQ2 returns the values of the levels of the IQ2 types for a scale code.
func ValuesIQ2(d float32, code uint8) (values [4]float32) {
	d = d * (0.5 + float32(code)) * 0.25
	for l, q := range LevelsIQ2 {
		values[l] = d * q
	}
	return values
}
