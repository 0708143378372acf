package eval

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/io/mmap"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

// experts is a mixture of experts.
type experts struct {
	router     *linear
	routerBias []float32 // of the probabilities, for the choice only; or nil
	// the norm of the experts' inputs, and factors of the router's, which are normalized without weights; nil for
	// inputs by the branch's norm
	inputs             *norm
	routerScale        []float32
	n, used, ff        int
	gate, up, down     []*linear // one each; gate empty for none, and up twice as high if it has both
	fused              bool      // up has the rows of gate, then its own
	shared             *feedForward
	sharedGate         *linear     // or nil
	score, chosenBy    graph.Score // chosenBy is 0 for score
	normalizeTopK      bool
	scale              float32
	groups, groupsUsed int
	act                vecmath.Function
	activation         ffnActivation // in place of act, or nil
	earlyRouter        bool          // the router reads the stream before the layer
	width              int           // of the inputs and outputs of experts
	projection         *lowRank      // to that width and back, nil if it is the stream's
	projectionNorm     *norm         // of what is projected back, or nil
	halved             bool          // the sum with the shared expert is halved
	perGroup           *groupExperts // further experts of groups, or nil
	weighInputs        bool          // inputs are weighed; experts are chosen by the logits of the router
	table              []int32       // the experts of each token; nil where they are chosen
}

var _ = operation(newExperts)

// newExperts returns the experts of the layer.
func newExperts(b *builder, of graph.MoE) mixer {
	p, t := b.p, b.t
	x := &experts{n: b.count("n_expert"), used: b.size("@expert_used_count"), ff: b.size("n_ff_exp"), width: p.width}
	x.act, x.activation = b.activation(of.Experts.Act)
	x.score = graph.Score(b.whole("expert_gating_func", int(of.Router.Score)))
	switch x.score {
	case 0:
		x.score = of.Router.Score
	case graph.Softmax, graph.Sigmoid, graph.SoftmaxOfChosen, graph.SqrtSoftplus:
	default:
		b.fail(errUnsupported, "%q is %d, want 1 to %d", p.arch+".expert_gating_func", x.score, graph.SqrtSoftplus)
	}
	if x.chosenBy = of.Router.ChosenBy; x.chosenBy != 0 && x.chosenBy != graph.Sigmoid {
		b.unsupported("choice of experts", of.Router)
	}
	x.normalizeTopK, x.scale = b.flag("expert_weights_norm", of.Router.TopKNorm),
		float32(b.number("expert_weights_scale", 1))
	if groups, used := b.size("@expert_group_count or 0"), b.size("@expert_group_used_count or 0"); of.Router.Groups {
		x.groups, x.groupsUsed = groups, used
	}
	if x.used < 1 || x.used > x.n || x.groups > 1 && (x.n%x.groups != 0 || x.groupsUsed < 1 ||
		x.groupsUsed > x.groups) {
		t.fail(fault.Broken, "%d of %d experts, %d of %d groups", x.used, x.n, x.groupsUsed, x.groups)
	}
	if of.Experts.Norm != (graph.Norm{}) {
		b.unsupported("a norm in experts,", of.Experts)
	}
	x.router = b.router(of, x.n)
	if of.Router.Bias {
		if x.routerBias = t.vector(b.name("exp_probs_b.bias"), x.n); x.routerBias == nil {
			x.routerBias = t.vector(b.name("exp_probs_b"), x.n)
		}
	}
	shared := of.Experts
	for _, option := range of.With {
		switch option := option.(type) {
		case graph.EarlyRouter:
			x.earlyRouter = true
		case graph.WeighInputs:
			x.weighInputs = true
		case graph.RouterNorm:
			x.inputs = b.norm(option.Experts)
			x.routerScale = t.requiredValues(b.name("ffn_gate_inp.scale"), p.width)
		case graph.SharedFFN:
			shared = option.FFN
		case graph.HalvedSum:
			x.halved = true
		case graph.TokenTable:
			x.table = b.tokenTable(x)
		case graph.GroupExperts:
			x.newGroups(b, of.Experts)
		case graph.LatentExperts:
			name := b.name(option.Name())
			if down := t.all[name+"down.weight"]; down != nil && len(down.NE) == 2 {
				x.width = int(min(down.NE[1], maxSize))
				x.projection = &lowRank{in: t.requiredLinear(name+"down", p.width, x.width),
					out: t.requiredLinear(name+"up", x.width, p.width)}
				if option.Routed {
					x.projectionNorm = t.norm(name+"norm", x.width)
				}
			}
		default:
			b.unsupported("option of experts", option)
		}
	}
	gated := of.Experts.Gate == graph.Gated
	if x.fused = gated && t.all[b.name("ffn_gate_up_exps.weight")] != nil; x.fused {
		x.up = t.stack(b.name("ffn_gate_up_exps"), x.width, 2*x.ff, x.n)
	} else {
		x.up = t.stack(b.name("ffn_up_exps"), x.width, x.ff, x.n)
		if gated {
			x.gate = t.stack(b.name("ffn_gate_exps"), x.width, x.ff, x.n)
		}
	}
	x.down = t.stack(b.name("ffn_down_exps"), x.ff, x.width, x.n)
	for _, l := range slices.Concat(x.up, x.gate, x.down) {
		l.routed = true
	}
	if of.Shared == graph.NoShared || of.Shared == graph.MayShared && t.all[b.name("ffn_down_shexp.weight")] == nil {
		return x
	}
	x.shared = b.feedForward(shared, "_shexp", p.width, b.size("n_ff_shexp"))
	if of.Shared == graph.GatedShared {
		if w := t.required(b.name("ffn_gate_inp_shexp.weight"), p.width); w != nil {
			x.sharedGate = &linear{name: w.Name, w: t.weights(w, 0, 1)}
		}
	}
	return x
}

