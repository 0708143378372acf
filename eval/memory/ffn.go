package memory

import "ggforge/arch/graph"

// ffn adds a feed-forward network; suffix ends the names of its tensors.
func (b *batch) ffn(f graph.FFN, x *result, suffix string) *result {
	var hidden int64
	if down := b.ne("ffn_down" + suffix); len(down) > 0 && down[0] >= 0 {
		hidden = down[0]
	}
	bytes, plain := b.floats(hidden), b.ne("ffn_gate"+suffix) == nil && b.rows("ffn_up"+suffix, 0) == hidden
	var act *result
	switch {
	case f.Gate == graph.NoGate || plain:
		act = b.linear(x, "ffn_up"+suffix, hidden)
		act = b.inPlace(bytes, act)
	case b.ne("ffn_gate"+suffix) != nil:
		act = b.op(bytes, b.linear(x, "ffn_gate"+suffix, hidden), b.linear(x, "ffn_up"+suffix, hidden))
	default: // both in one
		act = b.op(bytes, b.linear(x, "ffn_up"+suffix, 2*hidden))
	}
	if f.Norm.Name != "" {
		act = b.norm(act, graph.Norm{Name: f.Norm.Name + suffix})
	}
	return b.linear(act, "ffn_down"+suffix, b.width())
}

// moe adds a mixture of experts.
func (b *batch) moe(m graph.MoE, x *result) *result {
	e := experts{ffn: m.Experts, suffix: "_exps", width: b.width(), used: b.number("@expert_used_count"),
		hidden: b.scope.Size("n_ff_exp")}
	in, routed, shared := x, x, m.Experts
	groups, halved, normed := false, false, graph.Norm{}
	for _, option := range m.With {
		switch option := option.(type) {
		case graph.EarlyRouter:
			routed = b.input
		case graph.WeighInputs:
			e.weighInputs = true
		case graph.LatentExperts:
			if n := b.rows(option.Name()+"down", 0); n > 0 {
				e.width = n
				in = b.op(b.floats(n), x)
			}
			if option.Routed {
				normed = graph.Norm{Name: option.Name() + "norm"}
			}
		case graph.RouterNorm:
			routed = b.inPlace(x.bytes, b.inPlace(x.bytes, b.bareNorm(x)))
			in = b.norm(x, option.Experts)
		case graph.SharedFFN:
			shared = option.FFN
		case graph.HalvedSum:
			halved = true
		case graph.GroupExperts:
			groups = true
		}
	}
	chosen, weights := b.route(m.Router, routed, e.weighInputs)
	sum := b.routed(e, in, chosen, weights)
	if e.width != b.width() {
		if b.scope.Has(normed.Name) {
			sum = b.norm(sum, normed)
		}
		sum = b.op(b.floats(b.width()), sum)
	}
	b.expand(sum)
	if groups {
		e.suffix, e.hidden = "_chexps", b.number("@expert_chunk_feed_forward_length or n_ff_exp")
		chosen, weights := b.route(m.Router, routed, false)
		chosen = b.op(chosen.bytes, b.inPlace(chosen.bytes, b.op(chosen.bytes, chosen)))
		more := b.routed(e, sum, chosen, weights)
		b.expand(more)
		sum = b.inPlace(sum.bytes, sum, b.inPlace(sum.bytes, more))
	}
	if m.Shared == graph.NoShared || b.ne("ffn_down_shexp") == nil {
		return sum
	}
	one := b.ffn(shared, x, "_shexp")
	if m.Shared == graph.GatedShared {
		gate := b.op(b.floats(1), x)
		one = b.inPlace(one.bytes, one, b.inPlace(gate.bytes, b.op(gate.bytes, gate), gate))
	}
	sum = b.inPlace(sum.bytes, sum, one)
	if halved {
		sum = b.inPlace(sum.bytes, sum)
	}
	return sum
}

// experts are the experts of a layer.
type experts struct {
	ffn                 graph.FFN
	suffix              string // of the names of tensors
	width, hidden, used int64
	weighInputs         bool
}

