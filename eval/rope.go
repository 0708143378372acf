package eval

import (
	"math"

	"ggforge/internal/kernel/vecmath"
)

// RoPE is the pairing of the values that rotary position embeddings rotate.
type RoPE int

const (
	RoPENone        RoPE = iota
	RoPEInterleaved      // value 2i with value 2i+1
	RoPENeoX             // value i with value i + n/2, n being the rotated dimensions
)

// rotation is the parameters of RoPE: it rotates pair i of position p by scale * p * base^(-2i/dims). With YaRN only
// slow pairs are scaled, and all are multiplied by magnitude.
type rotation struct {
	dims               int // rotated values of a head
	base               float64
	scale              float32 // 1/factor
	magnitude          float32 // of rotated values
	yarn               bool
	original           int // context of the training, for YaRN
	betaFast, betaSlow float64
	multiplier         float32 // yarn_log_multiplier
	fixed              []bool  // pairs that are not rotated, or nil
}

// rope reads the keys of a rotation.
func (k *keys) rope(dims int, base float64) rotation {
	r := rotation{dims: dims, base: k.Float("rope.freq_base", base), scale: 1}
	r.original = k.Size("rope.scaling.original_context_length", k.Size("context_length", 0))
	factor := float32(k.Float("rope.scaling.factor", 0))
	switch kind := k.Text("rope.scaling.type"); kind {
	case "", "none":
		if factor == 0 || kind == "none" {
			factor = 1
		}
	case "linear", "longrope": // of the latter the factors are a tensor
	case "yarn":
		r.yarn = true
	default:
		k.fail(errUnsupported, "%q is %q, want none, linear, longrope or yarn", k.Arch+".rope.scaling.type", kind)
	}
	if factor == 0 {
		factor = 1
	}
	r.scale = 1 / factor
	if alpha := k.Float("rope.scaling.alpha", 0); alpha != 0 {
		r.base *= vecmath.Pow(alpha, float64(dims)/float64(dims-2))
	}
	r.betaFast, r.betaSlow = k.Float("rope.scaling.yarn_beta_fast", 32), k.Float("rope.scaling.yarn_beta_slow", 1)
	k.Float("rope.scaling.yarn_ext_factor", 1)
	if r.yarn { // it does not count then
		k.Ignore("rope.scaling.yarn_attn_factor")
	}
	extra := float32(k.Float("rope.scaling.yarn_attn_factor", 1))
	r.multiplier = float32(k.Float("rope.scaling.yarn_log_multiplier", 0))
	graph := lookup(k.Arch)
	if graph.YarnLogMultiplierIsTenth {
		r.multiplier /= 0.1
	}
	if r.magnitude = extra; r.yarn {
		log := float32(vecmath.Log(float64(1 / r.scale)))
		scale := func(m float32) float32 {
			if 1/r.scale <= 1 {
				return 1
			}
			return float32(float32(0.1*m)*log) + 1
		}
		r.magnitude = scale(1)
		if all := r.multiplier; all != 0 {
			one := float32(1)
			if graph.MScaleEqualsAllDim && all != 1 {
				one = all
			}
			r.magnitude = scale(one) / scale(all)
		}
		// ggml_rope multiplies by the same factor, which llama.cpp divides out before
		r.magnitude *= 1 / (1 + float32(0.1*log))
		r.magnitude *= 1 + float32(0.1*log)
	}
	r.magnitude *= float32(k.Float("rope.scaling.attn_factor", 1))
	return r
}

// fixedPairs returns the pairs of the fourth M-RoPE section, whose position is 0 in a text; the other three sections
// have the position of the token. Pairs of a section are neighbours, or if interleaved those of the first three
// alternate. nil is for none.
func (k *keys) fixedPairs(pairs int, interleaved bool) []bool {
	if !k.Has("rope.dimension_sections") {
		return nil
	}
	s := k.RequiredSizes("rope.dimension_sections", 4)
	all := s[0] + s[1] + s[2] + s[3]
	if all == 0 {
		return nil
	}
	list := make([]bool, pairs)
	for i := range list {
		if n := i % all; interleaved {
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
	low, high := r.yarnRange()
	for pos := range n {
		theta := float32(pos)
		for i := range half {
			whole := theta
			if factors != nil {
				whole /= factors[i]
			}
			t := r.scale * whole
			if r.yarn {
				ramp := 1 - min(1, max(0, (float32(i)-low)/max(0.001, high-low)))
				t = float32(t*(1-ramp)) + float32(whole*ramp)
			}
			if r.fixed != nil && r.fixed[i] {
				t = 0
			}
			sin, cos := vecmath.SinCos(float64(t))
			table = append(table, float32(cos)*r.magnitude, float32(sin)*r.magnitude)
			theta *= step
		}
	}
	return table
}

// yarnRange returns the pairs between which YaRN goes from the trained frequencies to scaled ones.
func (r rotation) yarnRange() (low, high float32) {
	if !r.yarn {
		return 0, 0
	}
	pair := func(turns float64) float32 {
		n := float32(r.dims)
		return n * float32(
			vecmath.Log(float64(float32(r.original)/float32(float32(turns)*2*float32(math.Pi))))) / (2 * float32(
			vecmath.Log(float64(float32(r.base)))))
	}
	low = float32(math.Floor(float64(pair(r.betaFast))))
	high = float32(math.Ceil(float64(pair(r.betaSlow))))
	return max(0, low), min(float32(r.dims-1), high)
}

// applyRoPE rotates the heads of one token, each of size values, in models with RoPE.
func (p *params) applyRoPE(x []float32, size int, table []float32) {
	half := len(table) / 2
	apart, next := 1, 2
	if p.ropeStyle == RoPENone {
		return
	}
	if p.ropeStyle == RoPENeoX {
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
