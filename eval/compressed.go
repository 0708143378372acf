package eval

import (
	"math"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
)

// compressedAttention is attention with one head of keys, which are the values, too: to the tokens of a window, and to
// vectors that stand for several tokens each.
type compressedAttention struct {
	heads
	qDown, qUp    *linear
	qNorm, kvNorm *norm
	kv            *linear
	outGroups     []*linear // of the heads' outputs, one for each group of heads
	out           *linear
	rope, ropeDim int         // index of Model.ropes, and values that it rotates, the last of a key
	compressor    *compressor // nil for none
	chooser       *compressedIndexer
}

// compressor makes a vector of the inputs of ratio tokens.
type compressor struct {
	kv, gate      *linear
	ape           []float32 // [ratio, rows of gate], added to the outputs of gate
	norm          *norm
	size, ratio   int
	overlaps      bool // a vector is of the tokens of the one before, too: matrices have rows for these, then for its own
	rope, ropeDim int
}

// compressedIndexer chooses compressed vectors for each token.
type compressedIndexer struct {
	q, weights *linear
	n, most    int // heads; vectors that are chosen
	keys       *compressor
}

var _ = operation(newCompressedAttention)

// newCompressedAttention returns the attention of the layer.
func newCompressedAttention(b *builder, of graph.CompressedAttention) mixer {
	p, t, low := b.p, b.t, b.count("n_lora_q")
	size, ratio := b.count("n_embd_head_k"), b.size("@attention.compress_ratios or 0")
	l := &compressedAttention{heads: heads{n: b.count("n_head"), kv: 1, keyLen: size, valueLen: size,
		scale: 1 / float32(math.Sqrt(float64(size))), window: b.size(of.Window)}}
	if p.bidirectional {
		b.unsupported("in both directions, the part", of)
	}
	l.rope, l.ropeDim = b.rope(of.RoPE(int64(ratio)), size), b.size("n_rot")
	l.qDown, l.qUp = t.requiredLinear(b.name("attn_q_a"), p.width, low),
		t.requiredLinear(b.name("attn_q_b"), low, l.n*size)
	l.qNorm, l.kvNorm = t.requiredNorm(b.name("attn_q_a_norm"), low), t.requiredNorm(b.name("attn_kv_a_norm"), size)
	l.kv = t.requiredLinear(b.name("attn_kv"), p.width, size)
	l.sinks = t.requiredValues(b.name("attn_sinks.weight"), l.n)
	groups, rank := b.count("@attention.output_group_count"), b.count("@attention.output_lora_rank")
	l.outGroups = t.rowGroups(b.name("attn_output_a"), l.n/groups*size, rank, groups)
	l.out = t.requiredLinear(b.name("attn_output_b"), groups*rank, p.width)
	if ratio == 0 {
		return l
	}
	l.compressor = newCompressor(b, "attn_compressor", size, ratio, l.rope)
	if ratio == graph.IndexedRatio {
		n, size := b.count("@attention.indexer.head_count"), b.count("@attention.indexer.key_length")
		if l.ropeDim > size {
			b.fail(fault.Broken, "RoPE rotates %d of the %d values of an indexer's key", l.ropeDim, size)
		}
		l.chooser = &compressedIndexer{n: n, most: b.count("@attention.indexer.top_k"),
			q:       t.requiredLinear(b.name("indexer.attn_q_b"), low, n*size),
			weights: t.requiredLinear(b.name("indexer.proj"), p.width, n),
			keys:    newCompressor(b, "indexer_compressor", size, ratio, l.rope)}
	}
	return l
}

func newCompressor(b *builder, name string, size, ratio, rope int) *compressor {
	c := &compressor{size: size, ratio: ratio, overlaps: ratio == graph.IndexedRatio, rope: rope,
		ropeDim: b.size("n_rot"), norm: b.t.requiredNorm(b.name(name+"_norm"), size)}
	rows := size
	if c.overlaps {
		rows *= 2
	}
	c.kv, c.gate = b.t.requiredLinear(b.name(name+"_kv"), b.p.width, rows),
		b.t.requiredLinear(b.name(name+"_gate"), b.p.width, rows)
	c.ape = b.t.requiredValues(b.name(name+"_ape.weight"), rows, ratio)
	return c
}

