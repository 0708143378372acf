package memory

import (
	"slices"
	"strconv"
)

// maxGraphLayers is the number of layers that the graph has at most: the results alive at a time are the same in every
// layer of a kind, except the first and the last.
const maxGraphLayers = 64

// batch is the batch that is computed, and its graph.
type batch struct {
	*model
	graph
	tokens int64
	masks  [2]*result // of all tokens, of windows
	keys   [4]*result // indices of the cells for keys and values, likewise
	cells  [2]int64
	pos    *result

	indexerMask *result // the mask of an indexer's scores, or nil
}

// f32 returns the bytes of n float32 values for each token.
func (b *batch) f32(n int64) int64 { return b.product("a batch", 4, b.tokens, n) }

// tensor returns the dimensions of the first of these tensors that layer i has, nil for none.
func (b *batch) tensor(i int, names ...string) []int64 {
	for _, name := range names {
		if t, ok := b.tensors["blk."+strconv.Itoa(i)+"."+name]; ok {
			return t.NE
		}
	}
	return nil
}

// out returns the number of rows of a matrix, 0 for none.
func out(ne []int64) int64 {
	if len(ne) < 2 {
		return 0
	}
	return ne[1]
}

// compute returns the size of the runtime's compute buffer for a batch of tokens. The graph follows from the tensors of
// the layers.
func (p *model) compute(tokens int64, caches []*Cache) int64 {
	if p.err != nil {
		return 0
	}
	b := &batch{model: p, tokens: tokens}
	ids := b.input(4 * tokens)
	// of images, with the DeepStack vectors that later layers add
	wide := p.product("vectors", p.embd, 1+p.size("n_deepstack_layers", 0))
	b.input(b.f32(wide)) // embeddings in place of tokens, which no operation of this graph reads
	mixed, vectors, slots := b.input(4*tokens), b.input(b.f32(wide)), b.input(8*tokens)
	b.pos = b.input(4 * tokens)
	for i, c := range caches[:2] {
		switch {
		case (p.kind == stateless || p.noLogits) && slices.Contains(p.windowed, i == 1): // some layer reads it
			b.masks[i] = b.input(b.product("a mask", 2, tokens, tokens))
		case c.Layers > 0:
			b.keys[2*i], b.keys[2*i+1] = b.input(8*tokens), b.input(8*tokens)
			number := int64(2)
			if p.scores > 0 {
				number = 4
			}
			b.masks[i] = b.input(b.product("a mask", number, c.Cells, tokens))
			b.cells[i] = c.Cells
		}
	}
	for _, c := range caches[2:] {
		if c.What == "indexer" && c.Layers > 0 && p.latent {
			b.indexerMask = b.input(b.product("a mask", 2, c.Cells, tokens))
		}
	}
	rows := b.input(4 * tokens) // indices of the outputs
	x := b.op(b.f32(p.embd), ids)
	// tokens mixed with embeddings, which only texts with images have, are in every graph
	tokenVectors := b.op(b.f32(p.embd), mixed)
	if wide > p.embd {
		x, tokenVectors = b.op(b.f32(wide), x), b.op(b.f32(wide), tokenVectors)
		x = b.partView(x, b.f32(p.embd))
	}
	b.write(b.op(b.f32(wide), vectors), tokenVectors, slots)

	layers := min(p.layers, maxGraphLayers)
	perLayer := b.perLayer(ids, x)
	for i := range layers {
		x = b.layer(i, x, rows, i == layers-1)
		if perLayer != nil {
			x = b.inPlace(x.bytes, x, b.partView(perLayer, 0))
		}
	}
	x = b.norm(x)
	x.kept = true
	if !p.noLogits {
		b.op(b.f32(p.vocab), x).kept = true
	}
	return b.graph.total()
}

// perLayer returns the per-layer embeddings, which are computed before the first layer; nil for none.
func (b *batch) perLayer(ids, x *result) *result {
	if _, ok := b.tensors["per_layer_token_embd.weight"]; !ok {
		return nil
	}
	n := b.f32(b.product("embeddings of layers", b.size("embedding_length_per_layer_input", 0), int64(b.layers)))
	own := b.inPlace(n, b.view(b.op(n, ids)))
	of := b.norm(b.view(b.inPlace(n, b.op(n, x))))
	return b.op(n, b.partView(b.inPlace(n, b.inPlace(n, of, own)), n))
}

// norm adds a norm and the product with its weights.
func (b *batch) norm(x *result) *result { return b.inPlace(x.bytes, b.inPlace(x.bytes, x)) }

