package eval

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ggforge/arch/graph"
	"ggforge/eval/internal/window"
	"ggforge/internal/kernel/vecmath"
)

// Steps on queries, keys and values.
const (
	stepClamp       = "clamp"
	stepQKNorm      = "QK-norm"
	stepUnitNorm    = "QK-norm without weights"
	stepRoPE        = "RoPE"
	stepValueNorm   = "norm of values"
	stepTemperature = "temperature"
)

// evaluatorAttention is the evaluator's attention of a layer.
type evaluatorAttention struct {
	*heads
	steps       []string
	rope        *rotation // nil for no RoPE
	scaling     string    // of RoPE, see scalings
	divided     bool      // frequencies have the divisors of the file
	clamp       float64
	temperature temperature
	outputScale float32
	gate        bool
}

// scalings are the names of graph.Scaling.
var scalings = map[graph.Scaling]string{graph.ByKeys: "by keys", graph.NoScale: "none", graph.MScale: "mscale",
	graph.MScaleEq: "mscale = mscale_all_dim"}

// evaluatorAttention returns the attention that a mixer is, nil if it is none.
func (c *graphCase) evaluatorAttention(m mixer) *evaluatorAttention {
	p := c.p
	a := &evaluatorAttention{outputScale: 1}
	switch m := m.(type) {
	case *outputGate:
		a = c.evaluatorAttention(m.attention)
		a.gate = true
		return a
	case *gatedQueryAttention:
		return c.evaluatorAttention(&m.attention)
	case *attention:
		a.heads, a.clamp, a.temperature = &m.heads, p.clamp, m.temperature
		norm := ""
		if m.qNorm != nil {
			norm = stepQKNorm
			if m.qNorm.weight == nil {
				norm = stepUnitNorm
			}
		}
		if p.clamp != 0 {
			a.steps = append(a.steps, stepClamp)
		}
		if norm != "" && !p.graph.QKNormAfterRoPE {
			a.steps = append(a.steps, norm)
		}
		if m.usesRoPE {
			a.addRoPE(c, m.swa)
		}
		if norm != "" && p.graph.QKNormAfterRoPE {
			a.steps = append(a.steps, norm)
		}
		if isActive(a.temperature) {
			a.steps = append(a.steps, stepTemperature)
		}
		if scale := m.out.scale; p.graph.AttentionOutputScale && scale != nil {
			a.outputScale = *scale
		}
	case *sharedKVAttention:
		a.heads = &m.heads
		if m.qNorm != nil {
			a.steps = append(a.steps, stepQKNorm)
		}
		a.addRoPE(c, m.swa)
		a.steps = append(a.steps, stepValueNorm)
	case *mla:
		a.heads, a.temperature = &m.heads, p.temperature
		if isActive(a.temperature) {
			a.steps = append(a.steps, stepTemperature)
		}
		a.addRoPE(c, false)
	default:
		return nil
	}
	return a
}

// addRoPE adds the RoPE of sliding-window layers, or of others.
func (a *evaluatorAttention) addRoPE(c *graphCase, swa bool) {
	p := c.p
	if p.ropeStyle == RoPENone {
		return
	}
	a.steps = append(a.steps, stepRoPE)
	a.rope, a.scaling = &p.rope, scalings[graph.ByKeys]
	switch {
	case p.graph.MScaleEqualsAllDim && p.graph.YarnLogMultiplierIsTenth:
		a.scaling = scalings[graph.MScaleEq]
	case p.graph.YarnLogMultiplierIsTenth:
		a.scaling = scalings[graph.MScale]
	}
	if swa {
		a.rope = &p.swaRope
		if p.graph.SWADefaultRoPE || p.graph.SWAUnscaledRoPE {
			a.scaling = scalings[graph.NoScale]
		}
	}
	a.divided = (c.r.ropeFreqs != nil || c.r.ropeLong != nil) && !(swa && p.graph.SWAHeadSizes)
}

func isActive(t temperature) bool { return t.length != 0 && t.scale != 0 }

// compareAttention compares a part with a mixer if they are attention.
func (c *graphCase) compareAttention(s *graph.Scope, p graph.Part, m mixer) {
	a := c.evaluatorAttention(m)
	if a == nil {
		return
	}
	var steps []graph.HeadStep
	var tokens graph.Window
	attendsToAll := false
	switch p := p.(type) {
	case graph.Attention:
		steps, tokens, attendsToAll = p.Steps, p.Window, p.Sees == graph.Both
		same(c, "heads of keys and values", s.Size("n_head_kv"), int64(a.kv))
		same(c, "length of a key", s.Size("n_embd_head_k"), int64(a.keyLen))
		same(c, "length of a value", s.Size("n_embd_head_v"), int64(a.valueLen))
		c.compareScores(s, p, a)
	case graph.MLA:
		steps, tokens = p.Steps, p.Window
	}
	same(c, "heads", s.Size("n_head"), int64(a.n))
	same(c, "bidirectional", attendsToAll || s.Holds("@attention.causal = 0"), a.bidirectional)

	n := int64(0)
	if tokens.Tokens != "" {
		n = s.Size(tokens.Tokens)
	}
	if same(c, "window", n, int64(a.window)) && n > 0 {
		kind := window.Sliding
		switch {
		case a.chunkedWindow:
			kind = window.Chunked
		case a.symmetricWindow:
			kind = window.Symmetric
		}
		shapes := map[graph.WindowShape]window.Kind{graph.SlidingWindow: window.Sliding,
			graph.ChunkedWindow: window.Chunked, graph.SymmetricWindow: window.Symmetric}
		same(c, "shape of the window", shapes[tokens.Shape], kind)
	}
	c.compareSteps(s, steps, a)
}

