package memory

import "ggforge/arch/graph"

// embedAdapted is embed for a model with adapters, whose graph has no embeddings in place of tokens: the tokens'
// substitutes are inputs, and so are the query, key and value of the attention head that chooses adapters.
func (b *batch) embedAdapted(e graph.Embedding, ids *result) *result {
	x := b.op(b.floats(b.width()), ids)
	if e.Scale != "" {
		x = b.inPlace(x.bytes, x)
	}
	var lanes []*result
	for range 3 {
		lanes = append(lanes, b.op(b.floats(b.number("n_embd_head_k")), b.addInput(4*b.tokens)))
	}
	b.pos = b.addInput(4 * b.tokens)
	chosen := b.attend(graph.Attention{}, lanes[0], lanes[1], lanes[2], 1, 1, b.number("n_embd_head_k"),
		b.number("n_embd_head_v"))
	b.adapters = b.op(b.floats(1), chosen)
	return x
}

// adapt adds the outputs of adapters for the inputs x to r.
func (b *batch) adapt(r, x *result) *result {
	low := b.op(b.floats(b.number("@adapters.lora_rank")), b.view(x), b.adapters)
	return b.inPlace(r.bytes, r, b.view(b.op(r.bytes, low, b.adapters)))
}