// layer adds layer i, which reads x, and returns the residual stream after it.
func (b *batch) layer(i int, x, rows *result, last bool) *result {
	cur := b.mixer(i, b.norm(x))
	if b.tensor(i, "post_attention_norm.weight", "attn_post_norm.weight") != nil &&
		b.tensor(i, "ffn_norm.weight") != nil {
		cur = b.norm(cur)
	}
	if last {
		cur, x = b.op(cur.bytes, cur, rows), b.op(x.bytes, x, rows)
	}
	x = b.inPlace(x.bytes, cur, x)
	if ne := b.tensor(i, "channel_mix_value.weight"); ne != nil {
		hidden := b.op(b.f32(ne[0]), b.inPlace(x.bytes, b.op(x.bytes, b.norm(x))))
		return b.inPlace(x.bytes, b.op(x.bytes, b.inPlace(hidden.bytes, hidden)), x)
	}
	if b.tensor(i, "ffn_down.weight", "ffn_down_exps.weight") == nil {
		return x
	}
	cur = b.ffn(i, b.norm(x))
	if b.tensor(i, "post_ffw_norm.weight") != nil {
		cur = b.norm(cur)
	}
	return b.inPlace(x.bytes, cur, x)
}

// mixer adds the token mixer of layer i: attention or a recurrent layer.
func (b *batch) mixer(i int, x *result) *result {
	switch {
	case b.recurrent[i] && !b.hasKV[i]:
		return b.recurrentLayer(i, x)
	case b.tensor(i, "attn_k_b.weight") != nil && b.latent:
		return b.mla(i, x)
	}
	heads := b.sizes("attention.head_count", len(b.hasKV), 0)[i]
	nq, nk, nv := b.product("queries", heads, b.keyLen[i]), b.product("keys", b.headsKV[i], b.keyLen[i]),
		b.product("values", b.headsKV[i], b.valLen[i])
	var q, k, v *result
	if fused := out(b.tensor(i, "attn_qkv.weight")); fused > 0 {
		all := b.op(b.f32(fused), x)
		if b.tensor(i, "attn_qkv.bias") != nil {
			all = b.inPlace(all.bytes, all)
		}
		q, k, v = b.partView(all, b.f32(nq)), b.partView(all, b.f32(nk)), b.partView(all, b.f32(nv))
		q = b.normAndRoPE(i, q, "q")
		k = b.normAndRoPE(i, k, "k")
	} else {
		q = b.normAndRoPE(i, b.view(b.linear(i, x, nq, "attn_q")), "q")
		v = b.view(b.linear(i, x, nv, "attn_v"))
		k = b.normAndRoPE(i, b.view(b.linear(i, x, nk, "attn_k")), "k")
	}
	w := 0
	if b.windowed[i] {
		w = 1
	}
	mask := b.masks[w]
	if b.hasKV[i] && b.blockMasks && b.tensor(i, "indexer.attn_q_b.weight", "indexer.q_proj.weight",
		"indexer.attn_k.weight", "indexer.k_proj.weight") != nil {
		// each group of heads has a mask of the blocks that it attends to
		scores := b.product("scores", b.size("attention.indexer.head_count", 0), b.cells[w], b.tokens)
		groups := b.op(4*scores, b.partView(b.op(4*scores, x), 4*scores))
		mask = b.op(2*scores, b.inPlace(4*scores, groups, b.op(b.product("scores", 4, b.cells[w], b.tokens), mask)))
	}
	if b.hasKV[i] && b.keys[2*w] != nil {
		b.store(b.view(k), b.keys[2*w])
		b.store(b.view(v), b.keys[2*w+1])
		if b.scores > 0 {
			return b.linear(i, b.attentionWithScores(b.view(q), w, heads, heads*b.valLen[i]), b.embd, "attn_output")
		}
		return b.linear(i, b.view(b.op(b.f32(heads*b.valLen[i]), b.view(q), mask)), b.embd, "attn_output")
	}
	sources := []*result{b.view(q)}
	if b.kind == stateless || b.noLogits {
		sources = append(sources, b.op(k.bytes/2, k), b.op(v.bytes/2, v))
	}
	for _, m := range []*result{b.masks[w], b.masks[0]} {
		if m != nil {
			sources = append(sources, m)
			break
		}
	}
	return b.linear(i, b.view(b.op(b.f32(heads*b.valLen[i]), sources...)), b.embd, "attn_output")
}