// tokenTable returns the experts of each token.
func (b *builder) tokenTable(x *experts) []int32 {
	name := b.name("ffn_gate_tid2eid.weight")
	t := b.t.all[name]
	switch want := []int64{int64(x.used), int64(b.p.vocab)}; {
	case t == nil:
		b.fail(fault.Broken, "no tensor %q", name)
	case t.Type != gguf.TypeI32 || !slices.Equal(t.NE, want):
		b.fail(fault.Broken, "tensor %q is %v of type %v, want %v of type %v", name, t.NE, t.Type, want, gguf.TypeI32)
	}
	b.t.used[name] = true
	list := make([]int32, 0, t.Elements())
	if err := mmap.Guard(name, func() error {
		raw, err := t.Source.Raw(new([]byte), 0, t.NE[1])
		for ; err == nil && len(raw) >= 4; raw = raw[4:] {
			e := int32(binary.LittleEndian.Uint32(raw))
			if e < 0 || int(e) >= x.n {
				return fault.Errorf(fault.Broken, "value %d is expert %d, want 0 to %d", len(list), e, x.n-1)
			}
			list = append(list, e)
		}
		return err
	}); err != nil {
		b.fail(fault.Broken, "tensor %q: %w", name, err)
	}
	return list
}

// router returns the router. The scale of one with a norm is of its inputs.
func (b *builder) router(of graph.MoE, n int) *linear {
	name := b.name("ffn_gate_inp")
	if slices.ContainsFunc(of.With, func(o graph.MoEOption) bool { _, ok := o.(graph.RouterNorm); return ok }) {
		x := b.t.required(name+".weight", b.p.width, n)
		return &linear{name: x.Name, w: b.t.weights(x, 0, n)}
	}
	return b.t.requiredLinear(name, b.p.width, n)
}

// stack returns the layers of NAME.weight, NAME.scale and NAME.bias, one for each of n matrices.
func (t *tensors) stack(name string, in, out, n int) []*linear {
	x := t.required(name+".weight", in, out, n)
	if x == nil {
		return nil
	}
	var bias []float32
	if b := t.get(name+".bias", out, n); b != nil {
		bias = make([]float32, out*n)
		if err := decode(b, bias, new([]byte), 0, int64(n)); err != nil {
			t.fail(fault.Broken, "tensor %q: %w", b.Name, err)
		}
	}
	list, scales := make([]*linear, n), t.scales(name, n)
	for e := range list {
		list[e] = &linear{name: x.Name, matrix: e, of: n, w: t.weights(x, e*out, out), fold: t.folds.inputs(x.Name, in)}
		if bias != nil {
			list[e].bias = bias[e*out:][:out]
		}
		if scales != nil {
			list[e].scale = &scales[e]
		}
	}
	return list
}

