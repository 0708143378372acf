package memory

import "ggforge/arch/graph"

// compressedAttention adds attention to the tokens of a window and to compressed vectors.
func (b *batch) compressedAttention(a graph.CompressedAttention, x *result) *result {
	s := b.scope
	heads, key, rot := s.Size("n_head"), s.Size("n_embd_head_k"), s.Size("n_rot")
	ratio := b.number("@attention.compress_ratios or 0")
	rotated := func(x *result, heads int64) *result {
		pe := b.op(b.floats(heads*rot), b.partView(x, b.floats(heads*rot)), b.pos)
		return b.op(x.bytes, b.partView(x, b.floats(heads*max(0, key-rot))), pe)
	}
	low := b.norm(b.linear(x, "attn_q_a", b.rows("attn_q_a", 0)), graph.Norm{Name: "attn_q_a_norm"})
	q := b.linear(low, "attn_q_b", heads*key)
	q = rotated(b.inPlace(q.bytes, b.view(q)), heads)
	kv := rotated(b.view(b.norm(b.linear(x, "attn_kv", key), graph.Norm{Name: "attn_kv_a_norm"})), 1)
	window := graph.Window{Tokens: a.Window}
	w, c := b.window(window), b.cache(graph.Attention{Window: window})
	indexer := int64(0)
	if ratio == graph.IndexedRatio {
		indexer = b.number("@attention.indexer.key_length")
	}
	if ratio > 0 {
		b.compress("attn_compressor", x, key, ratio)
	}
	if indexer > 0 {
		b.compress("indexer_compressor", x, indexer, ratio)
	}
	b.expand(q)
	b.expand(kv)
	b.keep(w, c, kv, nil)
	mask, keys := b.mask(w, c), []*result(nil)
	if ratio > 0 && c != nil {
		cells := b.compressedCells(ratio)
		all := b.compressedMask(ratio)
		if indexer > 0 {
			all = b.chooseCompressed(low, x, all, indexer, cells)
		}
		keys = []*result{b.op(b.product("keys", 2, c.Cells+cells, key))}
		mask = b.op(b.product("a mask", 2, c.Cells+cells, b.tokens), mask, all)
	}
	cur := b.op(b.floats(heads*key), append(keys, b.view(q), mask)...)
	b.expand(cur)
	cur = rotated(b.view(cur), heads)
	groups := b.rows("attn_output_a", 0)
	cur = b.op(b.floats(groups), b.partView(cur, cur.bytes))
	cur = b.op(cur.bytes, b.partView(cur, cur.bytes))
	return b.linear(cur, "attn_output_b", b.width())
}

// compressedCells returns the cells of the cache for vectors of ratio tokens.
func (b *batch) compressedCells(ratio int64) int64 {
	return roundUp((b.caches[0].Cells + ratio - 1) / ratio)
}

// compressedMask returns the mask of vectors of ratio tokens.
func (b *batch) compressedMask(ratio int64) *result {
	if b.compressedMasks == nil {
		b.compressedMasks = map[int64]*result{}
	}
	if b.compressedMasks[ratio] == nil {
		b.compressedMasks[ratio] = b.addInput(b.product("a mask", 2, b.compressedCells(ratio), b.tokens))
	}
	return b.compressedMasks[ratio]
}

// compress adds a compressor of vectors of n values, which are stored: those that may end in a batch.
func (b *batch) compress(name string, x *result, n, ratio int64) {
	rows := b.rows(name+"_kv", n)
	halves := max(1, rows/max(1, n))
	blocks := b.tokens/ratio + b.sequences
	read := halves * ratio * blocks
	part := func(of int64) int64 { return b.product("tokens of vectors", 4, of, n) }
	inputs := func(matrix string) *result {
		r := b.op(b.floats(rows), x)
		if matrix == "_gate" {
			r = b.inPlace(r.bytes, r, b.op(r.bytes))
		}
		all := b.op(b.product("a state", 4, rows, b.tokens+halves*ratio*b.sequences), r)
		if halves == 1 {
			return b.op(part(read), b.op(part(read), all))
		}
		some := b.op(b.product("tokens of vectors", 4, rows, read), b.op(all.bytes, all))
		half := part(ratio * blocks)
		both := b.op(part(read), b.op(half, b.partView(some, half)), b.op(half, b.partView(some, half)))
		return b.op(both.bytes, b.partView(both, both.bytes))
	}
	values, scores := inputs("_kv"), inputs("_gate")
	scores = b.inPlace(scores.bytes, scores)
	y := b.op(part(blocks), b.inPlace(values.bytes, values, scores))
	y = b.inPlace(y.bytes, b.inPlace(y.bytes, b.view(b.op(y.bytes, b.partView(y, y.bytes)))))
	b.store(b.op(y.bytes, b.partView(y, y.bytes), b.op(y.bytes, b.partView(y, y.bytes))))
}

// chooseCompressed returns the mask of the compressed vectors that an indexer chooses.
func (b *batch) chooseCompressed(low, x, mask *result, size, cells int64) *result {
	heads := b.number("@attention.indexer.head_count")
	q := b.floats(heads * size)
	queries := b.op(q, b.rotation(), b.op(q, b.op(q, low), b.pos))
	weights := b.inPlace(b.floats(heads), b.op(b.floats(heads), x))
	scores := b.op(b.product("scores", 4, cells, b.tokens), b.view(queries), weights, mask)
	top := b.floats(min(cells, b.number("@attention.indexer.top_k")))
	chosen := b.op(top, b.op(top, scores))
	zeros := b.op(top/2, b.op(top/2))
	all := b.write(b.op(mask.bytes, mask), zeros, b.view(chosen))
	return b.inPlace(mask.bytes, b.view(all), mask)
}