// attentionWithScores adds attention without flash attention: the scores are all in memory at a time.
func (b *batch) attentionWithScores(q *result, w int, heads, n int64) *result {
	bytes := b.product("scores", 4, heads, b.cells[w], b.tokens)
	scores := b.op(bytes, q)
	if b.scores > 1 { // relative position bias
		bias := b.op(bytes, b.partView(b.op(bytes, b.pos), bytes))
		scores = b.inPlace(bytes, scores, bias)
	}
	return b.op(b.f32(n), b.partView(b.op(b.f32(n), b.inPlace(bytes, scores, b.masks[w])), b.f32(n)))
}

// linear adds the product with a matrix, and its bias.
func (b *batch) linear(i int, x *result, n int64, name string) *result {
	r := b.op(b.f32(n), x)
	if b.tensor(i, name+".bias") != nil {
		r = b.inPlace(r.bytes, r)
	}
	return r
}

// normAndRoPE adds the QK-norm of queries or keys, if there is one, and RoPE.
func (b *batch) normAndRoPE(i int, x *result, which string) *result {
	if b.tensor(i, "attn_"+which+"_norm.weight") != nil {
		x = b.norm(x)
	}
	return b.inPlace(x.bytes, x, b.pos)
}

// mla adds MLA with absorbed matrices: queries are multiplied by attn_k_b, attention outputs by attn_v_b.
func (b *batch) mla(i int, x *result) *result {
	heads := b.sizes("attention.head_count", len(b.hasKV), 0)[i]
	full := b.size("attention.key_length_mla", 0)
	value := b.size("attention.value_length_mla", 0)
	rank := max(0, b.valLen[i])
	ropeDims := max(0, b.keyLen[i]-rank)
	q := x
	if n := out(b.tensor(i, "attn_q_a.weight")); n > 0 {
		q = b.norm(b.op(b.f32(n), x))
	}
	all := b.op(b.f32(heads*full), q)
	plain, pe := b.partView(all, b.f32(heads*max(0, full-ropeDims))), b.partView(all, b.f32(heads*ropeDims))
	kv := b.op(b.f32(rank+ropeDims), x)
	compressed, kpe := b.partView(kv, b.f32(rank)), b.partView(kv, b.f32(ropeDims))
	pe = b.op(pe.bytes, pe, b.pos)
	kpe = b.op(kpe.bytes, kpe, b.pos)
	compressed = b.norm(compressed)
	absorbed := b.partView(b.op(b.f32(heads*rank), plain), b.f32(heads*rank))
	q = b.op(b.f32(heads*b.keyLen[i]), absorbed, pe)
	k := b.op(b.f32(b.keyLen[i]), b.view(compressed), kpe)
	w := 0
	if b.windowed[i] {
		w = 1
	}
	if b.masks[w] == nil {
		return b.op(b.f32(b.embd), q, k)
	}
	b.store(b.view(k), b.keys[2*w])
	mask := b.masks[w]
	if b.indexerMask != nil && w == 0 {
		scores := b.op(b.product("scores", 4, b.cells[0], b.tokens),
			b.op(b.f32(b.size("attention.indexer.key_length", 0)*b.size("attention.indexer.head_count", 0)), x),
			b.indexerMask)
		chosen := b.op(b.f32(b.size("attention.indexer.top_k", 0)), scores)
		mask = b.op(b.masks[0].bytes, b.op(b.masks[0].bytes, b.masks[0]), chosen, b.masks[0])
	}
	cur := b.op(b.f32(heads*rank), b.partView(q, q.bytes), mask)
	cur = b.op(b.f32(heads*value), b.partView(cur, cur.bytes))
	cur = b.op(cur.bytes, b.partView(cur, cur.bytes))
	return b.op(b.f32(b.embd), b.view(cur))
}

// recurrentLayer adds the mixer of a recurrent layer: input projection, convolution, scan, output projection.
func (b *batch) recurrentLayer(i int, x *result) *result {
	if b.Has("wkv.head_size") {
		return b.rwkvLayer(i, x)
	}
	in := max(out(b.tensor(i, "ssm_in.weight")), out(b.tensor(i, "shortconv.in_proj.weight")))
	inner := b.size("ssm.inner_size", b.embd)
	if in == 0 {
		in = max(out(b.tensor(i, "attn_qkv.weight")), 2*inner)
	}
	all := b.op(b.f32(in), x)
	z := b.partView(all, b.f32(inner))
	conv := b.op(b.f32(in), b.partView(all, all.bytes)) // with the last inputs of earlier tokens
	conv = b.op(b.f32(in), conv)
	conv = b.inPlace(conv.bytes, conv)
	cur := b.op(b.f32(inner)+4*b.stateLen(i), b.partView(conv, conv.bytes))
	cur = b.op(b.f32(inner), b.partView(cur, b.f32(inner)))
	cur = b.op(cur.bytes, z, cur)
	return b.op(b.f32(b.embd), cur)
}