// mix is not called: steps with experts run for all tokens at once (addExperts).
func (x *experts) mix(*stream, []float32, []float32, int, bool) error {
	return fault.Errorf(fault.Unsupported, "experts for some tokens at a time")
}

// choice is an expert of a token and its weight.
type choice struct {
	expert int32
	weight float32
}

// choose sets the experts of a token by the router's outputs, which it overwrites. With a table the experts are there
// already.
func (x *experts) choose(to []choice, logits []float32) error {
	by := slices.Clone(logits)
	switch x.score {
	case graph.Softmax:
		most, _ := vecmath.Max(logits)
		for i := range logits {
			logits[i] -= most
		}
		vecmath.ExpOf.Apply(logits, logits)
		for i, v := range by {
			if d := v - most; logits[i] == 0 && d > -110 { // it weighs nothing, but may be the next to be chosen
				logits[i] = float32(vecmath.Exp64(float64(d)))
			}
		}
		vecmath.Scale(logits, logits, float32(1/vecmath.Sum(logits)))
	case graph.Sigmoid:
		vecmath.SigmoidOf.Apply(logits, logits)
	case graph.SqrtSoftplus:
		vecmath.SoftplusOf.Apply(logits, logits)
		for i, v := range logits {
			logits[i] = float32(math.Sqrt(float64(v)))
		}
	}
	if _, ok := vecmath.Max(logits); !ok {
		return fault.Errorf(fault.Broken, "the router's output is not a number")
	}
	switch {
	case x.chosenBy == graph.Sigmoid:
		vecmath.SigmoidOf.Apply(by, by)
	case !x.weighInputs:
		copy(by, logits)
	}
	if x.routerBias != nil {
		vecmath.Add(by, x.routerBias)
	}
	x.maskGroups(by)
	for i := range to {
		if x.table != nil {
			to[i].weight = logits[to[i].expert]
			continue
		}
		best := 0
		for e, v := range by {
			if v > by[best] {
				best = e
			}
		}
		to[i] = choice{int32(best), logits[best]}
		by[best] = float32(math.Inf(-1))
	}
	if x.score == graph.SoftmaxOfChosen {
		w := make([]float32, len(to))
		for i, c := range to {
			w[i] = c.weight
		}
		softmax(w)
		for i := range to {
			to[i].weight = w[i]
		}
	}
	if x.normalizeTopK {
		var sum float64
		for _, c := range to {
			sum += float64(c.weight)
		}
		f := max(float32(sum), minWeightSum)
		for i := range to {
			to[i].weight /= f
		}
	}
	if x.scale != 0 && x.scale != 1 {
		for i := range to {
			to[i].weight *= x.scale
		}
	}
	return nil
}

// minWeightSum is the least that weights are divided by, the smallest normal number of 16 bits.
const minWeightSum = 6.103515625e-5

// softmax makes weights of the outputs for the experts that were chosen; the largest comes
// first.
func softmax(x []float32) {
	most := x[0]
	var sum float64
	for i, v := range x {
		x[i] = vecmath.Exp(v - most)
		sum += float64(x[i])
	}
	for i := range x {
		x[i] *= float32(1 / sum)
	}
}

// maskGroups leaves the groups of experts whose two best have the largest sums.
func (x *experts) maskGroups(by []float32) {
	if x.groups <= 1 {
		return
	}
	size := x.n / x.groups
	sums := make([]float32, x.groups)
	for g := range sums {
		sorted := slices.Clone(by[g*size:][:size])
		slices.SortFunc(sorted, func(a, b float32) int {
			if a > b {
				return -1
			}
			return 1
		})
		sums[g] = sorted[0]
		if size > 1 {
			sums[g] += sorted[1]
		}
	}
	for range x.groups - x.groupsUsed {
		worst := -1
		for g, v := range sums {
			if !math.IsInf(float64(v), 1) && (worst < 0 || v <= sums[worst]) {
				worst = g
			}
		}
		sums[worst] = float32(math.Inf(1))
		for i := range by[worst*size:][:size] {
			by[worst*size+i] = float32(math.Inf(-1))
		}
	}
}

