package eval

import (
	"math"

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/gemm"
	"ggforge/internal/kernel/vecmath"
)

// tokenAdapters are the adapters that control tokens choose.
//
// Source: the graph of llama.cpp for Granite Switch.
type tokenAdapters struct {
	n          int             // without that of other tokens, 0
	rank       int             // of their matrices
	gain       float32         // of the keys of control tokens; others have -gain
	of         map[int32]int32 // the adapter of each control token, from 1 on
	substitute map[int32]int32 // the token of whose embedding it has
}

// adapter are the adapters of some outputs of a linear layer: b·(a·x) is added, with the matrices of the token.
type adapter struct {
	first int // of the outputs
	a, b  []*linear
}

// adapters finds what of adapters is not in layers.
func (b *builder) adapters(a graph.Adapters) {
	switch a.(type) {
	case nil:
		return
	case graph.TokenAdapters:
	default:
		b.unsupported("kind of adapters", a)
	}
	x := &tokenAdapters{n: b.size("@adapters.count"), rank: b.count("@adapters.lora_rank"),
		gain: float32(b.float("@adapters.router_gain or 15")), of: map[int32]int32{}, substitute: map[int32]int32{}}
	if g := float64(x.gain); math.IsNaN(g) || math.IsInf(g, 0) {
		b.fail(fault.Broken, "%q is %g, want a number", b.p.arch+".adapters.router_gain", g)
	}
	for _, key := range []graph.Num{"#adapters.token_ids_activate", "#adapters.token_ids_substitute"} {
		if n := b.size(key); n != x.n { // llama.cpp does not load the file
			b.fail(fault.Broken, "%d elements of %s, want %d", n, key, x.n)
		}
	}
	tokens, substitutes := b.numbers("adapters.token_ids_activate", x.n), b.numbers("adapters.token_ids_substitute", x.n)
	for i, id := range tokens {
		if vocab := uint64(b.p.vocab); id >= vocab || substitutes[i] >= vocab {
			b.fail(fault.Broken, "adapter %d has token %d and the embedding of token %d, want less than %d", i, id,
				substitutes[i], vocab)
		}
		x.of[int32(id)], x.substitute[int32(id)] = int32(i+1), int32(substitutes[i])
	}
	b.m.adapters = x
}

// adaptLayer finds the adapters of the layer's projections.
func (b *builder) adaptLayer() {
	if b.m.adapters == nil {
		return
	}
	for part := range b.layer.parts() {
		switch p := part.(type) {
		case *attention:
			if p.gated || p.valueExperts != nil || p.source != nil {
				b.unsupported("with adapters, the projections of", graph.Attention{})
			}
			if p.qkv != nil {
				q, k, v := p.n*p.keyLen, p.kv*p.keyLen, p.kv*p.valueLen
				b.adapt(p.qkv, "attn_q", 0, q)
				b.adapt(p.qkv, "attn_k", q, k)
				b.adapt(p.qkv, "attn_v", q+k, v)
			} else {
				b.adapt(p.q, "attn_q", 0, p.q.w.Rows)
				b.adapt(p.k, "attn_k", 0, p.k.w.Rows)
				b.adapt(p.v, "attn_v", 0, p.v.w.Rows)
			}
			b.adapt(p.out, "attn_output", 0, p.out.w.Rows)
		case *feedForward:
			if p.fused || p.gate == nil {
				b.unsupported("with adapters, the matrices of", graph.FFN{})
			}
			b.adapt(p.gate, "ffn_gate", 0, p.ff)
			b.adapt(p.up, "ffn_up", 0, p.ff)
			b.adapt(p.down, "ffn_down", 0, p.down.w.Rows)
		default:
			b.unsupported("with adapters, a "+partName(part)+" in", graph.TokenAdapters{})
		}
	}
}

// adapt adds the adapters of n outputs of a layer.
func (b *builder) adapt(l *linear, name string, first, n int) {
	x := b.m.adapters
	l.adapters = append(l.adapters, adapter{first, b.matrices(name+".lora_a", l.w.K, x.rank),
		b.matrices(name+".lora_b", x.rank, n)})
}

// matrices returns a matrix for each adapter.
func (b *builder) matrices(name string, in, out int) []*linear {
	n := b.m.adapters.n + 1
	x := b.t.required(b.name(name), in, out, n)
	list := make([]*linear, n)
	for i := range list {
		list[i] = &linear{name: x.Name, matrix: i, of: n, routed: true, w: b.t.weights(x, i*out, out)}
	}
	return list
}

