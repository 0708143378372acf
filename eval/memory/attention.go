package memory

import "ggforge/arch/graph"

// attention adds attention with the cache or, without one, among the tokens of the batch.
func (b *batch) attention(a graph.Attention, x *result) *result {
	s := b.scope
	heads, kv, key, val := s.Size("n_head"), s.Size("n_head_kv"), s.Size("n_embd_head_k"), s.Size("n_embd_head_v")
	nq, nk, nv := b.product("queries", heads, key), b.product("keys", kv, key), b.product("values", kv, val)
	own, projection := true, a.QKV
	if shared, ok := projection.(graph.SharedKV); ok {
		own, projection = int64(s.Layer()) < s.Size(shared.From), shared.Own
	}
	if !own && b.cache(a) == nil {
		b.fail("layer %d uses the keys of another layer, which no cache has: layers with its window have none of their own, "+
			"or attention is bidirectional", s.Layer())
		return x
	}
	_, gated := projection.(graph.GatedQueries)
	var q, k, v, gate *result
	switch all := b.rows("attn_qkv", 0); {
	case all > 0:
		r := b.linear(x, "attn_qkv", all)
		q, k, v = b.partView(r, b.floats(nq)), b.partView(r, b.floats(nk)), b.partView(r, b.floats(nv))
		if b.adapters != nil {
			q, k, v = b.adapt(b.op(q.bytes, q), x), b.adapt(b.op(k.bytes, k), x), b.adapt(b.op(v.bytes, v), x)
		}
	case gated:
		r := b.linear(x, "attn_q", 2*nq)
		q, gate = b.partView(r, b.floats(nq)), b.partView(r, b.floats(nq))
	default:
		q = b.view(b.linear(x, "attn_q", nq))
	}
	if own && k == nil {
		if _, ok := projection.(graph.ValueExperts); ok && b.ne("attn_v_exps") != nil {
			v = b.valueExperts(x, nv)
		}
		k = b.linear(x, "attn_k", nk)
		switch {
		case v != nil:
		case b.ne("attn_v") != nil:
			v = b.linear(x, "attn_v", nv)
		default:
			v = k
		}
		k, v = b.view(k), b.view(v)
	}
	if !own {
		k, v = nil, nil
	}
	q, k, v = b.headSteps(a.Steps, q, k, v)
	cur := b.attend(a, q, k, v, heads, kv, key, val)
	if gate != nil {
		cur = b.inPlace(cur.bytes, b.view(cur), b.inPlace(gate.bytes, b.op(gate.bytes, gate)))
	}
	return b.output(a.After, a.Out, x, cur, heads, val)
}

// output adds steps on the outputs of heads, and the output projection.
func (b *batch) output(after []graph.OutStep, out string, x, cur *result, heads, val int64) *result {
	factor := false
	for _, step := range after {
		switch step := step.(type) {
		case graph.OutGate, graph.SoftplusGate:
			if b.ne("attn_gate") != nil {
				g := b.linear(x, "attn_gate", b.rows("attn_gate", heads*val))
				cur = b.inPlace(cur.bytes, cur, b.inPlace(g.bytes, g))
			}
		case graph.OutNorm:
			cur = b.norm(cur, graph.Norm{Name: step.Name})
		case graph.OutFactor: // of the projection, in the runtime
			factor = true
		}
	}
	if out == "" {
		out = "attn_output"
	}
	cur = b.linear(cur, out, b.width())
	if factor {
		cur = b.inPlace(cur.bytes, cur)
	}
	return cur
}

// valueExperts adds values of chosen experts, n values for each token.
func (b *batch) valueExperts(x *result, n int64) *result {
	experts := b.op(b.floats(b.number("@attention.value_expert_count")), x)
	probs := b.inPlace(experts.bytes, experts)
	used := b.number("@attention.value_expert_used_count")
	chosen := b.partView(b.op(probs.bytes, probs), b.floats(used))
	each := b.inPlace(b.floats(used*n), b.op(b.floats(used*n), b.view(x), chosen))
	weights := b.op(b.floats(used), probs, chosen)
	weights = b.inPlace(weights.bytes, weights, b.op(b.floats(1), b.view(weights)))
	sum := b.sum(b.inPlace(each.bytes, each, weights), n, used)
	b.expand(sum)
	return sum
}