// rowGroups returns the rows of NAME.weight as n matrices of out rows.
func (t *tensors) rowGroups(name string, in, out, n int) []*linear {
	x, list := t.required(name+".weight", in, out*n), make([]*linear, n)
	scale, bias := t.scales(name, 1), t.vector(name+".bias", out*n)
	for i := range list {
		list[i] = &linear{name: x.Name, matrix: i, of: n, w: t.weights(x, i*out, out)}
		if bias != nil {
			list[i].bias = bias[i*out:][:out]
		}
		if scale != nil {
			list[i].scale = &scale[0]
		}
	}
	return list
}

func (l *compressedAttention) mix(s *stream, y, x []float32, n int, last bool) error {
	q, low, kv, err := l.project(s, x, n)
	if err != nil {
		return err
	}
	var vectors []float32
	var chosen [][]int32
	if c := l.compressor; c != nil {
		if vectors, err = c.compress(s, x, n); err != nil {
			return err
		}
	}
	if l.chooser != nil {
		if chosen, err = l.chooser.choose(s, x, low, n); err != nil {
			return err
		}
	}
	row, chunk := l.n*l.keyLen, s.r.Chunk
	out := buffer.Resize(&s.a, n*row)
	if err := parallel.For(s.ctx, len(s.attention), n/chunk*l.n, func(i, worker int) error {
		c, h := i/l.n, i%l.n
		at, per := c*chunk, 0
		if l.compressor != nil {
			per = chunk / l.compressor.ratio
		}
		var choices [][]int32
		if chosen != nil {
			choices = chosen[at:][:chunk]
		}
		l.attendBoth(&s.attention[worker], h, out[at*row+h*l.keyLen:], q[at*row+h*l.keyLen:], kv[at*l.keyLen:],
			vectors[c*per*l.keyLen:][:per*l.keyLen], choices, chunk)
		return nil
	}); err != nil {
		return err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			l.rotate(s.m.ropes[l.rope].back, out[t*row:][:row], s.angles(l.rope, t))
		}
	}); err != nil {
		return err
	}
	if last {
		n = s.keepPredicting(out, row, n)
	}
	in, rank := l.outGroups[0].w.K, l.outGroups[0].w.Rows
	narrow, some := buffer.Resize(&s.mid, n*rank*len(l.outGroups)), buffer.Resize(&s.qkv, n*in)
	for g, m := range l.outGroups {
		for t := range n {
			copy(some[t*in:][:in], out[t*row+g*in:])
		}
		if err := s.linear(narrow[g*rank:], rank*len(l.outGroups), some, n, m); err != nil {
			return err
		}
	}
	return s.linear(y, l.out.w.Rows, narrow, n, l.out)
}

// project returns the queries of n tokens, what they are made from, and the keys.
func (l *compressedAttention) project(s *stream, x []float32, n int) (q, low, kv []float32, err error) {
	p, row, rank := s.m.p, l.n*l.keyLen, l.qDown.w.Rows
	q, kv, low = buffer.Resize(&s.qkv, n*row), buffer.Resize(&s.latent.kv, n*l.keyLen), buffer.Resize(&s.latent.q, n*rank)
	if err := s.linear(low, rank, x, n, l.qDown); err != nil {
		return nil, nil, nil, err
	}
	if err := s.eachRows(n, func(a, b int) {
		p.normalize(l.qNorm, low[a*rank:b*rank], low[a*rank:b*rank], rank)
	}); err != nil {
		return nil, nil, nil, err
	}
	if err := s.linear(q, row, low, n, l.qUp); err != nil {
		return nil, nil, nil, err
	}
	if err := s.linear(kv, l.keyLen, x, n, l.kv); err != nil {
		return nil, nil, nil, err
	}
	return q, low, kv, s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			query, key, angles := q[t*row:][:row], kv[t*l.keyLen:][:l.keyLen], s.angles(l.rope, t)
			p.normalize(&norm{}, query, query, l.keyLen)
			p.normalize(l.kvNorm, key, key, l.keyLen)
			l.rotate(s.m.ropes[l.rope].apply, query, angles)
			l.rotate(s.m.ropes[l.rope].apply, key, angles)
		}
	})
}