// addExperts is residual.forward for all tokens of runs, in a step that has experts.
func (s *stream) addExperts(r *residual, runs []*Run, wanted bool) error {
	s.tokensOfExperts(runs, wanted)
	outputs := make([][]float32, len(r.branches))
	for i := range r.branches {
		b := &r.branches[i]
		compute := func() (err error) {
			defer s.read(r, runs)()
			outputs[i], err = s.outputs(b.pre, b.part, runs, wanted)
			return err
		}
		if err := compute(); err != nil {
			return err
		}
		if err := s.requireFinite(outputs[i], compute); err != nil {
			return err
		}
		s.routerLogits = s.routerLogits[:0]
		if len(r.branches) > 1 {
			outputs[i] = slices.Clone(outputs[i])
		}
	}
	for i := range r.branches {
		b := &r.branches[i]
		if err := s.eachState(s.h, outputs[i], func(h, y []float32) { s.addBranch(b, h, y) }); err != nil {
			return err
		}
	}
	return nil
}

// tokensOfExperts sets the tokens that experts run for: all of runs, or the wanted ones.
func (s *stream) tokensOfExperts(runs []*Run, wanted bool) {
	s.expertTokens = s.expertTokens[:0]
	for _, r := range runs {
		for t, id := range r.Tokens {
			if !wanted || t%r.Chunk >= r.First {
				s.expertTokens = append(s.expertTokens, id)
			}
		}
	}
}

// outputs returns the outputs of a part for all tokens of runs, which read the stream through a norm, or nil. They are
// valid until the next call.
func (s *stream) outputs(pre *norm, part mixer, runs []*Run, wanted bool) ([]float32, error) {
	width := s.m.p.width
	switch p := part.(type) {
	case *experts:
		return s.expertOutputs(&branch{pre: pre, part: p})
	case *normed:
		if p.pre != nil {
			pre = p.pre
		}
		y, err := s.outputs(pre, p.part, runs, wanted)
		if err != nil || p.post == nil {
			return y, err
		}
		return y, s.eachState(y, nil, func(y, _ []float32) { s.norm(p.post, y, y) })
	case *scaled:
		y, err := s.outputs(pre, p.part, runs, wanted)
		if err != nil {
			return nil, err
		}
		return y, s.eachState(y, nil, func(y, _ []float32) { vecmath.Scale(y, y, p.by) })
	case parallelMixers:
		var sum []float32
		for i, x := range p {
			y, err := s.outputs(pre, x, runs, wanted)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				sum = slices.Clone(y)
			} else if err := s.eachState(sum, y, vecmath.Add); err != nil {
				return nil, err
			}
		}
		return sum, nil
	}
	all := buffer.Resize(&s.all, len(s.h))
	return all, s.eachBlock(runs, wanted, func(at, n int) error {
		x, err := s.branchInputs(&branch{pre: pre}, s.h[at*width:][:n*width])
		if err != nil {
			return err
		}
		return part.mix(s, all[at*width:][:n*width], x, n, false)
	})
}

