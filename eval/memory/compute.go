package memory

import (
	"strconv"

	"ggforge/arch/graph"
)

// maxGraphLayers is the number of layers that are laid out at most: the results alive at a time are the same in every
// layer of a kind, except the first and the last.
const maxGraphLayers = 64

// batch lays out what the runtime computes for a batch of tokens: a rule for each type of step and part of a graph.
//
// Source: the graphs for which the runtime of llama.cpp 0.7.0 reserves memory.
type batch struct {
	*model
	operations
	scope     *graph.Scope // of the current layer
	tokens    int64
	sequences int64 // of the tokens

	caches []*Cache

	adapters *result // of tokens, nil for a model without adapters

	// Inputs, which are added when they are read for the first time.

	masks            [2][2]*result // of the batch, of the cache; of all tokens, of windows
	indices          [2][2]*result // of the cells for keys and values; of all tokens, of windows
	pos              *result
	temperature      *result // factors of queries
	copies           *result // indices of the states of sequences
	buckets          *result // of distances, for relative position bias
	encoded, seen    *result // the encoder's states, and the mask of them
	outputs          *result // indices of the tokens whose results are wanted
	decays, diagonal *result // of lightning attention
	// of indexers: by which queries and keys are multiplied, the mask and indices of their cache
	rotated, indexerMask, indexerIndices *result
	compressedMasks                      map[int64]*result // of compressed vectors, by the tokens of one

	layerSteps []graph.Step // of a layer
	centered   bool         // norms subtract the mean
	crosses    bool         // they have CrossAttention, after which only the outputs' tokens go on
	update     *result      // what the last Residual has added
	pools      *poolInputs

	last      bool                // the layer is the last one, and all tokens are still computed
	chosen    map[*result]*result // in the last layer: the rows of outputs
	embedding *result             // the stream before the first layer
	input     *result             // the stream before the layer
	streams   *result             // all of AltUp, nil for one stream
	wide      *result             // embeddings with DeepStack vectors, nil for none
	vectors   *result             // per-layer embeddings, nil for none
	best      *result             // tokens that the last indexer chose
	before    *result             // inputs of the tokens before, which RWKV's channel mixing reads
	values    *result             // of RWKV 7's first layer
}

// compute returns the size of the runtime's compute buffer for a batch of tokens.
func (p *model) compute(tokens, sequences int64, caches []*Cache) int64 {
	if p.err != nil {
		return 0
	}
	b := &batch{model: p, caches: caches, scope: p.decl.At(-1), tokens: tokens, sequences: max(1, min(sequences, tokens)),
		centered: p.graph.Norm.Centered}
	if p.noCache {
		b.sequences = 1 // of states that are zero
	}
	x := b.embed()
	b.embedding = x
	b.addStreams(x)
	layers, at, final := p.decl.Order(), p.decl.At, p.graph.Final
	b.layerSteps = p.graph.Layer
	if decoder, ok := p.graph.Second.(graph.Decoder); ok { // its graph is the larger one
		b.layerSteps, layers, at, final = decoder.Layer, nil, p.decl.InDecoder, decoder.Final
		b.crosses = true
		for i := range p.decl.DecoderLayers() {
			layers = append(layers, i)
		}
	}
	layers = layers[:min(len(layers), maxGraphLayers)]
	for i, layer := range layers {
		b.scope, b.input, b.chosen = at(layer), x, map[*result]*result{}
		b.last = i == len(layers)-1 && p.decl.DecisionLayers() == 0
		if i > 0 && b.wide != nil && (b.scope.Holds("i <= @n_deepstack_layers") || b.scope.Holds("0 < @deepstack_mapping")) {
			x = b.inPlace(x.bytes, x, b.partView(b.wide, x.bytes))
		}
		x = b.layer(x)
		if loop, ok := p.graph.Loop.(graph.Repeat); ok && layer == p.decl.Layers()-1 && i < len(layers)-1 {
			x = b.steps(loop.Between, x)
		}
	}
	b.scope, b.last = p.decl.At(-1), false
	x = b.joinStreams(x)
	x = b.decide(b.steps(final, x))
	x.kept = true
	b.expand(x)
	if !p.noLogits {
		logits := b.op(b.floats(p.vocab), x)
		if n := b.rows("output", p.vocab); n < p.vocab { // the other tokens have a constant
			rest := b.op(b.floats(p.vocab - n))
			logits = b.op(logits.bytes, rest, b.op(b.floats(n), x))
		}
		if head, ok := p.graph.Head.(graph.LM); ok && (head.Scale != "" || head.SoftCap != "") {
			logits = b.inPlace(logits.bytes, logits)
		} else if ok && head.Never != (graph.TokenRange{}) { // a copy with some replaced
			n := 4 * int64(head.Never.End-head.Never.From)
			logits = b.op(logits.bytes, logits, b.op(n, b.addInput(n)))
		}
		logits.kept = true
		b.expand(logits)
	}
	return b.total()
}