// rotate calls a function of RoPE for the last values of each head.
func (l *compressedAttention) rotate(f func(x []float32, size int, angles []float32), x, angles []float32) {
	for ; len(x) > 0; x = x[l.keyLen:] {
		f(x[l.keyLen-l.ropeDim:l.keyLen], l.ropeDim, angles)
	}
}

// attendBoth sets out to the outputs of a head for the queries q of a chunk of n tokens, with keys kv and compressed
// vectors. chosen are those that tokens attend to, a nil list for all that are complete.
func (l *compressedAttention) attendBoth(s *attentionScratch, head int, out, q, kv, vectors []float32, chosen [][]int32,
	n int) {
	size, row := l.keyLen, l.n*l.keyLen
	before := len(vectors) / size // keys before those of tokens
	keys := make([]float32, 0, (before+n)*size)
	keys = append(append(keys, vectors...), kv[:n*size]...)
	s.k.PackRight(keys, size, before+n, size)
	s.v.PackRight(transpose(&s.values, keys, size, before+n, size), before+n, size, before+n)
	scores, some := buffer.Resize(&s.scores, queryBlock*(before+n)), make([]float32, before+n)
	for from := 0; from < n; from += queryBlock {
		rows := min(queryBlock, n-from)
		columns := before + from + rows
		s.q.Pack(q[from*row:], row, rows, size)
		gemm.Multiply(&s.gemm, scores, columns, &s.q, &s.k, columns)
		for t := range rows {
			at := from + t
			weights := scores[t*columns:][:columns]
			complete := 0
			if l.compressor != nil {
				complete = (at + 1) / l.compressor.ratio
			}
			var list []int32
			if chosen != nil {
				list = chosen[at]
			}
			if list != nil {
				complete = len(list)
				for i, v := range list {
					some[i] = weights[v]
				}
			} else {
				copy(some[:complete], weights)
			}
			first, end := l.visible(at, n)
			seen := some[:complete+copy(some[complete:], weights[before+first:before+end])]
			l.softmax(head, seen, len(seen)-1)
			clear(weights)
			if list != nil {
				for i, v := range list {
					weights[v] = seen[i]
				}
			} else {
				copy(weights, seen[:complete])
			}
			copy(weights[before+first:], seen[complete:])
		}
		s.p.Pack(scores, columns, rows, columns)
		gemm.Multiply(&s.gemm, out[from*row:], row, &s.p, &s.v, size)
	}
}

// compress returns the vectors of the chunks of n tokens with inputs x: as many in each as ratio divides its length.
func (c *compressor) compress(s *stream, x []float32, n int) ([]float32, error) {
	rows, chunk := c.kv.w.Rows, s.r.Chunk
	values, scores := make([]float32, n*rows), make([]float32, n*rows)
	if err := s.linear(values, rows, x, n, c.kv); err != nil {
		return nil, err
	}
	if err := s.linear(scores, rows, x, n, c.gate); err != nil {
		return nil, err
	}
	if err := s.eachRows(n, func(a, b int) {
		for t := a; t < b; t++ {
			vecmath.Add(scores[t*rows:][:rows], c.ape[t%chunk%c.ratio*rows:][:rows])
		}
	}); err != nil {
		return nil, err
	}
	per := chunk / c.ratio
	vectors := make([]float32, n/chunk*per*c.size)
	return vectors, s.eachRows(len(vectors)/c.size, func(a, b int) {
		for i := a; i < b; i++ {
			at := i % per * c.ratio // the vector's first token in the chunk
			y := vectors[i*c.size:][:c.size]
			first := i/per*chunk + at
			c.sum(y, values, scores, first, at > 0)
			s.m.p.normalize(c.norm, y, y, c.size)
			s.m.ropes[c.rope].apply(y[c.size-c.ropeDim:], c.ropeDim, s.angles(c.rope, at))
		}
	})
}

