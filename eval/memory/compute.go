package memory

import (
	"slices"
	"strconv"
)

// maxGraphLayers is how many layers are laid out: what is alive at a time is the same in
// every layer of a kind, and the first and the last one differ.
const maxGraphLayers = 64

// batch is one that is computed, and the graph of it.
type batch struct {
	*model
	graph
	tokens int64
	masks  [2]*result // of all tokens, of windows
	keys   [4]*result // where keys and values go, likewise
	cells  [2]int64
	pos    *result

	chooses *result // the mask of an indexer's scores, nil without
}

// f32 returns the bytes of n numbers for each token.
func (b *batch) f32(n int64) int64 { return b.product("a batch", 4, b.tokens, n) }

// tensor returns the dimensions of a tensor of layer i, nil if there is none of these names.
func (b *batch) tensor(i int, names ...string) []int64 {
	for _, name := range names {
		if t, ok := b.tensors["blk."+strconv.Itoa(i)+"."+name]; ok {
			return t.NE
		}
	}
	return nil
}

// out returns the rows of a matrix, 0 without.
func out(ne []int64) int64 {
	if len(ne) < 2 {
		return 0
	}
	return ne[1]
}

// compute returns the size of the runtime's compute buffer for a batch of tokens, by a graph
// of what layers of these tensors compute.
func (p *model) compute(tokens int64, caches []*Cache) int64 {
	if p.err != nil {
		return 0
	}
	b := &batch{model: p, tokens: tokens}
	ids := b.input(4 * tokens)
	// of pictures, with what later layers add
	wide := p.product("vectors", p.embd, 1+p.size("n_deepstack_layers", 0))
	b.input(b.f32(wide)) // vectors in place of tokens, which no operation of this graph reads
	mixed, vectors, slots := b.input(4*tokens), b.input(b.f32(wide)), b.input(8*tokens)
	b.pos = b.input(4 * tokens)
	for i, c := range caches[:2] {
		switch {
		case (p.kind == stateless || p.silent) && slices.Contains(p.windowed, i == 1): // some layer reads it
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
			b.chooses = b.input(b.product("a mask", 2, c.Cells, tokens))
		}
	}
	rows := b.input(4 * tokens) // that are handed out
	x := b.op(b.f32(p.embd), ids)
	// the graph has tokens among vectors, too, which only texts with pictures have
	tokenVectors := b.op(b.f32(p.embd), mixed)
	if wide > p.embd {
		x, tokenVectors = b.op(b.f32(wide), x), b.op(b.f32(wide), tokenVectors)
		x = b.cut(x, b.f32(p.embd))
	}
	b.write(b.op(b.f32(wide), vectors), tokenVectors, slots)

	layers := min(p.layers, maxGraphLayers)
	perLayer := b.perLayer(ids, x)
	for i := range layers {
		x = b.layer(i, x, rows, i == layers-1)
		if perLayer != nil {
			x = b.over(x.bytes, x, b.cut(perLayer, 0))
		}
	}
	x = b.norm(x)
	x.kept = true
	if !p.silent {
		b.op(b.f32(p.vocab), x).kept = true
	}
	return b.graph.total()
}

// perLayer is what models with embeddings for each layer make of them before the first.
func (b *batch) perLayer(ids, x *result) *result {
	if _, ok := b.tensors["per_layer_token_embd.weight"]; !ok {
		return nil
	}
	n := b.f32(b.product("embeddings of layers", b.size("embedding_length_per_layer_input", 0), int64(b.layers)))
	own := b.over(n, b.view(b.op(n, ids)))
	of := b.norm(b.view(b.over(n, b.op(n, x))))
	return b.op(n, b.cut(b.over(n, b.over(n, of, own)), n))
}

// norm is a norm and its weights.
func (b *batch) norm(x *result) *result { return b.over(x.bytes, b.over(x.bytes, x)) }

