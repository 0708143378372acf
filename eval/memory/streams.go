package memory

import "ggforge/arch/graph"

// addStreams adds the streams of AltUp beside x, the first one, or the copies of x for hyper-connections.
func (b *batch) addStreams(x *result) {
	switch b.graph.Streams.(type) {
	case graph.HyperConnections, graph.GatedStreams:
		b.streams = b.op(b.number("@hyper_connection.count")*x.bytes, x)
	}
	if _, ok := b.graph.Streams.(graph.AltUp); !ok {
		return
	}
	n := b.number("@altup.num_inputs")
	all := b.op((n-1)*x.bytes, b.op((n-1)*x.bytes, x))
	b.streams = b.op(n*x.bytes, x, b.inPlace(all.bytes, all))
	b.streams = b.op(n*x.bytes, b.partView(b.streams, n*x.bytes))
}

// layer adds the steps of a layer. With AltUp they run on the prediction of the first stream, and correct all.
func (b *batch) layer(x *result) *result {
	if _, ok := b.graph.Streams.(graph.AltUp); !ok {
		return b.steps(b.layerSteps, x)
	}
	n, all := b.number("@altup.num_inputs"), b.streams.bytes
	route := func(x *result, size int64) *result {
		r := b.op(b.floats(n), b.norm(x, graph.Norm{Name: "altup_router_norm"}))
		return b.op(b.floats(size), b.inPlace(r.bytes, r))
	}
	predicted := b.op(all, b.partView(b.streams, all), route(b.partView(b.streams, x.bytes), n*n))
	predicted = b.inPlace(all, b.op(all, b.partView(predicted, all)), b.streams)
	active, last := b.partView(predicted, x.bytes), b.last
	b.input, b.last = active, false
	y := b.steps(b.layerSteps, active)
	diff := b.inPlace(x.bytes, y, active)
	corrected := b.inPlace(all, b.inPlace(all, b.op(all, diff), route(y, n)), predicted)
	b.expand(corrected)
	first := b.perLayerOf(b.op(x.bytes, b.partView(corrected, x.bytes)))
	rest := b.op(all-x.bytes, b.partView(corrected, all-x.bytes), first)
	b.streams = b.op(all, b.partView(corrected, x.bytes), rest)
	b.last = last
	return b.partView(b.streams, x.bytes)
}

// connected adds a part that reads a sum of all streams, to each of which its output is added. It returns the first
// stream.
func (b *batch) connected(of graph.Residual, x *result, mixed bool) *result {
	all := b.streams
	var sum, pairs *result
	if mixed {
		sum, pairs = b.mixedSum(x.bytes)
	} else {
		sum = b.sumOfStreams(x.bytes, 2)
	}
	cur := b.part(of.Part, b.norm(sum, of.Pre))
	if cur == nil {
		return x
	}
	if b.last {
		cur, all = b.choose(cur), b.choose(all)
		b.last = false
	}
	sources := []*result{all, b.norm(cur, of.Post)}
	if pairs != nil {
		sources = append(sources, pairs)
	}
	b.streams = b.op(all.bytes, sources...)
	return b.partView(b.streams, cur.bytes)
}

// mixedSum returns a sum of all streams, and the factors by which they are mixed afterwards.
func (b *batch) mixedSum(bytes int64) (sum, pairs *result) {
	n := b.number("@hyper_connection.count")
	mixes := b.op(b.floats(n*(n+2)), b.op(b.streams.bytes, b.view(b.streams)))
	before := b.op(b.floats(n), b.partView(mixes, b.floats(n)))
	after := b.op(b.floats(n), b.partView(mixes, b.floats(n)))
	pairs = b.op(b.floats(n*n), mixes, after)
	return b.op(bytes, b.streams, before), pairs
}

// sumOfStreams returns a sum of all streams with factors computed from them; kinds: other factors are computed, too.
func (b *batch) sumOfStreams(bytes, kinds int64) *result {
	n := b.number("@hyper_connection.count")
	mixes := b.op(b.floats(kinds*n), b.op(b.streams.bytes, b.streams))
	return b.op(bytes, b.streams, mixes)
}

// attended adds a part that reads a sum of the stream and of kept states. In the last layer results are computed for all
// tokens: only those after it are left out.
func (b *batch) attended(of graph.Attended, x *result) *result {
	b.last = false
	in, keeps := b.sumOfStates(x), of.Keeps && int64(b.scope.Layer())%max(1, b.number("@attn_res.block_size")) == 0
	switch {
	case keeps && b.streams == nil:
		b.streams = b.view(x)
	case keeps:
		b.streams = b.op(b.streams.bytes+x.bytes, b.streams, b.view(x))
	}
	in = b.norm(in, of.Pre)
	b.expand(in)
	cur := b.part(of.Part, in)
	if cur == nil || keeps {
		return cur
	}
	return b.inPlace(x.bytes, x, cur)
}