// sum sets y to the weighted sum of the values of ratio tokens, from token first on, and where vectors overlap, of those
// before, if there are any.
func (c *compressor) sum(y, values, scores []float32, first int, any bool) {
	rows, own := c.kv.w.Rows, c.kv.w.Rows-c.size
	var offsets []int
	if c.overlaps && any {
		for t := first - c.ratio; t < first; t++ {
			offsets = append(offsets, t*rows)
		}
	}
	for t := first; t < first+c.ratio; t++ {
		offsets = append(offsets, t*rows+own)
	}
	w := make([]float32, len(offsets))
	for i := range y {
		for k, at := range offsets {
			w[k] = scores[at+i]
		}
		most, _ := vecmath.Max(w)
		var total, sum float64
		for k, v := range w {
			w[k] = vecmath.Exp(v - most)
			total += float64(w[k])
		}
		f := float32(1 / total)
		for k, at := range offsets {
			sum += float64(float32(values[at+i] * float32(w[k]*f)))
		}
		y[i] = float32(sum)
	}
}

// choose returns the vectors that each of n tokens attends to, nil for one that attends to all. low is what queries are
// made from.
func (x *compressedIndexer) choose(s *stream, in, low []float32, n int) ([][]int32, error) {
	chunk, size, row := s.r.Chunk, x.keys.size, x.n*x.keys.size
	per := chunk / x.keys.ratio
	if per <= x.most { // nothing is left out, but matrices have inputs
		for _, m := range []*linear{x.q, x.weights, x.keys.kv, x.keys.gate} {
			of := in
			if m == x.q {
				of = low
			}
			if _, err := s.reportInputs(of, n, m); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	keys, err := x.keys.compress(s, in, n)
	if err != nil {
		return nil, err
	}
	q, weights := make([]float32, n*row), make([]float32, n*x.n)
	if err := s.linear(q, row, low, n, x.q); err != nil {
		return nil, err
	}
	if err := s.linear(weights, x.n, in, n, x.weights); err != nil {
		return nil, err
	}
	scale, rope, dims := 1/float32(math.Sqrt(float64(row))), s.m.ropes[x.keys.rope], x.keys.ropeDim
	chosen := make([][]int32, n)
	return chosen, s.eachRows(n, func(a, b int) {
		scores := make([]float32, per)
		for t := a; t < b; t++ {
			complete := (t%chunk + 1) / x.keys.ratio
			if complete <= x.most {
				continue
			}
			query, w := q[t*row:][:row], weights[t*x.n:][:x.n]
			vecmath.Scale(w, w, scale)
			for h := range x.n {
				rope.apply(query[h*size+size-dims:][:dims], dims, s.angles(x.keys.rope, t))
			}
			for v := range complete {
				key := keys[(t/chunk*per+v)*size:][:size]
				var sum float64
				for h, f := range w {
					product := float32(vecmath.SumProducts(query[h*size:][:size], key))
					sum += float64(float32(f * max(0, product)))
				}
				scores[v] = float32(sum)
			}
			chosen[t] = best(scores[:complete], x.most)
		}
	})
}

// best returns the indices of the n largest of more scores. Of equal ones it takes those that std::partial_sort of
// libstdc++ takes, as ggml does: a heap of the first n, whose least one is replaced by any greater one that follows.
func best(scores []float32, n int) []int32 {
	heap := make([]int32, n)
	for i := range heap {
		heap[i] = int32(i)
	}
	// sink puts v into the heap, from the place hole on: down to a leaf, then up again.
	sink := func(hole int, v int32) {
		top, child := hole, hole
		for child < (n-1)/2 {
			child = 2 * (child + 1)
			if scores[heap[child]] > scores[heap[child-1]] {
				child--
			}
			heap[hole], hole = heap[child], child
		}
		if n%2 == 0 && child == (n-2)/2 {
			child = 2*child + 1
			heap[hole], hole = heap[child], child
		}
		for hole > top && scores[heap[(hole-1)/2]] > scores[v] {
			heap[hole], hole = heap[(hole-1)/2], (hole-1)/2
		}
		heap[hole] = v
	}
	for i := n/2 - 1; i >= 0; i-- {
		sink(i, heap[i])
	}
	for i := n; i < len(scores); i++ {
		if scores[i] > scores[heap[0]] {
			sink(0, int32(i))
		}
	}
	return heap
}