// rwkvLayer adds the time mix of RWKV, which reads six mixtures of each token and the token before it.
func (b *batch) rwkvLayer(i int, x *result) *result {
	before := b.inPlace(x.bytes, b.op(x.bytes, x), x)
	six := b.op(6*x.bytes, before)
	six = b.inPlace(six.bytes, b.inPlace(six.bytes, six), x)
	var of []*result
	for range 6 {
		of = append(of, b.op(x.bytes, b.partView(six, x.bytes)))
	}
	scan := b.op(x.bytes+4*b.stateLen(i), of...)
	return b.op(x.bytes, b.inPlace(x.bytes, b.op(x.bytes, b.partView(scan, x.bytes)), of[5]))
}

// ffn adds the feed-forward block: dense, of experts, or both.
func (b *batch) ffn(i int, x *result) *result {
	exps := b.tensor(i, "ffn_down_exps.weight")
	if len(exps) < 3 {
		return b.dense(i, x, "", b.embd)
	}
	n, used := exps[2], b.sizes("expert_used_count", len(b.hasKV), 0)[i]
	scores := b.op(b.f32(n), x)
	probs := b.inPlace(scores.bytes, scores)
	chosen := b.partView(b.op(b.f32(n), probs), b.f32(used)) // sorted, of which the first are taken
	weights := b.op(b.f32(used), b.view(probs), chosen)
	if norm, ok := b.Get("expert_weights_norm"); ok {
		if v, _ := norm.Bool(); v {
			sum := b.op(b.f32(1), b.view(weights))
			weights = b.inPlace(weights.bytes, b.view(weights), b.inPlace(sum.bytes, sum))
		}
	}
	one := b.view(x)
	hidden := exps[0]
	var act *result
	if b.tensor(i, "ffn_gate_up_exps.weight") != nil {
		both := b.op(b.f32(2*used*hidden), one, chosen)
		act = b.op(b.f32(used*hidden), b.partView(both, both.bytes/2), b.partView(both, both.bytes/2))
	} else {
		up := b.op(b.f32(used*hidden), one, chosen)
		act = up
		if b.tensor(i, "ffn_gate_exps.weight") != nil {
			act = b.op(b.f32(used*hidden), b.op(b.f32(used*hidden), one, chosen), up)
		} else {
			act = b.inPlace(up.bytes, up)
		}
	}
	each := b.op(b.f32(used*exps[1]), act, chosen)
	each = b.inPlace(each.bytes, each, b.view(weights))
	var parts []*result
	for range min(used, 64) {
		parts = append(parts, b.partView(each, b.f32(exps[1])))
	}
	sum := x
	for k, part := range parts {
		switch k {
		case 0:
			sum = part
		default:
			sum = b.inPlace(part.bytes, sum, part)
		}
	}
	if b.tensor(i, "ffn_down_shexp.weight") != nil {
		shared := b.dense(i, x, "_shexp", b.embd)
		sum = b.inPlace(sum.bytes, sum, shared)
	}
	if b.tensor(i, "ffn_down.weight") != nil {
		sum = b.inPlace(sum.bytes, sum, b.dense(i, x, "", b.embd))
	}
	return sum
}

// dense adds one feed-forward network.
func (b *batch) dense(i int, x *result, suffix string, width int64) *result {
	down := b.tensor(i, "ffn_down"+suffix+".weight")
	if down == nil {
		return b.op(b.f32(width), x)
	}
	hidden := down[0]
	up := out(b.tensor(i, "ffn_up"+suffix+".weight"))
	var act *result
	switch {
	case b.tensor(i, "ffn_gate"+suffix+".weight") != nil:
		gate := b.linear(i, x, hidden, "ffn_gate"+suffix)
		act = b.op(b.f32(hidden), gate, b.linear(i, x, hidden, "ffn_up"+suffix))
	case up > hidden: // both in one
		act = b.op(b.f32(hidden), b.linear(i, x, up, "ffn_up"+suffix))
	default:
		act = b.linear(i, x, hidden, "ffn_up"+suffix)
		act = b.inPlace(act.bytes, act)
	}
	return b.linear(i, act, width, "ffn_down"+suffix)
}