// layer is what a layer does to x.
func (b *batch) layer(i int, x, rows *result, last bool) *result {
	cur := b.mixer(i, b.norm(x))
	if b.tensor(i, "post_attention_norm.weight", "attn_post_norm.weight") != nil &&
		b.tensor(i, "ffn_norm.weight") != nil {
		cur = b.norm(cur)
	}
	if last {
		cur, x = b.op(cur.bytes, cur, rows), b.op(x.bytes, x, rows)
	}
	x = b.over(x.bytes, cur, x)
	if ne := b.tensor(i, "channel_mix_value.weight"); ne != nil {
		hidden := b.op(b.f32(ne[0]), b.over(x.bytes, b.op(x.bytes, b.norm(x))))
		return b.over(x.bytes, b.op(x.bytes, b.over(hidden.bytes, hidden)), x)
	}
	if b.tensor(i, "ffn_down.weight", "ffn_down_exps.weight") == nil {
		return x
	}
	cur = b.feed(i, b.norm(x))
	if b.tensor(i, "post_ffw_norm.weight") != nil {
		cur = b.norm(cur)
	}
	return b.over(x.bytes, cur, x)
}

// mixer is attention, or what takes its place.
func (b *batch) mixer(i int, x *result) *result {
	switch {
	case b.recurrent[i] && !b.attends[i]:
		return b.recurs(i, x)
	case b.tensor(i, "attn_k_b.weight") != nil && b.latent:
		return b.attendsLatent(i, x)
	}
	heads := b.sizes("attention.head_count", len(b.attends), 0)[i]
	nq, nk, nv := b.product("queries", heads, b.keyLen[i]), b.product("keys", b.headsKV[i], b.keyLen[i]),
		b.product("values", b.headsKV[i], b.valLen[i])
	var q, k, v *result
	if fused := out(b.tensor(i, "attn_qkv.weight")); fused > 0 {
		all := b.op(b.f32(fused), x)
		if b.tensor(i, "attn_qkv.bias") != nil {
			all = b.over(all.bytes, all)
		}
		q, k, v = b.cut(all, b.f32(nq)), b.cut(all, b.f32(nk)), b.cut(all, b.f32(nv))
		q = b.turned(i, q, "q")
		k = b.turned(i, k, "k")
	} else {
		q = b.turned(i, b.view(b.product1(i, x, nq, "attn_q")), "q")
		v = b.view(b.product1(i, x, nv, "attn_v"))
		k = b.turned(i, b.view(b.product1(i, x, nk, "attn_k")), "k")
	}
	w := 0
	if b.windowed[i] {
		w = 1
	}
	mask := b.masks[w]
	if b.attends[i] && b.blocks && b.tensor(i, "indexer.attn_q_b.weight", "indexer.q_proj.weight",
		"indexer.attn_k.weight", "indexer.k_proj.weight") != nil {
		// each group of heads has a mask of the blocks that it looks at
		scores := b.product("scores", b.size("attention.indexer.head_count", 0), b.cells[w], b.tokens)
		groups := b.op(4*scores, b.cut(b.op(4*scores, x), 4*scores))
		mask = b.op(2*scores, b.over(4*scores, groups, b.op(b.product("scores", 4, b.cells[w], b.tokens), mask)))
	}
	if b.attends[i] && b.keys[2*w] != nil {
		b.store(b.view(k), b.keys[2*w])
		b.store(b.view(v), b.keys[2*w+1])
		if b.scores > 0 {
			return b.product1(i, b.scored(b.view(q), w, heads, heads*b.valLen[i]), b.embd, "attn_output")
		}
		return b.product1(i, b.view(b.op(b.f32(heads*b.valLen[i]), b.view(q), mask)), b.embd, "attn_output")
	}
	sources := []*result{b.view(q)}
	if b.kind == stateless || b.silent {
		sources = append(sources, b.op(k.bytes/2, k), b.op(v.bytes/2, v))
	}
	for _, m := range []*result{b.masks[w], b.masks[0]} {
		if m != nil {
			sources = append(sources, m)
			break
		}
	}
	return b.product1(i, b.view(b.op(b.f32(heads*b.valLen[i]), sources...)), b.embd, "attn_output")
}

