package eval

import (
	"fmt"
	"math"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/parallel"
	"ggforge/internal/kernel/vecmath"
	"ggforge/model"
)

// gatedStreams makes one of several streams, the mean of their norms times gates of low rank.
//
// Source: the graph of llama.cpp for Qwen 3.8 Flash Next.
type gatedStreams struct {
	n                int
	norm             []float32 // of all streams
	down, up, inject *linear   // inject nil where there is no part
}

// newGatedStreams returns the one whose tensors' names begin with prefix. inject: it has factors of a part's outputs.
func newGatedStreams(b *builder, prefix string, inject bool) *gatedStreams {
	x := &gatedStreams{n: b.count("@hyper_connection.count")}
	all, rank := b.p.width*x.n, b.count("@hyper_connection.low_rank")
	x.norm = b.t.requiredValues(prefix+"_norm.weight", all)
	x.down, x.up = b.t.requiredLinear(prefix+"_down", all, rank), b.t.requiredLinear(prefix+"_up", rank, all)
	if inject {
		x.inject = b.t.requiredLinear(prefix+"_inject", all, x.n)
	}
	return x
}

// normStreams sets dst to the RMS norms of n streams of a token, which are one after the other in src, times weights.
func (p *params) normStreams(dst, src, weights []float32, n int) {
	p.normalize(&norm{}, dst, src, len(src)/n)
	vecmath.Mul(dst, weights)
}

// allStreams returns the n streams of the tokens with the first streams h, those of a token one after the other.
func (s *stream) allStreams(h []float32, n int) (all []float32, err error) {
	width, others := s.m.p.width, s.hyper.rows(s, h, n)
	all = make([]float32, len(h)*n)
	return all, s.eachRows(len(h)/width, func(from, to int) {
		for t := from; t < to; t++ {
			row := all[t*width*n:][:width*n]
			copy(row, h[t*width:][:width])
			for i, y := range others {
				copy(row[(i+1)*width:], y[t*width:][:width])
			}
		}
	})
}

// join is hyper.join.
func (x *gatedStreams) join(s *stream, h, gates []float32) error {
	width, wide := s.m.p.width, s.m.p.width*x.n
	n, rank := len(h)/width, x.down.w.Rows
	all, err := s.allStreams(h, x.n)
	if err != nil {
		return err
	}
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			row := all[t*wide:][:wide]
			s.m.p.normStreams(row, row, x.norm, x.n)
		}
	}); err != nil {
		return err
	}
	layers, ld := []*linear{x.down}, rank
	if x.inject != nil {
		layers, ld = append(layers, x.inject), rank+x.n
	}
	first, low, up := make([]float32, n*ld), make([]float32, n*rank), make([]float32, n*wide)
	if err := s.linear(first, ld, all, n, layers...); err != nil {
		return err
	}
	share := 1 / float32(x.n)
	if err := s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			y := low[t*rank:][:rank]
			vecmath.Scale(y, first[t*ld:][:rank], share)
			vecmath.SiLUOf.Apply(y, y)
		}
	}); err != nil {
		return err
	}
	if err := s.linear(up, wide, low, n, x.up); err != nil {
		return err
	}
	return s.eachRows(n, func(from, to int) {
		for t := from; t < to; t++ {
			y, g := h[t*width:][:width], up[t*wide:][:wide]
			vecmath.SigmoidOf.Apply(g, g)
			vecmath.Mul(g, all[t*wide:][:wide])
			copy(y, g)
			for i := 1; i < x.n; i++ {
				vecmath.Add(y, g[i*width:][:width])
			}
			vecmath.Scale(y, y, share)
			if x.inject != nil {
				gates := gates[t*gatesOf(x.n):][:x.n]
				vecmath.Scale(gates, first[t*ld+rank:][:x.n], share)
				vecmath.SigmoidOf.Apply(gates, gates)
				vecmath.Scale(gates, gates, 2)
			}
		}
	})
}

// ngramEmbedding adds to all streams an update from rows of a table that hashes of the last tokens choose.
//
// Source: the graph of llama.cpp for Qwen 3.8 Flash Next.
type ngramEmbedding struct {
	n                      int // streams
	size, width, perLength int // the most tokens of a hash; values of a row; rows for each number of tokens
	end                    int32
	multipliers            []uint64 // of tokens, the token itself first
	offsets, sizes         []uint64 // of the rows of each head
	table                  *model.Tensor
	key, value             *linear
	keyNorm, queryNorm     []float32
	convNorm               []float32
	taps                   [][]float32
}