// floats returns the bytes of n float32 values for each token.
func (b *batch) floats(n int64) int64 { return b.product("a batch", 4, b.tokens, n) }

// width returns the number of values of the residual stream.
func (b *batch) width() int64 { return b.scope.Size("n_embd") }

// number returns the value of an expression, 0 if keys are missing.
func (b *batch) number(n graph.Num) int64 {
	v, _ := b.scope.Value(n)
	i, _ := v.Int()
	return max(0, min(i, maxContext))
}

// name returns the name of a tensor of the layer in the file.
func (b *batch) name(tensor string) string {
	if b.scope.Layer() < 0 {
		return tensor
	}
	return b.scope.Prefix() + "blk." + strconv.Itoa(b.scope.Layer()) + "." + tensor
}

// ne returns the dimensions of NAME.weight in the current layer: as in the file, or else as declared; nil for none.
func (b *batch) ne(tensor string) []int64 {
	name := b.name(tensor) + ".weight"
	if ne, ok := b.file.Tensors[name]; ok {
		return ne
	}
	t, ok := b.decl.Tensor(name)
	if !ok || t.May {
		return nil
	}
	return t.NE
}

// rows returns the number of rows of a matrix of the current layer, def if the layer has none.
func (b *batch) rows(tensor string, def int64) int64 {
	if ne := b.ne(tensor); len(ne) > 1 && ne[1] >= 0 {
		return ne[1]
	}
	return def
}

// hasBias reports whether the file has NAME.bias in the current layer.
func (b *batch) hasBias(tensor string) bool {
	_, ok := b.file.Tensors[b.name(tensor)+".bias"]
	return ok
}

// embed adds tokens, vectors and positions, and returns the residual stream before the first layer.
func (b *batch) embed() *result {
	e, width := b.graph.Embed, b.width()
	ids := b.addInput(4 * b.tokens)
	if b.graph.Adapters != nil {
		return b.embedAdapted(e, ids)
	}
	// of images, with the DeepStack vectors that later layers add
	wide := b.product("vectors", width, 1+b.number("@n_deepstack_layers or max(0, ^deepstack_mapping) or 0"))
	b.addInput(b.floats(wide)) // embeddings in place of tokens, which no operation of this graph reads
	mixed, vectors := b.addInput(4*b.tokens), b.addInput(b.floats(wide))
	slots := b.addInput(8 * b.tokens)
	axes := int64(1)
	if b.number("#rope.dimension_sections") > 0 {
		axes = 4 // of M-RoPE
	}
	b.pos = b.addInput(4 * axes * b.tokens)

	x := b.op(b.floats(width), ids)
	// tokens mixed with embeddings, which only texts with images have, are in every graph
	tokens := b.op(b.floats(width), mixed)
	b.expand(x)
	if wide > width {
		b.expand(tokens)
		b.wide, tokens = b.op(b.floats(wide), x), b.op(b.floats(wide), tokens)
		b.expand(b.wide)
		x = b.partView(b.wide, x.bytes)
	}
	b.expand(b.write(b.op(b.floats(wide), vectors), tokens, slots))
	if e.Scale != "" && b.wide != nil {
		x = b.op(x.bytes, x)
	}
	if e.Scale != "" {
		x = b.inPlace(x.bytes, x)
	}
	if e.Types {
		x = b.inPlace(x.bytes, x)
	}
	if e.Positions != graph.No && b.ne("position_embd") != nil {
		x = b.inPlace(x.bytes, b.op(x.bytes, b.pos), x)
	}
	if n := b.rows("per_layer_model_proj", 0); n > 0 {
		table := b.inPlace(b.floats(n), b.op(b.floats(n), ids))
		b.expand(table)
		of := b.inPlace(b.floats(n), b.op(b.floats(n), x))
		of = b.inPlace(of.bytes, b.inPlace(of.bytes, b.view(of)))
		of = b.inPlace(of.bytes, b.inPlace(of.bytes, of, table))
		b.vectors = b.op(of.bytes, b.partView(of, of.bytes)) // in the order of layers
	}
	return b.norm(x, e.Norm)
}