// scored is attention whose scores are all there at a time.
func (b *batch) scored(q *result, w int, heads, n int64) *result {
	bytes := b.product("scores", 4, heads, b.cells[w], b.tokens)
	scores := b.op(bytes, q)
	if b.scores > 1 { // of places, too
		bias := b.op(bytes, b.cut(b.op(bytes, b.pos), bytes))
		scores = b.over(bytes, scores, bias)
	}
	return b.op(b.f32(n), b.cut(b.op(b.f32(n), b.over(bytes, scores, b.masks[w])), b.f32(n)))
}

// product1 is a matrix and what is added.
func (b *batch) product1(i int, x *result, n int64, name string) *result {
	r := b.op(b.f32(n), x)
	if b.tensor(i, name+".bias") != nil {
		r = b.over(r.bytes, r)
	}
	return r
}

// turned is the norm of queries or keys, where there is one, and their rotation.
func (b *batch) turned(i int, x *result, which string) *result {
	if b.tensor(i, "attn_"+which+"_norm.weight") != nil {
		x = b.norm(x)
	}
	return b.over(x.bytes, x, b.pos)
}

// attendsLatent is attention over latent vectors: queries are multiplied by what makes keys of
// them, results by what makes values.
func (b *batch) attendsLatent(i int, x *result) *result {
	heads := b.sizes("attention.head_count", len(b.attends), 0)[i]
	full := b.size("attention.key_length_mla", 0)
	value := b.size("attention.value_length_mla", 0)
	rank := max(0, b.valLen[i])
	turned := max(0, b.keyLen[i]-rank)
	q := x
	if n := out(b.tensor(i, "attn_q_a.weight")); n > 0 {
		q = b.norm(b.op(b.f32(n), x))
	}
	all := b.op(b.f32(heads*full), q)
	plain, pe := b.cut(all, b.f32(heads*max(0, full-turned))), b.cut(all, b.f32(heads*turned))
	kv := b.op(b.f32(rank+turned), x)
	compressed, kpe := b.cut(kv, b.f32(rank)), b.cut(kv, b.f32(turned))
	pe = b.op(pe.bytes, pe, b.pos)
	kpe = b.op(kpe.bytes, kpe, b.pos)
	compressed = b.norm(compressed)
	absorbed := b.cut(b.op(b.f32(heads*rank), plain), b.f32(heads*rank))
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
	if b.chooses != nil && w == 0 {
		scores := b.op(b.product("scores", 4, b.cells[0], b.tokens),
			b.op(b.f32(b.size("attention.indexer.key_length", 0)*b.size("attention.indexer.head_count", 0)), x),
			b.chooses)
		chosen := b.op(b.f32(b.size("attention.indexer.top_k", 0)), scores)
		mask = b.op(b.masks[0].bytes, b.op(b.masks[0].bytes, b.masks[0]), chosen, b.masks[0])
	}
	cur := b.op(b.f32(heads*rank), b.cut(q, q.bytes), mask)
	cur = b.op(b.f32(heads*value), b.cut(cur, cur.bytes))
	cur = b.op(cur.bytes, b.cut(cur, cur.bytes))
	return b.op(b.f32(b.embd), b.view(cur))
}

// recurs is a recurrent layer: what goes in, its convolution, the scan and what comes out.
func (b *batch) recurs(i int, x *result) *result {
	if b.Has("wkv.head_size") {
		return b.mixesTime(i, x)
	}
	in := max(out(b.tensor(i, "ssm_in.weight")), out(b.tensor(i, "shortconv.in_proj.weight")))
	inner := b.size("ssm.inner_size", b.embd)
	if in == 0 {
		in = max(out(b.tensor(i, "attn_qkv.weight")), 2*inner)
	}
	all := b.op(b.f32(in), x)
	z := b.cut(all, b.f32(inner))
	conv := b.op(b.f32(in), b.cut(all, all.bytes)) // with what is left of earlier tokens
	conv = b.op(b.f32(in), conv)
	conv = b.over(conv.bytes, conv)
	cur := b.op(b.f32(inner)+4*b.stateLen(i), b.cut(conv, conv.bytes))
	cur = b.op(b.f32(inner), b.cut(cur, b.f32(inner)))
	cur = b.op(cur.bytes, z, cur)
	return b.op(b.f32(b.embd), cur)
}