// expertOutputs returns the weighted sum of experts for all tokens, one expert after the other: its
// weights are read once, for all tokens that it was chosen for.
func (s *stream) expertOutputs(b *branch) ([]float32, error) {
	p, x := s.m.p, b.part.(*experts)
	acc := buffer.Resize(&s.acc, len(s.h))
	clear(acc)
	sum, n := acc, len(s.h)/p.width // the weighted outputs of experts
	if x.projection != nil {
		buffer.Resize(&s.latentExperts[0], n*x.width)
		sum = buffer.Resize(&s.latentExperts[1], n*x.width)
		clear(sum)
	}
	var probabilities []float32
	chosen, err := s.route(b, func(from, rows int, in, logits []float32) error {
		if x.perGroup != nil {
			probabilities = append(probabilities, logits[:rows*x.n]...)
		}
		if x.projection != nil {
			if err := s.linear(s.latentExperts[0][from*x.width:n*x.width], x.width, in, rows,
				x.projection.in); err != nil {
				return err
			}
		}
		if x.shared == nil {
			return nil
		}
		return s.shared(x, acc[from*p.width:], in, rows)
	})
	if err != nil {
		return nil, err
	}
	if err := s.experts(x, chosen, func(e int, list []int32) error {
		return s.expert(b, e, list, chosen, sum)
	}); err != nil {
		return nil, err
	}
	if x.halved && x.shared != nil {
		vecmath.Scale(acc, acc, 0.5)
	}
	if x.perGroup != nil {
		return acc, x.perGroup.add(s, x, x.perGroup.choose(x, chosen, probabilities), acc)
	}
	if x.projection == nil {
		return acc, nil
	}
	if x.projectionNorm != nil {
		if err := s.eachRows(n, func(a, b int) {
			a, b = a*x.width, b*x.width
			p.normalize(x.projectionNorm, sum[a:b], sum[a:b], x.width)
		}); err != nil {
			return nil, err
		}
	}
	s.rereads = s.reverse != nil || n > tokensPerBlock
	defer s.dropHeld()
	for from := 0; from < n; from += tokensPerBlock {
		rows := min(tokensPerBlock, n-from)
		y := buffer.Resize(&s.y, rows*p.width)
		if err := s.linear(y, p.width, sum[from*x.width:][:rows*x.width], rows, x.projection.out); err != nil {
			return nil, err
		}
		if err := s.eachRows(rows, func(a, b int) {
			vecmath.Add(acc[(from+a)*p.width:(from+b)*p.width],
				y[a*p.width:b*p.width])
		}); err != nil {
			return nil, err
		}
	}
	return acc, nil
}

