package memory

import "ggforge/arch/graph"

// decide adds the head of a model that decides, for each kind of question, and returns their scores of tokens; x without
// such a head.
func (b *batch) decide(x *result) *result {
	of, ok := b.graph.Second.(graph.Decision)
	n := b.decl.DecisionLayers()
	if !ok || n == 0 {
		return x
	}
	b.centered, b.layerSteps = of.Norm.Centered, of.Layer
	var all *result
	for kind := range int64(graph.Kinds) {
		h := b.inPlace(x.bytes, x)
		for i := range n {
			b.scope, b.last, b.input, b.chosen = b.decl.At(b.decl.Layers()+i), i == n-1, h, map[*result]*result{}
			h = b.layer(h)
		}
		b.scope, b.last = b.decl.At(-1), false
		h = b.linear(b.norm(h, graph.Norm{Name: "cls.norm"}), "cls", b.width())
		score := b.linear(b.inPlace(h.bytes, h), "cls.output", 1)
		if all == nil {
			all = score
		} else {
			all = b.op(b.floats(kind+1), all, score)
		}
	}
	return all
}