// headSteps adds steps on queries, keys and values; k and v may be nil.
func (b *batch) headSteps(steps []graph.HeadStep, q, k, v *result) (_, _, _ *result) {
	normed := func(x *result, tensor string) *result {
		if x == nil || b.ne(tensor) == nil {
			return x
		}
		return b.norm(x, graph.Norm{Name: tensor})
	}
	inPlace := func(x *result, sources ...*result) *result {
		if x == nil {
			return nil
		}
		return b.inPlace(x.bytes, append([]*result{x}, sources...)...)
	}
	for _, s := range b.scope.HeadSteps(steps) {
		switch s := s.(type) {
		case graph.RoPE:
			q, k = inPlace(q, b.pos), inPlace(k, b.pos)
		case graph.QKNorm:
			q, k = normed(q, "attn_q_norm"), normed(k, "attn_k_norm")
		case graph.QKLayerNorm:
			q, k = normed(q, "attn_q_norm"), normed(k, "attn_k_norm")
		case graph.UnitNorm:
			q, k = inPlace(q), inPlace(k)
		case graph.QueryGain:
			q = inPlace(q)
		case graph.ValueNorm:
			v = inPlace(v)
		case graph.Temperature:
			if f, ok := b.scope.Value(s.Scale); ok && f.Float() != 0 {
				if b.temperature == nil {
					b.temperature = b.addInput(4 * b.tokens)
				}
				q = inPlace(q, b.temperature)
			}
		}
	}
	return q, k, v
}

// window returns 1 for layers with a window, 0 for others.
func (b *batch) window(w graph.Window) int {
	if w.Tokens != "" && b.scope.Size(w.Tokens) > 0 {
		return 1
	}
	return 0
}

// cache returns the cache of layers with or without a window, nil for none: the runtime does not use that of
// bidirectional layers.
func (b *batch) cache(a graph.Attention) *Cache {
	if c := b.caches[b.window(a.Window)]; c.Layers > 0 && a.Sees != graph.Both {
		return c
	}
	return nil
}

// padded returns the number of keys of layers without a cache.
func (b *batch) padded() int64 { return (b.tokens + 255) / 256 * 256 }

// mask returns the mask of layers with or without a window: of the cells of c or, if it is nil, of the batch.
func (b *batch) mask(window int, c *Cache) *result {
	cached, cells, number := 0, b.padded(), int64(2)
	if c != nil {
		cached, cells = 1, c.Cells
		if b.noFlash {
			number = 4
		}
	}
	m := &b.masks[cached][window]
	if *m == nil {
		*m = b.addInput(b.product("a mask", number, cells, b.tokens))
	}
	return *m
}

// keep writes keys and values to a cache. v may be nil.
func (b *batch) keep(window int, c *Cache, k, v *result) {
	in := &b.indices[window]
	for i, x := range []*result{k, v} {
		if in[i] == nil {
			n := int64(1)
			if i == 1 && b.noFlash { // values are transposed
				n = c.values
			}
			in[i] = b.addInput(b.product("indices", 8, b.tokens, n))
		}
		if x != nil {
			b.store(b.view(x), in[i])
		}
	}
}

