package memory

import "ggforge/arch/graph"

// addStreams adds the streams of AltUp beside x, the first one, or the copies of x for hyper-connections.
func (b *batch) addStreams(x *result) {
	if _, ok := b.graph.Streams.(graph.HyperConnections); ok {
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
		return b.steps(b.graph.Layer, x)
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
	y := b.steps(b.graph.Layer, active)
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
func (b *batch) connected(of graph.Connected, x *result) *result {
	all := b.streams
	sum := b.sumOfStreams(x.bytes, 2)
	cur := b.part(of.Part, b.norm(sum, of.Pre))
	if cur == nil {
		return x
	}
	if b.last {
		cur, all = b.choose(cur), b.choose(all)
		b.last = false
	}
	b.streams = b.op(all.bytes, all, b.norm(cur, of.Post))
	return b.partView(b.streams, cur.bytes)
}

// sumOfStreams returns a sum of all streams with factors computed from them; kinds: other factors are computed, too.
func (b *batch) sumOfStreams(bytes, kinds int64) *result {
	n := b.number("@hyper_connection.count")
	mixes := b.op(b.floats(kinds*n), b.op(b.streams.bytes, b.streams))
	return b.op(bytes, b.streams, mixes)
}

// joinStreams returns the mean of all streams.
func (b *batch) joinStreams(x *result) *result {
	if b.streams == nil {
		return x
	}
	if _, ok := b.graph.Streams.(graph.HyperConnections); ok {
		return b.sumOfStreams(x.bytes, 1)
	}
	others := b.streams.bytes - x.bytes
	cur := b.op(others, b.partView(b.streams, others))
	cur = b.inPlace(others, cur)
	return b.op(x.bytes, x, b.partView(cur, x.bytes))
}