// routed returns the weighted sum of chosen experts.
func (b *batch) routed(e experts, x, chosen, weights *result) *result {
	one := b.view(x)
	if e.weighInputs {
		one = b.inPlace(b.floats(e.used*e.width), b.op(b.floats(e.used*e.width), one), b.view(weights))
	}
	bytes := b.floats(e.used * e.hidden)
	if down := b.ne("ffn_down" + e.suffix); len(down) == 3 && down[0] >= 0 {
		bytes = b.floats(e.used * down[0])
	}
	product := func(bytes int64, tensor string, x *result) *result {
		r := b.op(bytes, x, chosen)
		if b.hasBias(tensor + e.suffix) {
			r = b.inPlace(bytes, r, chosen)
		}
		return r
	}
	var act *result
	switch {
	case e.ffn.Gate == graph.NoGate:
		act = b.inPlace(bytes, product(bytes, "ffn_up", one))
	case b.ne("ffn_gate_up"+e.suffix) != nil || b.ne("ffn_gate"+e.suffix) == nil:
		both := product(2*bytes, "ffn_gate_up", one)
		act = b.op(bytes, b.partView(both, bytes), b.partView(both, bytes))
	default:
		act = b.op(bytes, product(bytes, "ffn_gate", one), product(bytes, "ffn_up", one))
	}
	each := product(b.floats(e.used*e.width), "ffn_down", act)
	if !e.weighInputs {
		each = b.inPlace(each.bytes, each, b.view(weights))
	}
	b.expand(each)
	return b.sum(each, e.width, e.used)
}

// sum returns the sum of used vectors of n values for each token.
func (b *batch) sum(each *result, n, used int64) *result {
	sum := b.partView(each, b.floats(n))
	if used == 1 {
		sum = b.op(sum.bytes, sum)
	}
	for range min(used, maxGraphLayers) - 1 {
		sum = b.inPlace(sum.bytes, sum, b.partView(each, sum.bytes))
	}
	return sum
}

// route adds a router: it returns the numbers of the chosen experts, and their weights.
func (b *batch) route(r graph.Router, x *result, byLogits bool) (chosen, weights *result) {
	experts, used := b.scope.Size("n_expert"), b.number("@expert_used_count")
	logits := b.op(b.floats(experts), x)
	if b.hasBias("ffn_gate_inp") {
		logits = b.inPlace(logits.bytes, logits)
	}
	if x == b.input {
		logits = b.choose(logits)
	}
	scoring := b.number("@expert_gating_func or 0")
	if scoring == 0 {
		scoring = int64(r.Score)
	}
	probs := logits
	if scoring != int64(graph.SoftmaxOfChosen) {
		probs = b.inPlace(logits.bytes, logits)
	}
	selection := probs
	if byLogits {
		selection = logits
	}
	if r.Bias && (b.hasBias("exp_probs_b") || b.scope.Has("exp_probs_b")) {
		selection = b.inPlace(probs.bytes, probs)
	}
	if groups := b.number("@expert_group_count or 0"); r.Groups && groups > 1 {
		selection = b.groups(selection, groups, experts)
	}
	b.expand(selection)
	chosen = b.partView(b.op(selection.bytes, selection), b.floats(used)) // sorted, of which the first are taken
	weights = b.op(b.floats(used), b.view(probs), chosen)
	if scoring == int64(graph.SoftmaxOfChosen) {
		weights = b.inPlace(weights.bytes, b.view(weights))
	}
	normalized := r.TopKNorm
	if v, ok := b.scope.Value("@expert_weights_norm"); ok {
		normalized = v.Float() != 0
	}
	if normalized {
		sum := b.op(b.floats(1), b.view(weights))
		weights = b.inPlace(weights.bytes, b.view(weights), b.view(sum))
	}
	if f, ok := b.scope.Value("@expert_weights_scale"); ok && f.Float() != 0 && f.Float() != 1 {
		weights = b.inPlace(weights.bytes, weights)
	}
	b.expand(weights)
	return chosen, weights
}

// groups adds the choice of groups: scores of all other experts are masked.
func (b *batch) groups(x *result, groups, experts int64) *result {
	two := b.op(b.floats(2*groups), b.view(x), b.partView(b.op(x.bytes, b.view(x)), b.floats(2*groups)))
	sums := b.op(b.floats(groups), b.view(two))
	used := max(1, b.number("@expert_group_used_count or 1"))
	best := b.partView(b.op(sums.bytes, b.view(sums)), b.floats(used))
	kept := b.op(b.floats(used*experts/max(1, groups)), b.view(x), best)
	masked := b.op(x.bytes, b.view(x))
	return b.view(b.write(masked, kept, best))
}