// attend adds softmax(q·k)·v. In layers without keys and values of their own, k and v are nil.
func (b *batch) attend(a graph.Attention, q, k, v *result, heads, kv, key, val int64) *result {
	w, c, biased := b.window(a.Window), b.cache(a), false
	for _, s := range b.scope.ScoreSteps(a.Scores) {
		_, is := s.(graph.RelativeBias)
		biased = biased || is
	}
	b.expand(q)
	order := []*result{k, v}
	if c != nil && b.model.window == 0 { // one cache
		order = []*result{v, k}
	}
	for _, x := range order {
		if x != nil {
			b.expand(x)
		}
	}
	n := b.floats(heads * val)
	cells := b.padded()
	if c != nil {
		cells = c.Cells
		if k != nil {
			b.keep(w, c, k, v)
		}
	}
	var cur *result
	mask := b.mask(w, c)
	for _, s := range b.scope.ScoreSteps(a.Scores) {
		if _, ok := s.(graph.BlockIndexer); ok && c != nil {
			mask = b.blocks(q, mask, c)
		}
	}
	switch {
	case b.noFlash || biased:
		cur = b.scores(q, k, v, mask, scores{c != nil, biased, cells, heads, n, b.product("values", 2, cells, kv, val)})
	case c != nil:
		cur = b.op(n, b.view(q), mask)
	default:
		cur = b.uncached(n, q, k, v, mask, b.product("keys", 4, cells, kv, key), b.product("keys", 4, cells, kv, val))
	}
	b.expand(cur)
	return b.view(cur)
}

// uncached adds flash attention with keys and values that are in no cache, of so many bytes, to outputs of n bytes.
func (b *batch) uncached(n int64, q, k, v, mask *result, keys, values int64) *result {
	sources := []*result{b.view(q)}
	for i, x := range []*result{k, v} {
		bytes := []int64{keys, values}[i]
		sources = append(sources, b.op(bytes/2, b.partView(b.op(bytes, x), bytes)))
	}
	return b.op(n, append(sources, mask)...)
}

// crossAttention adds attention to the encoder's states: of as many tokens as the model was trained for, as the runtime
// plans before there is a text.
func (b *batch) crossAttention(x *result) *result {
	s, n := b.scope, b.context()
	heads, kv, key, val := s.Size("n_head"), s.Size("n_head_kv"), s.Size("n_embd_head_k"), s.Size("n_embd_head_v")
	if b.encoded == nil {
		b.encoded = b.addInput(b.product("states", 4, n, b.width()))
	}
	keys, values := b.product("keys", 4, n, kv, key), b.product("values", 4, n, kv, val)
	q := b.view(b.linear(x, "cross_attn_q", b.product("queries", heads, key)))
	k, v := b.view(b.op(keys, b.encoded)), b.view(b.op(values, b.encoded))
	for _, x := range []*result{q, k, v} {
		b.expand(x)
	}
	if b.seen == nil {
		b.seen = b.addInput(b.product("a mask", 2, n, b.tokens))
	}
	cur := b.uncached(b.floats(heads*val), q, k, v, b.seen, keys, values)
	b.expand(cur)
	return b.linear(b.view(cur), "cross_attn_o", b.width())
}

// scores are the sizes of attention without flash attention.
type scores struct {
	cached, biased bool
	cells, heads   int64
	out, values    int64 // bytes: of outputs, of the cache's values
}

// scores adds attention without flash attention: the scores of all tokens are in memory.
func (b *batch) scores(q, k, v, mask *result, s scores) *result {
	bytes := b.product("scores", 4, s.heads, s.cells, b.tokens)
	keys, values := []*result(nil), []*result(nil)
	switch {
	case !s.cached: // as many as cells, values in the order of products
		cont := b.op(v.bytes, b.partView(b.op(v.bytes, v), v.bytes))
		b.expand(cont)
		keys, values = []*result{b.op(k.bytes, k)}, []*result{cont}
	case !b.noFlash:
		cont := b.op(s.values)
		b.expand(cont)
		values = []*result{cont}
	}
	r := b.op(bytes, append(keys, b.view(q))...)
	if s.biased {
		if b.buckets == nil {
			b.buckets = b.addInput(b.product("buckets", 4, s.cells, b.tokens))
		}
		bias := b.op(bytes, b.partView(b.op(bytes, b.buckets), bytes))
		if !s.cached {
			bias = b.op(bytes, bias)
		}
		r = b.inPlace(bytes, r, bias)
	}
	r = b.inPlace(bytes, r, mask)
	return b.op(s.out, b.partView(b.op(s.out, append(values, r)...), s.out))
}