// mixesTime is a layer of RWKV: six mixtures of each token and the one before it, and what is
// computed of them.
func (b *batch) mixesTime(i int, x *result) *result {
	before := b.over(x.bytes, b.op(x.bytes, x), x)
	six := b.op(6*x.bytes, before)
	six = b.over(six.bytes, b.over(six.bytes, six), x)
	var of []*result
	for range 6 {
		of = append(of, b.op(x.bytes, b.cut(six, x.bytes)))
	}
	scan := b.op(x.bytes+4*b.stateLen(i), of...)
	return b.op(x.bytes, b.over(x.bytes, b.op(x.bytes, b.cut(scan, x.bytes)), of[5]))
}

// feed is the feed-forward part: dense, of experts, or both.
func (b *batch) feed(i int, x *result) *result {
	exps := b.tensor(i, "ffn_down_exps.weight")
	if len(exps) < 3 {
		return b.dense(i, x, "", b.embd)
	}
	n, used := exps[2], b.sizes("expert_used_count", len(b.attends), 0)[i]
	scores := b.op(b.f32(n), x)
	probs := b.over(scores.bytes, scores)
	chosen := b.cut(b.op(b.f32(n), probs), b.f32(used)) // sorted, of which the first are taken
	weights := b.op(b.f32(used), b.view(probs), chosen)
	if norm, ok := b.Get("expert_weights_norm"); ok {
		if v, _ := norm.Bool(); v {
			sum := b.op(b.f32(1), b.view(weights))
			weights = b.over(weights.bytes, b.view(weights), b.over(sum.bytes, sum))
		}
	}
	one := b.view(x)
	hidden := exps[0]
	var act *result
	if b.tensor(i, "ffn_gate_up_exps.weight") != nil {
		both := b.op(b.f32(2*used*hidden), one, chosen)
		act = b.op(b.f32(used*hidden), b.cut(both, both.bytes/2), b.cut(both, both.bytes/2))
	} else {
		up := b.op(b.f32(used*hidden), one, chosen)
		act = up
		if b.tensor(i, "ffn_gate_exps.weight") != nil {
			act = b.op(b.f32(used*hidden), b.op(b.f32(used*hidden), one, chosen), up)
		} else {
			act = b.over(up.bytes, up)
		}
	}
	each := b.op(b.f32(used*exps[1]), act, chosen)
	each = b.over(each.bytes, each, b.view(weights))
	var parts []*result
	for range min(used, 64) {
		parts = append(parts, b.cut(each, b.f32(exps[1])))
	}
	sum := x
	for k, part := range parts {
		switch k {
		case 0:
			sum = part
		default:
			sum = b.over(part.bytes, sum, part)
		}
	}
	if b.tensor(i, "ffn_down_shexp.weight") != nil {
		shared := b.dense(i, x, "_shexp", b.embd)
		sum = b.over(sum.bytes, sum, shared)
	}
	if b.tensor(i, "ffn_down.weight") != nil {
		sum = b.over(sum.bytes, sum, b.dense(i, x, "", b.embd))
	}
	return sum
}

// dense is one feed-forward network.
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
		gate := b.product1(i, x, hidden, "ffn_gate"+suffix)
		act = b.op(b.f32(hidden), gate, b.product1(i, x, hidden, "ffn_up"+suffix))
	case up > hidden: // both in one
		act = b.op(b.f32(hidden), b.product1(i, x, up, "ffn_up"+suffix))
	default:
		act = b.product1(i, x, hidden, "ffn_up"+suffix)
		act = b.over(act.bytes, act)
	}
	return b.product1(i, act, width, "ffn_down"+suffix)
}