// embedded returns the token whose embedding a token has. The adapters may be nil.
func (a *tokenAdapters) embedded(token int32) int32 {
	if a != nil {
		if id, ok := a.substitute[token]; ok {
			return id
		}
	}
	return token
}

// choose sets to to the adapters of the tokens of a chunk: the outputs of the attention head, which sums as
// llama.cpp's flash attention does.
func (a *tokenAdapters) choose(to, tokens []int32) {
	most, sum, weights := float32(math.Inf(-1)), float32(0), float32(0)
	for i, id := range tokens {
		key, value := -a.gain, float32(0)
		if at, ok := a.of[id]; ok {
			key, value = a.gain, float32(at)
		}
		w := float32(1)
		if key > most {
			f := vecmath.Exp(most - key)
			sum, weights, most = float32(sum*f), float32(weights*f), key
		} else {
			w = vecmath.Exp(key - most)
		}
		sum += float32(w * value)
		weights += w
		mean := min(max(float32(sum*(1/weights)), 0), float32(a.n))
		to[i] = int32(math.Round(float64(mean)))
	}
}

// setTokens sets the tokens that go through a layer together, whole chunks from token first of the stream on, and their
// adapters.
func (s *stream) setTokens(first int, tokens []int32) {
	s.firstToken, s.tokens = first, tokens
	a := s.m.adapters
	if a == nil {
		return
	}
	all := buffer.Resize(&s.adapterOf[0], len(tokens))
	wanted := s.adapterOf[1][:0]
	for _, c := range s.chunks(len(tokens)) {
		a.choose(all[c.at:][:c.n], tokens[c.at:][:c.n])
		wanted = append(wanted, all[c.at:][:c.n][min(s.r.First, c.n):]...)
	}
	s.adapterOf[1] = wanted
}

// adapt adds the outputs of adapters to those of layers, which are one after the other in rows that are ld apart. x are
// the inputs of all tokens that go through the layer, or of the wanted ones.
func (s *stream) adapt(dst []float32, ld int, x []float32, rows int, layers []*linear) error {
	at := 0
	for _, l := range layers {
		for i := range l.adapters {
			if err := s.addAdapter(dst[at+l.adapters[i].first:], ld, x, rows, &l.adapters[i]); err != nil {
				return err
			}
		}
		at += l.w.Rows
	}
	return nil
}

// addAdapter is adapt for one adapter of each token.
func (s *stream) addAdapter(dst []float32, ld int, x []float32, rows int, l *adapter) error {
	of := s.adapterOf[0]
	if rows != len(of) {
		of = s.adapterOf[1]
	}
	in, rank, out := l.a[0].w.K, l.a[0].w.Rows, l.b[0].w.Rows
	var list []int
	for i := range l.a {
		list = list[:0]
		for t, a := range of[:rows] {
			if int(a) == i {
				list = append(list, t)
			}
		}
		if len(list) == 0 {
			continue
		}
		inputs := buffer.Resize(&s.adapted[0], len(list)*in)
		low, y := buffer.Resize(&s.adapted[1], len(list)*rank), buffer.Resize(&s.adapted[2], len(list)*out)
		for k, t := range list {
			copy(inputs[k*in:][:in], x[t*in:])
		}
		if err := s.multiply(low, inputs, len(list), l.a[i]); err != nil {
			return err
		}
		if err := s.multiply(y, low, len(list), l.b[i]); err != nil {
			return err
		}
		for k, t := range list {
			vecmath.Add(dst[t*ld:][:out], y[k*out:][:out])
		}
	}
	return nil
}

// multiply sets dst to the outputs of one matrix of an adapter, and reports its inputs unless they are not to be seen.
func (s *stream) multiply(dst, x []float32, rows int, l *linear) error {
	if s.adaptersUnseen {
		return s.product(dst, x, rows, l)
	}
	return s.linear(dst, l.w.Rows, x, rows, l)
}

// product sets dst to the outputs of a layer without more than a matrix.
func (s *stream) product(dst, x []float32, rows int, l *linear) error {
	s.xp.Reset(rows, l.w.K)
	if err := s.eachRows(rows, func(a, b int) { s.xp.PackRows(x[a*l.w.K:], l.w.K, a, b) }); err != nil {
		return err
	}
	return gemm.Product(s.ctx, s.scratch, dst, l.w.Rows, &s.xp, s.weights(l.w))
}
