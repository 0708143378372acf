package memory

import "ggforge/arch/graph"

// indexerKeys adds the keys of an indexer, which are stored.
func (b *batch) indexerKeys(x *result) {
	n := b.floats(b.number("@attention.indexer.key_length"))
	k := b.op(n, b.op(n, x)) // layer norm
	k = b.inPlace(n, b.inPlace(n, k))
	k = b.op(n, b.rotation(), b.op(n, b.view(k), b.pos))
	if b.indexerMask == nil {
		b.indexerIndices = b.addInput(8 * b.tokens)
		b.indexerMask = b.addInput(b.product("a mask", 2, b.caches[0].Cells, b.tokens))
	}
	b.store(b.view(k), b.indexerIndices)
}

// rotation returns the matrix by which queries and keys of indexers are multiplied.
func (b *batch) rotation() *result {
	if b.rotated == nil {
		n := b.number("@attention.indexer.key_length")
		b.rotated = b.addInput(b.product("a rotation", 4, n, n))
	}
	return b.rotated
}

// indexer returns the tokens with the best scores; low are the compressed queries, or x.
func (b *batch) indexer(x, low *result) *result {
	heads, size := b.number("@attention.indexer.head_count"), b.number("@attention.indexer.key_length")
	top := b.floats(b.number("@attention.indexer.top_k"))
	q := b.floats(heads * size)
	queries := b.op(q, b.rotation(), b.op(q, b.view(b.op(q, low)), b.pos))
	weights := b.inPlace(b.floats(heads), b.op(b.floats(heads), x))
	scores := b.op(b.product("scores", 4, b.caches[0].Cells, b.tokens), b.view(queries), weights, b.indexerMask)
	return b.op(top, b.op(top, scores))
}

// bestMask returns the mask of the tokens that the last indexer chose.
func (b *batch) bestMask(mask *result) *result {
	if b.best == nil {
		return mask
	}
	zeros := b.op(b.best.bytes, b.op(b.best.bytes))
	b.expand(zeros)
	b.expand(b.best)
	all := b.write(b.op(mask.bytes, mask), zeros, b.view(b.best))
	return b.inPlace(mask.bytes, b.view(all), mask)
}

// ownIndexer returns the indexer of the layer, if it has one of its own.
func (b *batch) ownIndexer(scores []graph.ScoreStep) (x graph.Indexer, ok bool) {
	for _, s := range b.scope.ScoreSteps(scores) {
		if x, ok = s.(graph.Indexer); ok {
			return x, true
		}
	}
	return x, false
}

// poolInputs are the inputs of indexers of pools.
type poolInputs struct{ indices, cells, members, mask, tail, chosen, fresh, rows *result }

// poolMask returns the mask of the tokens in the pools that an indexer chooses; low are the compressed queries.
func (b *batch) poolMask(x, low, mask *result) *result {
	heads, size := b.number("@attention.indexer.head_count"), b.number("@attention.indexer.key_length")
	pool, cells := max(1, b.number("@attention.indexer.kpool")), b.caches[0].Cells
	pools, fresh := cells/pool, b.tokens/pool+b.sequences
	top := min(pools, b.number("@attention.indexer.top_k")/pool)
	chosen := top*pool + pool - 1
	if b.pools == nil {
		b.pools = &poolInputs{indices: b.addInput(8 * b.tokens), cells: b.addInput(4 * pools),
			members: b.addInput(4 * pools * pool), mask: b.addInput(b.product("a mask", 2, pools, b.tokens)),
			tail: b.addInput(b.floats(pool - 1)), chosen: b.addInput(b.floats(chosen)),
			fresh: b.addInput(4 * fresh * pool), rows: b.addInput(8 * fresh)}
	}
	in := b.pools
	one := b.floats(size)
	q := b.op(b.floats(heads*size), low)
	k := b.inPlace(one, b.inPlace(one, b.op(one, b.op(one, x)))) // layer norm
	b.store(b.op(3*one, b.op(2*one, k, b.op(one, x)), b.op(one)), in.indices)
	keys := b.product("pools", 4, fresh, pool, size)
	rows := b.op(2*keys, in.fresh)
	logits := b.op(keys, b.op(keys, b.partView(rows, keys)))
	weights := b.inPlace(keys, logits)
	own := b.op(keys, b.partView(rows, keys))
	b.store(b.op(keys/pool, b.inPlace(keys, weights, own)), in.rows)
	pooled := b.op(b.product("pools", 4, pools, size), in.cells)
	weight := b.inPlace(b.floats(heads), b.op(b.floats(heads), x))
	scores := b.op(b.floats(pools), b.view(q), b.view(pooled), weight, in.mask)
	best := b.op(b.floats(top), scores)
	order := b.op(b.floats(top), b.op(b.floats(top), b.view(scores), best))
	sorted := b.op(b.floats(top), b.op(b.floats(top), b.op(b.floats(top), best), order))
	members := b.op(b.floats(chosen), b.op(b.floats(top*pool), in.members, sorted), in.tail)
	b.expand(members)
	all := b.product("a mask", 2, cells+chosen, b.tokens)
	masks := b.op(all, b.op(2*(cells+chosen)))
	zeros := b.op(b.floats(chosen)/2, b.op(2*chosen))
	places := b.op(b.floats(chosen), members)
	places = b.inPlace(places.bytes, places, b.op(b.floats(chosen), in.chosen))
	places = b.op(places.bytes, places)
	return b.op(mask.bytes, b.partView(b.write(masks, zeros, places), mask.bytes), mask)
}

// blocks returns the masks of the blocks that groups of heads choose.
func (b *batch) blocks(x, mask *result, c *Cache) *result {
	bytes := b.product("scores", 4, b.number("@attention.indexer.head_count"), c.Cells, b.tokens)
	groups := b.op(bytes, b.partView(b.op(bytes, x), bytes))
	return b.op(bytes/2, b.inPlace(bytes, groups, b.op(b.product("scores", 4, c.Cells, b.tokens), mask)))
}