// mla adds MLA: with attn_k_b and attn_v_b, queries and attention outputs are multiplied by them, otherwise keys and
// values of all heads are computed.
func (b *batch) mla(m graph.MLA, x *result) *result {
	s := b.scope
	heads, rank, rot := s.Size("n_head"), s.Size("n_lora_kv"), s.Size("n_rot")
	full, value := s.Size("n_embd_head_k_mla"), s.Size("n_embd_head_v_mla")
	rotates := false
	for _, step := range s.HeadSteps(m.Steps) {
		_, is := step.(graph.RoPE)
		rotates = rotates || is
	}
	rope := func(x *result) *result {
		if rotates {
			return b.op(x.bytes, x, b.pos)
		}
		return x
	}
	if of, ok := b.ownIndexer(m.Scores); ok && !of.Pooled {
		b.indexerKeys(x)
	}
	low := x
	if n := b.rows("attn_q_a", 0); n > 0 {
		low = b.norm(b.op(b.floats(n), x), graph.Norm{Name: "attn_q_a_norm"})
	}
	q := b.op(b.floats(heads*full), low)
	kv := b.op(b.floats(rank+rot), x)
	compressed := b.norm(b.partView(kv, b.floats(rank)), graph.Norm{Name: "attn_kv_a_norm"})
	kpe := b.partView(kv, b.floats(rot))
	for _, step := range s.HeadSteps(m.Steps) {
		if _, ok := step.(graph.SharedKeyNorm); ok {
			kpe = b.norm(kpe, graph.Norm{Name: "attn_k_norm"})
		}
	}
	kpe = rope(kpe)
	w := b.window(m.Window)
	a := graph.Attention{Window: m.Window}
	if b.ne("attn_kv_b") != nil {
		q = b.inPlace(q.bytes, q, b.pos)
		all := b.op(b.floats(heads*(max(0, full-rot)+value)), compressed)
		v := b.op(b.floats(heads*value), b.partView(all, b.floats(heads*value)))
		k := b.op(b.floats(heads*full), b.partView(all, b.floats(heads*max(0, full-rot))), b.op(b.floats(heads*rot), kpe))
		return b.output(m.After, "", x, b.attend(a, q, k, v, heads, heads, full, value), heads, value)
	}
	pe := rope(b.partView(q, b.floats(heads*rot)))
	absorbed := b.op(b.floats(heads*rank), b.partView(q, b.floats(heads*max(0, full-rot))))
	absorbed = b.partView(absorbed, absorbed.bytes)
	q = b.op(b.floats(heads*(rank+rot)), absorbed, pe)
	v := b.view(compressed)
	k := b.op(b.floats(rank+rot), v, kpe)
	b.expand(q)
	b.expand(v)
	b.expand(k)
	c := b.cache(a)
	if c != nil {
		b.keep(w, c, k, nil)
	}
	mask := b.mask(w, c)
	for _, step := range s.ScoreSteps(m.Scores) {
		switch step := step.(type) {
		case graph.Indexer:
			if step.Pooled {
				mask = b.poolMask(x, low, mask)
				break
			}
			b.best = b.indexer(x, low)
			mask = b.bestMask(mask)
		case graph.SharedIndexer:
			mask = b.bestMask(mask)
		}
	}
	cur := b.op(b.floats(heads*rank), b.partView(q, q.bytes), mask)
	cur = b.op(b.floats(heads*value), b.partView(cur, cur.bytes))
	cur = b.op(cur.bytes, b.partView(cur, cur.bytes))
	b.expand(cur)
	return b.output(m.After, "", x, b.view(cur), heads, value)
}
