package eval

import (
	"math"

	"ggforge/arch/expr"
	"ggforge/arch/graph"
	"ggforge/gguf"
	"ggforge/internal/kernel/vecmath"
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
	interleaved        bool    // pair i is values 2i and 2i+1, not i and i + dims/2
	// divisors of the frequencies of pairs; long and short are for texts beyond the context of the training, and for
	// others. Or nil
	factors, long, short []float32
}

// ropeKey identifies a RoPE in the layers that have it.
type ropeKey struct {
	graph.RoPE
	dims int
	base float64
}

// rope returns the number of the RoPE of heads of size values, among Model.ropes.
func (b *builder) rope(r graph.RoPE, size int) int {
	dims := b.size("n_rot")
	switch {
	case dims < 1 || dims > size:
		b.fail(errBroken, "RoPE rotates %d of the %d values of a key", dims, size)
	case dims%2 != 0:
		b.fail(errUnsupported, "RoPE rotates %d values of a key, want an even number", dims)
	}
	key := ropeKey{r, dims, b.float(r.Theta())}
	if i, ok := b.ropes[key]; ok {
		return i
	}
	of := rotation{dims: dims, base: key.base, scale: 1, magnitude: 1}
	if r.Scaling != graph.NoScale {
		of = b.ropeScaling(dims, key.base, r.Scaling)
		divisors := func(name string) []float32 {
			v := b.t.vector(name+".weight", b.size("n_freqs"))
			return v[:min(len(v), dims/2)]
		}
		of.factors, of.long, of.short = divisors("rope_freqs"), divisors("rope_factors_long"), divisors("rope_factors_short")
	}
	switch r.Pairs {
	case graph.NeoX:
	case graph.Interleaved: // models with M-RoPE have the other
		of.interleaved = !b.has("rope.dimension_sections")
	default:
		b.unsupported("pairs of", r)
	}
	of.fixed = b.fixedPairs(dims/2, r.Sections == graph.TakingTurn)
	b.ropes[key] = len(b.m.ropes)
	b.m.ropes = append(b.m.ropes, of)
	return b.ropes[key]
}

// ropeScaling reads the keys of RoPE scaling.
func (b *builder) ropeScaling(dims int, base float64, scaling graph.Scaling) rotation {
	r := rotation{dims: dims, base: base, scale: 1}
	r.original = b.size("@rope.scaling.original_context_length or @context_length or 0")
	factor := float32(b.number("rope.scaling.factor", 0))
	switch kind := b.Text("rope.scaling.type"); kind {
	case "", "none":
		if factor == 0 || kind == "none" {
			factor = 1
		}
	case "linear", "longrope": // of the latter the factors are a tensor
	case "yarn":
		r.yarn = true
	default:
		b.fail(errUnsupported, "%q is %q, want none, linear, longrope or yarn", b.p.arch+".rope.scaling.type", kind)
	}
	if factor == 0 {
		factor = 1
	}
	r.scale = 1 / factor
	if alpha := b.number("rope.scaling.alpha", 0); alpha != 0 {
		r.base *= vecmath.Pow(alpha, float64(dims)/float64(dims-2))
	}
	r.betaFast, r.betaSlow = b.number("rope.scaling.yarn_beta_fast", 32), b.number("rope.scaling.yarn_beta_slow", 1)
	b.number("rope.scaling.yarn_ext_factor", 1)
	if r.yarn { // it does not count then
		b.harmless["rope.scaling.yarn_attn_factor"] = true
	}
	extra := float32(b.number("rope.scaling.yarn_attn_factor", 1))
	r.multiplier = float32(b.number("rope.scaling.yarn_log_multiplier", 0))
	if scaling == graph.MScale || scaling == graph.MScaleEq {
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
			if scaling == graph.MScaleEq && all != 1 {
				one = all
			}
			r.magnitude = scale(one) / scale(all)
		}
		// ggml_rope multiplies by the same factor, which llama.cpp divides out before
		r.magnitude *= 1 / (1 + float32(0.1*log))
		r.magnitude *= 1 + float32(0.1*log)
	}
	r.magnitude *= float32(b.number("rope.scaling.attn_factor", 1))
	if scaling == graph.UnitScale {
		r.magnitude = 1
	}
	return r
}

// fixedPairs returns the pairs of the fourth M-RoPE section, whose position is 0 in a text; the other three sections
// have the position of the token. Pairs of a section are neighbours, or if interleaved those of the first three
// alternate. nil is for none.
func (b *builder) fixedPairs(pairs int, interleaved bool) []bool {
	const sections = "rope.dimension_sections"
	if !b.has(sections) {
		return nil
	}
	if n, _ := b.Value("#" + sections); n != expr.Int(4) {
		b.fail(errBroken, "%q has no list of 4 numbers", gguf.ArchKey(b.p.arch, sections))
	}
	var s [4]int
	for i := range s {
		s[i] = int(b.d.At(i).Size("@" + sections))
	}
	b.check()
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

// table returns the cosines and sines of n positions, one pair after the other. The angle of a pair is the product of
// as many float32 factors, as in the reference.
func (r *rotation) table(n int) []float32 {
	half, factors := r.dims/2, r.factors
	if r.short != nil {
		if factors = r.short; n > r.original {
			factors = r.long
		}
	}
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
func (r *rotation) yarnRange() (low, high float32) {
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

// apply rotates the heads of one token, each of size values, by the token's row of the table.
func (r *rotation) apply(x []float32, size int, angles []float32) {
	half := len(angles) / 2
	apart, next := half, 1
	if r.interleaved {
		apart, next = 1, 2
	}
	for ; len(x) > 0; x = x[size:] {
		for i := range half {
			a, b := &x[i*next], &x[i*next+apart]
			cos, sin := angles[2*i], angles[2*i+1]
			*a, *b = float32(*a*cos)-float32(*b*sin), float32(*a*sin)+float32(*b*cos)
		}
	}
}

// back turns d from the gradient w.r.t. the outputs of apply into the gradient w.r.t. its inputs.
func (r *rotation) back(d []float32, size int, angles []float32) {
	half := len(angles) / 2
	apart, next := half, 1
	if r.interleaved {
		apart, next = 1, 2
	}
	for ; len(d) > 0; d = d[size:] {
		for i := range half {
			a, b := &d[i*next], &d[i*next+apart]
			cos, sin := angles[2*i], angles[2*i+1]
			*a, *b = float32(*a*cos)+float32(*b*sin), float32(*b*cos)-float32(*a*sin)
		}
	}
}