// norm adds a norm and the product with its weights.
func (b *batch) norm(x *result, n graph.Norm) *result {
	if n.Name == "" {
		return x
	}
	x = b.bareNorm(x)
	if n.Name == graph.Bare.Name {
		return x
	}
	x = b.inPlace(x.bytes, x)
	if b.hasBias(n.Name) {
		x = b.inPlace(x.bytes, x)
	}
	return x
}

// bareNorm adds a norm of the model's kind.
func (b *batch) bareNorm(x *result) *result {
	if b.centered {
		return b.op(x.bytes, x)
	}
	return b.inPlace(x.bytes, x)
}

// linear adds the product with a matrix of n rows, and its bias.
func (b *batch) linear(x *result, tensor string, n int64) *result {
	r := b.op(b.floats(n), x)
	if b.hasBias(tensor) {
		r = b.inPlace(r.bytes, r)
	}
	if b.adapters != nil && tensor != "attn_qkv" {
		r = b.adapt(r, x)
	}
	return r
}

// choose returns the rows of the outputs in the last layer, x in others.
func (b *batch) choose(x *result) *result {
	if !b.last {
		return x
	}
	if b.outputs == nil {
		b.outputs = b.addInput(4 * b.tokens)
	}
	if b.chosen[x] == nil {
		r := b.op(x.bytes, x, b.outputs)
		b.chosen[x], b.chosen[r] = r, r
	}
	return b.chosen[x]
}

// steps adds steps of the current layer.
func (b *batch) steps(steps []graph.Step, x *result) *result {
	for _, s := range b.scope.Steps(steps) {
		switch s := s.(type) {
		case graph.Residual:
			x = b.residual(s, x)
		case graph.FromInput:
			in := b.input
			if r := b.chosen[in]; r != nil {
				in = r
			}
			if cur := b.part(s.Part, b.norm(in, s.Pre)); cur != nil {
				x = b.inPlace(x.bytes, cur, x)
			}
		case graph.FromUpdate:
			if cur := b.part(s.Part, b.update); cur != nil {
				x = b.inPlace(x.bytes, b.norm(cur, s.Post), x)
			}
		case graph.Connected:
			x = b.connected(s.Residual, x, false)
		case graph.Mixed:
			x = b.connected(s.Residual, x, true)
		case graph.Attended:
			x = b.attended(s, x)
		case graph.FromStreams:
			x = b.fromStreams(s, x)
		case graph.NgramEmbedding:
			x = b.ngramEmbedding(x)
		case graph.AddEmbedding:
			x = b.inPlace(x.bytes, x, b.op(x.bytes, b.choose(b.embedding)))
		case graph.Parallel:
			x = b.parallel(s, x)
		case graph.AddInput:
			if b.scope.Has(s.Norm.Name) {
				x = b.norm(b.inPlace(x.bytes, x, b.input), s.Norm)
			}
		case graph.Normalize:
			x = b.norm(x, s.Norm)
		case graph.ScaleStream:
			x = b.inPlace(x.bytes, x)
		case graph.LearnedScale:
			if b.scope.Has(s.Tensor) {
				x = b.inPlace(x.bytes, x)
			}
		case graph.PerLayerEmbedding:
			x = b.perLayer(x)
		}
	}
	return x
}

// residual adds a part and its norms. After the first part of the last layer, or after CrossAttention, only the outputs'
// tokens are needed.
func (b *batch) residual(r graph.Residual, x *result) *result {
	in := b.norm(x, r.Pre)
	cur := b.part(r.Part, in)
	if cur == nil {
		return b.choose(x)
	}
	if _, isCross := r.Part.(graph.CrossAttention); b.last && isCross == b.crosses {
		cur, x = b.choose(cur), b.choose(x)
		b.last = false
	}
	cur = b.norm(cur, r.Post)
	if r.Scale != "" {
		cur = b.inPlace(cur.bytes, cur)
	}
	if r.Carry != "" {
		x = b.inPlace(x.bytes, x)
	}
	b.update = cur
	return b.norm(b.inPlace(x.bytes, cur, x), r.Sum)
}

