package eval

import (
	"math"

	"ggforge/internal/kernel/vecmath"
)

// Rope is a way of turning queries and keys by position.
type Rope int

const (
	RopeNone   Rope = iota
	RopePairs       // neighbours are a pair
	RopeHalves      // a pair is half of what is turned apart
)

// rotation says by how much pairs are turned: pair i of position p by p * base^(-2i/dims),
// less by scale. With YaRN (extend is 1) only slow pairs are turned less, and all are
// scaled.
type rotation struct {
	dims       int // values that are turned
	base       float64
	scale      float32 // 1/factor
	attn       float32 // factor of what is turned
	extend     bool
	original   int // context of the training, for YaRN
	fast, slow float64
	multiplier float32 // yarn_log_multiplier
	still      []bool  // pairs that are not turned, or nil
}

// rope reads the keys of a rotation.
func (k *keys) rope(dims int, base float64) rotation {
	r := rotation{dims: dims, base: k.float("rope.freq_base", base), scale: 1}
	r.original = k.size("rope.scaling.original_context_length", k.size("context_length", 0))
	factor := float32(k.float("rope.scaling.factor", 0))
	switch kind := k.text("rope.scaling.type"); kind {
	case "", "none":
		if factor == 0 || kind == "none" {
			factor = 1
		}
	case "linear", "longrope": // of the latter the factors are a tensor
	case "yarn":
		r.extend = true
	default:
		k.fail(errUnsupported, "%q is %q, want none, linear, longrope or yarn", k.arch+".rope.scaling.type", kind)
	}
	if factor == 0 {
		factor = 1
	}
	r.scale = 1 / factor
	if alpha := k.float("rope.scaling.alpha", 0); alpha != 0 {
		r.base *= vecmath.Pow(alpha, float64(dims)/float64(dims-2))
	}
	r.fast, r.slow = k.float("rope.scaling.yarn_beta_fast", 32), k.float("rope.scaling.yarn_beta_slow", 1)
	k.float("rope.scaling.yarn_ext_factor", 1)
	if r.extend { // it does not count then
		k.ignore("rope.scaling.yarn_attn_factor")
	}
	extra := float32(k.float("rope.scaling.yarn_attn_factor", 1))
	r.multiplier = float32(k.float("rope.scaling.yarn_log_multiplier", 0))
	graph := lookup(k.arch)
	if graph.TenthMultiplier {
		r.multiplier /= 0.1
	}
	if r.attn = extra; r.extend {
		log := float32(vecmath.Log(float64(1 / r.scale)))
		scale := func(m float32) float32 {
			if 1/r.scale <= 1 {
				return 1
			}
			return float32(float32(0.1*m)*log) + 1
		}
		r.attn = scale(1)
		if all := r.multiplier; all != 0 {
			one := float32(1)
			if graph.AllMultiplier && all != 1 {
				one = all
			}
			r.attn = scale(one) / scale(all)
		}
		// what turning itself multiplies by is divided out
		r.attn *= 1 / (1 + float32(0.1*log))
		r.attn *= 1 + float32(0.1*log)
	}
	r.attn *= float32(k.float("rope.scaling.attn_factor", 1))
	return r
}

// still returns which pairs are turned by the last of four axes, by the number of pairs of
// each: that of a text is 0 everywhere, and the others are its position. Pairs of an axis
// are neighbours, or those of three axes take turns. nil is for none.
func (k *keys) still(pairs int, turns bool) []bool {
	if !k.has("rope.dimension_sections") {
		return nil
	}
	s := k.sizes("rope.dimension_sections", 4, -1)
	all := s[0] + s[1] + s[2] + s[3]
	if all == 0 {
		return nil
	}
	list := make([]bool, pairs)
	for i := range list {
		if n := i % all; turns {
			list[i] = n >= 3*s[n%3]
		} else {
			list[i] = n >= all-s[3]
		}
	}
	return list
}

// table returns the cosines and sines of n positions, one pair after the other. factors
// divide the angles of pairs; nil for none. The angle of a pair is the product of as many
// float32 factors, as in the reference.
func (r rotation) table(n int, factors []float32) []float32 {
	half := r.dims / 2
	table := make([]float32, 0, n*2*half)
	step := float32(vecmath.Pow(float64(float32(r.base)), float64(-2/float32(r.dims))))
	low, high := r.corrections()
	for pos := range n {
		theta := float32(pos)
		for i := range half {
			whole := theta
			if factors != nil {
				whole /= factors[i]
			}
			t := r.scale * whole
			if r.extend {
				ramp := 1 - min(1, max(0, (float32(i)-low)/max(0.001, high-low)))
				t = float32(t*(1-ramp)) + float32(whole*ramp)
			}
			if r.still != nil && r.still[i] {
				t = 0
			}
			sin, cos := vecmath.SinCos(float64(t))
			table = append(table, float32(cos)*r.attn, float32(sin)*r.attn)
			theta *= step
		}
	}
	return table
}

// corrections returns between which pairs YaRN goes from turning as trained to turning
// less.
func (r rotation) corrections() (low, high float32) {
	if !r.extend {
		return 0, 0
	}
	pair := func(turns float64) float32 {
		n := float32(r.dims)
		return n * float32(
			vecmath.Log(float64(float32(r.original)/float32(float32(turns)*2*float32(math.Pi))))) / (2 * float32(
			vecmath.Log(float64(float32(r.base)))))
	}
	low = float32(math.Floor(float64(pair(r.fast))))
	high = float32(math.Ceil(float64(pair(r.slow))))
	return max(0, low), min(float32(r.dims-1), high)
}

// turn rotates the heads of one token, each of size values, in models that do.
func (p *params) turn(x []float32, size int, table []float32) {
	half := len(table) / 2
	apart, next := 1, 2
	if p.style == RopeNone {
		return
	}
	if p.style == RopeHalves {
		apart, next = half, 1
	}
	for ; len(x) > 0; x = x[size:] {
		for i := range half {
			a, b := &x[i*next], &x[i*next+apart]
			cos, sin := table[2*i], table[2*i+1]
			*a, *b = float32(*a*cos)-float32(*b*sin), float32(*a*sin)+float32(*b*cos)
		}
	}
}