// route returns the chosen experts of all tokens, and calls f for some tokens at a time, from one on, with the inputs
// of the experts and the router's outputs as choose leaves them.
func (s *stream) route(b *branch, f func(from, rows int, in, logits []float32) error) ([]choice, error) {
	p, x := s.m.p, b.part.(*experts)
	n := len(s.h) / p.width
	s.rereads = s.reverse != nil || n > tokensPerBlock
	defer s.dropHeld()
	chosen := make([]choice, n*x.used)
	in := buffer.Resize(&s.x, min(n, tokensPerBlock)*p.width)
	for from := 0; from < n; from += tokensPerBlock {
		rows := min(tokensPerBlock, n-from)
		read := func(f func(in, h []float32)) error { return s.eachState(in[:rows*p.width], s.h[from*p.width:], f) }
		logits := buffer.Resize(&s.mid, rows*x.n)
		switch {
		case x.earlyRouter:
			copy(logits, s.routerLogits[from*x.n:])
		case x.routerScale != nil:
			if err := read(func(in, h []float32) { x.routerInputs(s, in, h) }); err != nil {
				return nil, err
			}
			if err := s.linear(logits, x.n, in[:rows*p.width], rows, x.router); err != nil {
				return nil, err
			}
		}
		if err := read(func(in, h []float32) { s.norm(x.norm(b), in, h) }); err != nil {
			return nil, err
		}
		if !x.earlyRouter && x.routerScale == nil {
			if err := s.linear(logits, x.n, in[:rows*p.width], rows, x.router); err != nil {
				return nil, err
			}
		}
		if err := s.eachRowsErr(rows, func(a, b int) error {
			for t := a; t < b; t++ {
				if x.table != nil {
					for i, e := range x.table[int(s.expertTokens[from+t])*x.used:][:x.used] {
						chosen[(from+t)*x.used+i].expert = e
					}
				}
				if err := x.choose(chosen[(from+t)*x.used:][:x.used], logits[t*x.n:][:x.n]); err != nil {
					return fmt.Errorf("tensor %q: %w", x.router.name, err)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
		if err := f(from, rows, in[:rows*p.width], logits); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

// norm returns the norm of the inputs of experts.
func (x *experts) norm(b *branch) *norm {
	if x.inputs != nil {
		return x.inputs
	}
	return b.pre
}

// routerInputs sets dst to the inputs of a router with a norm of its own.
func (x *experts) routerInputs(s *stream, dst, h []float32) {
	width := s.m.p.width
	s.norm(&norm{}, dst, h)
	vecmath.Scale(dst, dst, float32(1/math.Sqrt(float64(width))))
	for ; len(dst) > 0; dst = dst[width:] {
		vecmath.Mul(dst[:width], x.routerScale)
	}
}

// assignments returns, for each expert, the places in chosen of the tokens that it was chosen for.
func (x *experts) assignments(chosen []choice) [][]int32 {
	takers := make([][]int32, x.n)
	for i, c := range chosen {
		takers[c.expert] = append(takers[c.expert], int32(i))
	}
	return takers
}

// experts calls f for each expert, with the places in chosen of those tokens that it was
// chosen for, some at a time.
func (s *stream) experts(x *experts, chosen []choice, f func(e int, list []int32) error) error {
	for e, list := range x.assignments(chosen) {
		for s.rereads = s.reverse != nil || len(list) > tokensPerBlock; len(list) > 0; {
			rows := min(tokensPerBlock, len(list))
			if err := f(e, list[:rows]); err != nil {
				return err
			}
			list = list[rows:]
		}
		s.dropHeld()
	}
	return nil
}

// expert returns an expert.
func (x *experts) expert(e int) *feedForward {
	f := &feedForward{up: x.up[e], down: x.down[e], ff: x.ff, fused: x.fused, act: x.act, activation: x.activation}
	if x.gate != nil {
		f.gate = x.gate[e]
	}
	return f
}

// routeEarly adds the router's outputs for n tokens of the stream to those before them; of the
// last layer only for those that are wanted.
func (s *stream) routeEarly(x *experts, h []float32, n int, last bool) error {
	at := len(s.routerLogits)
	s.routerLogits = slices.Grow(s.routerLogits, n*x.n)[:at+n*x.n]
	if err := s.linear(s.routerLogits[at:], x.n, h, n, x.router); err != nil || !last {
		return err
	}
	s.routerLogits = s.routerLogits[:at+s.keepPredicting(s.routerLogits[at:], x.n, n)*x.n]
	return nil
}

// shared sets acc to the output of the part that all tokens take.
func (s *stream) shared(x *experts, acc, in []float32, rows int) error {
	p := s.m.p
	y := buffer.Resize(&s.y, rows*p.width)
	if err := s.feedForward(x.shared, y, in[:rows*p.width], rows); err != nil {
		return err
	}
	var gate []float32
	if x.sharedGate != nil {
		gate = make([]float32, rows)
		if err := s.linear(gate, 1, in[:rows*p.width], rows, x.sharedGate); err != nil {
			return err
		}
	}
	return s.eachRows(rows, func(a, b int) {
		for t := a; t < b; t++ {
			row := acc[t*p.width:][:p.width]
			copy(row, y[t*p.width:])
			if gate != nil {
				vecmath.Scale(row, row, vecmath.Sigmoid(gate[t]))
			}
		}
	})
}

// expert adds the weighted output of an expert for some tokens to acc.
func (s *stream) expert(b *branch, e int, list []int32, chosen []choice, acc []float32) error {
	x := b.part.(*experts)
	width := x.width
	rows := len(list)
	in := buffer.Resize(&s.x, rows*width)
	token := func(i int) int { return int(list[i]) / x.used }
	if err := s.eachRows(rows, func(from, to int) {
		for i := from; i < to; i++ {
			row := in[i*width:][:width]
			if x.projection != nil {
				copy(row, s.latentExperts[0][token(i)*width:])
			} else {
				s.norm(x.norm(b), row, s.h[token(i)*width:][:width])
			}
			if x.weighInputs {
				vecmath.Scale(row, row, chosen[list[i]].weight)
			}
		}
	}); err != nil {
		return err
	}
	y := buffer.Resize(&s.y, rows*width)
	if err := s.feedForward(x.expert(e), y, in, rows); err != nil {
		return err
	}
	return s.eachRows(rows, func(a, b int) {
		for i := a; i < b; i++ {
			row := y[i*width:][:width]
			if !x.weighInputs {
				vecmath.Scale(row, row, chosen[list[i]].weight)
			}
			vecmath.Add(acc[token(i)*width:][:width], row)
		}
	})
}