// parallel adds parts with the same input: the outputs of all but the first, the stream, the output of the first.
func (b *batch) parallel(branches graph.Parallel, x *result) *result {
	norms := map[graph.Norm]*result{}
	var first, sum *result
	for i, r := range branches {
		in := norms[r.Pre]
		if in == nil {
			in = b.norm(x, r.Pre)
			norms[r.Pre] = in
		}
		if i > 0 {
			in = b.choose(in)
		}
		cur := b.part(r.Part, in)
		switch {
		case cur == nil:
		case i == 0:
			first = b.choose(cur)
		case sum == nil:
			sum = cur
		default:
			sum = b.inPlace(sum.bytes, sum, cur)
		}
	}
	x = b.choose(x)
	b.last = false
	if sum != nil {
		x = b.inPlace(x.bytes, sum, x)
	}
	if first != nil {
		x = b.inPlace(x.bytes, x, first)
	}
	return x
}

// perLayer adds the update from the embeddings of the layer.
func (b *batch) perLayer(x *result) *result {
	if b.number("@embedding_length_per_layer_input or 0") == 0 {
		return x
	}
	return b.inPlace(x.bytes, b.perLayerOf(x), x)
}

// perLayerOf returns the update from the embeddings of the layer.
func (b *batch) perLayerOf(x *result) *result {
	n := b.number("@embedding_length_per_layer_input")
	gate := b.inPlace(b.floats(n), b.op(b.floats(n), x))
	if b.vectors != nil {
		gate = b.inPlace(gate.bytes, gate, b.partView(b.vectors, b.floats(n)))
	}
	return b.norm(b.op(x.bytes, gate), graph.Norm{Name: "post_norm"})
}

// part returns the output of a part, nil for none.
func (b *batch) part(p graph.Part, x *result) *result {
	switch p := b.scope.Part(p).(type) {
	case graph.Nothing:
		return nil
	case graph.Sum:
		var sum *result
		for _, each := range p {
			if cur := b.part(each, x); cur != nil && sum != nil {
				sum = b.inPlace(sum.bytes, sum, cur)
			} else if cur != nil {
				sum = cur
			}
		}
		return sum
	case graph.Normed:
		if x = b.part(p.Part, b.norm(x, p.Pre)); x != nil {
			x = b.norm(x, p.Post)
		}
		return x
	case graph.Scaled:
		if x = b.part(p.Part, x); x != nil {
			x = b.inPlace(x.bytes, x)
		}
		return x
	case graph.Matrix:
		return b.linear(x, p.Name, b.width())
	case graph.Laurel:
		low := b.op(b.floats(b.rows("laurel_l", b.width())), x)
		return b.inPlace(x.bytes, b.norm(b.op(x.bytes, low), graph.Norm{Name: "laurel_post_norm"}), x)
	case graph.Attention:
		return b.attention(p, x)
	case graph.CrossAttention:
		return b.crossAttention(x)
	case graph.MLA:
		return b.mla(p, x)
	case graph.CompressedAttention:
		return b.compressedAttention(p, x)
	case graph.FFN:
		return b.ffn(p, x, "")
	case graph.MoE:
		return b.moe(p, x)
	case graph.Mamba1:
		return b.mamba1(x)
	case graph.Mamba2:
		return b.mamba2(x)
	case graph.ProjectedMamba2:
		return b.projectedMamba2(p, x)
	case graph.GatedDeltaNet:
		return b.deltaNet(x)
	case graph.KDA:
		return b.kda(x)
	case graph.Lightning:
		return b.lightning(x)
	case graph.ShortConv:
		return b.shortConv(x)
	case graph.RWKV6:
		return b.rwkv6(x, true)
	case graph.QRWKV6:
		return b.rwkv6(x, false)
	case graph.RWKV7:
		return b.rwkv7(x)
	case graph.ChannelMix6:
		return b.channelMix(x, true)
	case graph.ChannelMix7:
		return b.channelMix(x, false)
	}
	return b.op(b.floats(b.width()), x)
}