// newNgramEmbedding returns that of the layer.
func newNgramEmbedding(b *builder) *ngramEmbedding {
	t, w := b.t, b.p.width
	x := &ngramEmbedding{n: b.count("@hyper_connection.count"), size: b.count("@ple.ngram_size"),
		width: b.count("@embedding_length_per_layer_input"), perLength: b.count("@ple.heads_per_ngram"),
		end: int32(b.size("@ple.eos_token_id"))}
	heads := x.perLength * (x.size - 1)
	if heads < 1 || heads > maxSize/x.width {
		b.fail(fault.Broken, "layer %d has %d rows of %d values for a token", b.Layer(), heads, x.width)
	}
	x.multipliers, x.offsets, x.sizes = b.numbers("ple.layer_multipliers", x.size),
		b.numbers("ple.head_offsets", heads), b.numbers("ple.head_vocab_sizes", heads)
	name := "per_layer_token_embd.weight"
	if e := t.all[name]; e != nil && len(e.NE) == 2 && e.NE[1] < maxSize<<8 {
		x.table = t.required(name, x.width, int(e.NE[1]))
	} else {
		t.required(name, x.width, 1)
	}
	for i, n := range x.sizes {
		if rows := uint64(x.table.NE[1]); n < 1 || n > rows || x.offsets[i] > rows-n {
			b.fail(fault.Broken, "tensor %q has %d rows, want those of head %d, %d from row %d on", name, rows, i, n,
				x.offsets[i])
		}
	}
	x.key, x.value = t.requiredLinear(b.name("ple_key"), heads*x.width, w*x.n),
		t.requiredLinear(b.name("ple_value"), heads*x.width, w)
	x.keyNorm, x.queryNorm, x.convNorm = t.requiredValues(b.name("ple_norm_key.weight"), w*x.n),
		t.requiredValues(b.name("ple_norm_query.weight"), w*x.n),
		t.requiredValues(b.name("ple_norm_conv.weight"), w*x.n)
	taps := b.count("@ple.conv_kernel")
	x.taps = transposed(t.requiredValues(b.name("ple_conv1d")+".weight", taps, w*x.n), taps)
	return x
}

// numbers returns the first n numbers of a list, all of which must be at least 0.
func (b *builder) numbers(key string, n int) []uint64 {
	v, _ := b.metadata().Get(gguf.ArchKey(b.p.arch, key))
	var list []uint64
	for e := range v.Elems() {
		i, ok := e.Int()
		if !ok || i < 0 {
			b.fail(fault.Broken, "%q has %s, want numbers from 0", gguf.ArchKey(b.p.arch, key), e.Short())
		}
		list = append(list, uint64(i))
	}
	if len(list) < n {
		b.fail(fault.Broken, "%q has %d numbers, want %d", gguf.ArchKey(b.p.arch, key), len(list), n)
	}
	return list[:n]
}

// rows sets to to the rows of the table of a token; before are the tokens of its chunk up to it.
func (x *ngramEmbedding) rows(to []int64, before []int32) {
	at := len(before) - 1
	mixed, cut := uint64(before[at])*x.multipliers[0], false
	for back := 1; back < x.size; back++ {
		token := x.end
		if cut = cut || back > at || before[at-back] == x.end; !cut {
			token = before[at-back]
		}
		mixed ^= uint64(token) * x.multipliers[back]
		for i := (back - 1) * x.perLength; i < back*x.perLength; i++ {
			to[i] = int64(mixed%x.sizes[i] + x.offsets[i])
		}
	}
}

func (x *ngramEmbedding) forward(s *stream, h []float32, n int, _ bool) ([]float32, error) {
	p, width, wide, heads := s.m.p, s.m.p.width, s.m.p.width*x.n, len(x.sizes)
	in := heads * x.width
	e, kv := make([]float32, n*in), make([]float32, n*(wide+width))
	bufs, rows := make([][]byte, len(s.scratch)), make([][]int64, len(s.scratch))
	if err := parallel.For(s.ctx, len(s.scratch), n, func(t, worker int) error {
		if rows[worker] == nil {
			rows[worker] = make([]int64, heads)
		}
		first := t - t%s.r.Chunk
		x.rows(rows[worker], s.tokens[first:t+1])
		for i, row := range rows[worker] {
			if err := decode(x.table, e[t*in+i*x.width:][:x.width], &bufs[worker], row, row+1); err != nil {
				return fmt.Errorf("tensor %q: %w", x.table.Name, err)
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := s.linear(kv, wide+width, e, n, x.key, x.value); err != nil {
		return nil, err
	}
	all, err := s.allStreams(h, x.n)
	if err != nil {
		return nil, err
	}
	gated, normed, root := make([]float32, n*wide), make([]float32, n*wide), float32(1/math.Sqrt(float64(width)))
	if err := s.eachRows(n, func(from, to int) {
		query := make([]float32, wide)
		for t := from; t < to; t++ {
			key, value := kv[t*(wide+width):][:wide], kv[t*(wide+width)+wide:][:width]
			p.normStreams(key, key, x.keyNorm, x.n)
			p.normStreams(query, all[t*wide:][:wide], x.queryNorm, x.n)
			vecmath.Mul(key, query)
			for i := range x.n {
				d := float32(vecmath.Sum(key[i*width:][:width])) * root
				size := float32(math.Sqrt(max(math.Abs(float64(d)), float64(float32(1e-6)))))
				switch {
				case d == 0:
					size = 0
				case d < 0:
					size = -size
				}
				vecmath.Scale(gated[t*wide+i*width:][:width], value, vecmath.Sigmoid(size))
			}
			p.normStreams(normed[t*wide:][:wide], gated[t*wide:][:wide], x.convNorm, x.n)
		}
	}); err != nil {
		return nil, err
	}
	others := s.hyper.rows(s, h, x.n)
	return h, s.eachRows(n, func(from, to int) {
		y := make([]float32, wide)
		for t := from; t < to; t++ {
			clear(y)
			for i, w := range x.taps {
				if back := (len(x.taps) - 1 - i) * x.size; back <= t%s.r.Chunk {
					vecmath.AddProduct(y, normed[(t-back)*wide:][:wide], w)
				}
			}
			vecmath.SiLUOf.Apply(y, y)
			vecmath.Add(y, gated[t*wide:][:wide])
			vecmath.Add(h[t*width:][:width], y[:width])
			for i, z := range others {
				vecmath.Add(z[t*width:][:width], y[(i+1)*width:][:width])
			}
		}
	})
}