// sumOfStates returns the sum of x and of the kept states, weighted by the softmax of scores.
func (b *batch) sumOfStates(x *result) *result {
	if b.streams == nil {
		return x
	}
	n := b.streams.bytes / max(1, x.bytes)
	normed := b.op(b.streams.bytes, b.op(b.streams.bytes, b.streams))
	kept := b.op(b.floats(n), normed)
	own := b.op(b.floats(1), b.op(x.bytes, b.op(x.bytes, x)))
	weights := b.op(b.floats(n+1), b.view(kept), own)
	weights = b.inPlace(weights.bytes, weights)
	sum := b.op(x.bytes, b.streams, b.op(b.floats(n), b.partView(weights, b.floats(n))))
	return b.inPlace(x.bytes, sum, b.op(x.bytes, x, b.op(b.floats(1), b.partView(weights, b.floats(1)))))
}

// fromStreams adds a part that reads a mean of all gated streams, to each of which its output is added. It returns the
// first stream.
func (b *batch) fromStreams(of graph.FromStreams, x *result) *result {
	all := b.streams
	sum, factors := b.gatedSum(x.bytes, true)
	b.expand(sum)
	cur := b.part(of.Part, sum)
	if b.last {
		cur, factors, all = b.choose(cur), b.choose(factors), b.choose(all)
		b.last = false
	}
	factors = b.inPlace(factors.bytes, b.inPlace(factors.bytes, factors))
	wide := b.op(all.bytes, cur)
	b.streams = b.inPlace(all.bytes, all, b.inPlace(all.bytes, wide, factors))
	return b.partView(b.streams, cur.bytes)
}

// gatedSum returns the mean of all gated streams and, with inject, the factors of a part's outputs.
func (b *batch) gatedSum(bytes int64, inject bool) (sum, factors *result) {
	all := b.streams.bytes
	normed := b.inPlace(all, b.op(all, b.streams))
	low := b.op(b.floats(b.number("@hyper_connection.low_rank")), normed)
	low = b.inPlace(low.bytes, b.inPlace(low.bytes, low))
	gates := b.inPlace(all, b.op(all, low))
	sum = b.inPlace(bytes, b.op(bytes, b.partView(b.inPlace(all, normed, gates), bytes)))
	if inject {
		b.expand(sum)
		factors = b.op(b.floats(b.number("@hyper_connection.count")), normed)
	}
	return sum, factors
}

// ngramEmbedding adds an update of all streams from rows of a table.
func (b *batch) ngramEmbedding(x *result) *result {
	all, size := b.streams.bytes, b.number("@ple.ngram_size")
	width := b.number("@embedding_length_per_layer_input") * b.number("@ple.heads_per_ngram") * max(0, size-1)
	kept := b.state(b.number("@hyper_connection.count") * b.width() * size * max(0, b.number("@ple.conv_kernel")-1))
	rows := b.op(b.floats(width), b.addInput(b.floats(b.number("@ple.heads_per_ngram")*max(0, size-1))))
	key := b.inPlace(all, b.op(all, b.op(all, rows)))
	query := b.inPlace(all, b.op(all, b.streams))
	gates := b.op(b.floats(b.number("@hyper_connection.count")), b.inPlace(all, key, query))
	gated := b.inPlace(all, b.op(all, b.op(x.bytes, rows)), gates)
	normed := b.inPlace(all, b.op(all, gated))
	padded := b.op(all+kept.bytes, kept, normed)
	b.store(b.op(kept.bytes, b.partView(padded, kept.bytes)))
	conv := b.op(all, b.partView(padded, all))
	for range b.number("@ple.conv_kernel") {
		conv = b.inPlace(all, conv, b.op(all, b.partView(padded, all)))
	}
	b.streams = b.inPlace(all, b.streams, b.inPlace(all, gated, b.inPlace(all, conv)))
	return b.partView(b.streams, x.bytes)
}

// joinStreams returns the mean of all streams.
func (b *batch) joinStreams(x *result) *result {
	if b.streams == nil {
		return x
	}
	if _, ok := b.graph.Streams.(graph.AttentionResiduals); ok {
		b.last = true
		return b.choose(b.sumOfStates(x))
	}
	switch of := b.graph.Streams.(type) {
	case graph.HyperConnections:
		if of.Mean {
			sum := b.op(x.bytes, b.partView(b.streams, x.bytes))
			return b.inPlace(x.bytes, sum, b.partView(b.streams, x.bytes))
		}
		return b.sumOfStreams(x.bytes, 1)
	case graph.GatedStreams:
		sum, _ := b.gatedSum(x.bytes, false)
		return sum
	}
	others := b.streams.bytes - x.bytes
	cur := b.op(others, b.partView(b.streams, others))
	cur = b.inPlace(others, cur)
	return b.op(x.bytes, x, b.partView(cur, x.bytes))
}
