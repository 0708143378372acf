package eval

import (
	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/vecmath"
)

const sigmoidScore = graph.Sigmoid

// groupExperts are further experts, one for each group of neighbours among others. Their input is the output of these.
type groupExperts struct {
	size    int // experts of a group
	scale   float32
	experts experts // as many as there are groups
}

// newGroups adds the experts of groups.
func (x *experts) newGroups(b *builder, of graph.FFN) {
	g := &groupExperts{size: b.count("@experts_per_group"), scale: float32(b.float("@expert_group_scale"))}
	if x.n%g.size != 0 {
		b.t.fail(fault.Broken, "%d experts, want a multiple of the %d of a group", x.n, g.size)
	}
	n, ff := x.n/g.size, b.count("@expert_chunk_feed_forward_length or n_ff_exp")
	g.experts = experts{n: n, used: x.used, ff: ff, width: b.p.width}
	g.experts.act, g.experts.activation = b.activation(of.Act)
	g.experts.up, g.experts.gate, g.experts.down = b.t.stack(b.name("ffn_up_chexps"), b.p.width, ff, n),
		b.t.stack(b.name("ffn_gate_chexps"), b.p.width, ff, n), b.t.stack(b.name("ffn_down_chexps"), ff, b.p.width, n)
	for e := range n {
		g.experts.up[e].routed, g.experts.gate[e].routed, g.experts.down[e].routed = true, true, true
	}
	x.perGroup = g
}

// choose returns the groups of the chosen experts of some tokens, whose router's probabilities are given. llama.cpp takes
// the weight of group g from the probability of expert g.
func (g *groupExperts) choose(x *experts, chosen []choice, probabilities []float32) []choice {
	groups := make([]choice, len(chosen))
	for t := 0; t < len(chosen); t += x.used {
		var sum float64
		for i := t; i < t+x.used; i++ {
			of := chosen[i].expert / int32(g.size)
			groups[i] = choice{of, probabilities[t/x.used*x.n+int(of)]}
			sum += float64(groups[i].weight)
		}
		for i := t; i < t+x.used; i++ {
			groups[i].weight /= max(float32(sum), minWeightSum)
		}
	}
	return groups
}

// add adds to acc, the outputs of experts x for all tokens, those of their groups.
func (g *groupExperts) add(s *stream, x *experts, groups []choice, acc []float32) error {
	width, sum := s.m.p.width, make([]float32, len(acc))
	if err := s.experts(&g.experts, groups, func(e int, list []int32) error {
		in, y := buffer.Resize(&s.x, len(list)*width), buffer.Resize(&s.y, len(list)*width)
		token := func(i int) int { return int(list[i]) / x.used }
		for i := range list {
			copy(in[i*width:][:width], acc[token(i)*width:])
		}
		if err := s.feedForward(g.experts.expert(e), y, in, len(list)); err != nil {
			return err
		}
		for i := range list {
			vecmath.AddScaled(sum[token(i)*width:][:width], y[i*width:][:width], groups[list[i]].weight)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.eachState(acc, sum, func(acc, sum []float32) { vecmath.AddScaled(acc, sum, g.scale) })
}
