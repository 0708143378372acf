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

// hasIndexer reports whether the layer has an indexer of its own.
func (b *batch) hasIndexer(scores []graph.ScoreStep) bool {
	for _, s := range b.scope.ScoreSteps(scores) {
		if _, ok := s.(graph.Indexer); ok {
			return true
		}
	}
	return false
}

// blocks returns the masks of the blocks that groups of heads choose.
func (b *batch) blocks(x, mask *result, c *Cache) *result {
	bytes := b.product("scores", 4, b.number("@attention.indexer.head_count"), c.Cells, b.tokens)
	groups := b.op(bytes, b.partView(b.op(bytes, x), bytes))
	return b.op(bytes/2, b.inPlace(bytes, groups, b.op(b.product("scores", 4, c.Cells, b.tokens), mask)))
}