// compareScores compares what becomes of scores and of outputs of heads.
func (c *graphCase) compareScores(s *graph.Scope, p graph.Attention, a *evaluatorAttention) {
	c.sameFactor("scale of scores", s.Float(p.ScoreScale()), float64(a.scale))
	softCap, alibi, bias, sinks := 0.0, 0.0, false, false
	for _, x := range s.ScoreSteps(p.Scores) {
		switch x := x.(type) {
		case graph.SoftCap:
			softCap = s.Float(x.By)
		case graph.ALiBi:
			alibi = s.Float(x.Max)
		case graph.RelativeBias:
			bias = true
		case graph.Sinks:
			sinks = true
		default:
			c.differ("step on scores", fmt.Sprintf("%T", x), "none")
		}
	}
	c.sameFactor("soft cap of scores", softCap, float64(a.softCap))
	same(c, "ALiBi bias", alibi, c.p.alibi)
	same(c, "ALiBi", alibi != 0, a.alibiSlopes != nil)
	same(c, "relative position bias", bias, a.positionBias != nil)
	same(c, "sinks", sinks, a.sinks != nil)
	gate, scale := false, 1.0
	for _, x := range p.After {
		switch x := x.(type) {
		case graph.OutGate:
			gate = true
		case graph.OutFactor:
			scale *= s.Float(x.By)
		default:
			c.differ("step on outputs", fmt.Sprintf("%T", x), "none")
		}
	}
	same(c, "output gate", gate, a.gate)
	c.sameFactor("scale of the attention output", scale, float64(a.outputScale))
}

// compareSteps compares the steps on queries, keys and values, those that do something.
func (c *graphCase) compareSteps(s *graph.Scope, steps []graph.HeadStep, a *evaluatorAttention) {
	var order []string
	var rope *graph.RoPE
	clamp := 0.0
	factor := func(int64) float32 { return 1 }
	for _, x := range s.HeadSteps(steps) {
		step := ""
		switch x := x.(type) {
		case graph.RoPE:
			step, rope = stepRoPE, &x
		case graph.QKNorm:
			if !x.May || s.Has("attn_q_norm") {
				step = stepQKNorm
			}
		case graph.UnitNorm:
			step = stepUnitNorm
		case graph.ValueNorm:
			step = stepValueNorm
		case graph.Clamp:
			if clamp = s.Float(x.By); clamp != 0 {
				step = stepClamp
			}
		case graph.Temperature:
			factor = func(pos int64) float32 {
				times := math.Floor(s.AtPosition(pos).Float(x.Times))
				return float32(vecmath.Log(times+1)*float64(float32(s.Float(x.Scale))) + 1)
			}
			if factor(1<<20) != 1 {
				step = stepTemperature
			}
		default:
			step = fmt.Sprintf("%T", x)
		}
		if step != "" {
			order = append(order, step)
		}
	}
	same(c, "steps on queries, keys and values", strings.Join(order, ", "), strings.Join(a.steps, ", "))
	c.sameFactor("clamp", clamp, a.clamp)
	for _, pos := range []int64{0, 1, 15, 16, 4095, 8191, 8192, 16383, 100000, 1 << 20} {
		x := []float32{1}
		a.temperature.apply(x, int(pos))
		c.sameFactor("temperature of queries", float64(factor(pos)), float64(x[0]))
	}
	if rope != nil && a.rope != nil {
		c.compareRoPE(s, *rope, a)
	}
}

// compareRoPE compares RoPE of a layer. Keys of scaling are those of the evaluator: the graph has whether they count.
func (c *graphCase) compareRoPE(s *graph.Scope, r graph.RoPE, a *evaluatorAttention) {
	pairs, sections := RoPENeoX, c.k.Has("rope.dimension_sections")
	if r.Pairs == graph.Interleaved && !sections {
		pairs = RoPEInterleaved
	}
	same(c, "pairs of RoPE", pairs, c.p.ropeStyle)
	if sections {
		same(c, "interleaved M-RoPE", r.Sections == graph.TakingTurn, c.p.graph.InterleavedMRoPE)
	}
	same(c, "scaling of RoPE", scalings[r.Scaling], a.scaling)
	if c.r.ropeFreqs != nil || c.r.ropeLong != nil {
		same(c, "divisors of frequencies", r.Scaling != graph.NoScale, a.divided)
	}
	dims := int(s.Size("n_rot"))
	got := rotation{base: s.Float(r.Theta()), scale: 1, magnitude: 1}
	if r.Scaling != graph.NoScale {
		base := got.base
		got = c.p.rope
		if got.base = base; c.k.Has("rope.scaling.alpha") {
			if alpha := c.k.Float("rope.scaling.alpha", 0); alpha != 0 {
				got.base *= vecmath.Pow(alpha, float64(dims)/float64(dims-2))
			}
		}
		got.fixed = c.k.fixedPairs(dims/2, r.Sections == graph.TakingTurn)
	}
	same(c, "rotated dimensions", dims, a.rope.dims)
	c.sameFactor("base of RoPE", got.base, a.rope.base)
	type numbers struct {
		scale, magnitude   float32
		yarn               bool
		original           int
		betaFast, betaSlow float64
		multiplier         float32
	}
	of := func(r rotation) numbers {
		return numbers{r.scale, r.magnitude, r.yarn, r.original, r.betaFast, r.betaSlow, r.multiplier}
	}
	same(c, "numbers of RoPE scaling", of(got), of(*a.rope))
	if !slices.Equal(got.fixed, a.rope.fixed) {
		c.differ("pairs of the fourth M-RoPE section", got.fixed, a.rope.fixed)
	}
}
