// Package eval runs language models over text: perplexity, divergence between models,
// importance of weights.
//
// Values are float32, weights are decoded to float32, and every sum has a defined order
// (see packages gemm and vecmath), so that a figure is the same on every processor and with
// any number of workers.
//
// The residual stream of all chunks stays in memory and goes through the model layer by
// layer: weights are read once per run, in the order of the file, a few rows at a time. So
// memory does not depend on the size of the model.
package eval

import (
	"fmt"
	"slices"
	"strings"

	"ggforge/fault"
	"ggforge/internal/vecmath"
	"ggforge/model"
)

var errBroken, errUnsupported = fault.Broken, fault.Unsupported

// Model is a model that can be run.
type Model struct {
	source *model.Model
	graph  *Graph
	p      *params

	embed       *model.Tensor
	outNorm     *norm
	output      *linear
	freqs       []float32     // factors of the frequencies, or nil
	long, short []float32     // further ones, for texts beyond the context of the training and others; or nil
	places      *model.Tensor // embeddings of positions, or nil
	embedNorm   *norm         // or nil
	layers      []layer
}

// norm is a normalization; weight and bias may be nil.
type norm struct{ weight, bias []float32 }

type layer struct {
	attnNorm, ffnNorm       *norm
	q, k, v, qkv, out       *linear // qkv or q, k and v
	qNorm, kNorm            *headNorm
	sinks                   []float32 // one for each head, or nil
	postAttn, postFFN       *norm
	feed                    *feedForward // or
	experts                 *experts
	heads, kv               int
	local, turned, parallel bool      // sees a window only; queries and keys are turned; both parts read the same state
	slopes                  []float32 // of distances that are subtracted from scores, one for each head; or nil
}

// Supported returns the architectures that can be run.
func Supported() []string {
	var names []string
	for _, g := range graphs {
		names = append(names, g.Arch)
	}
	slices.Sort(names)
	return names
}

// New prepares a model for running; it is read from as long as it runs. A model of an
// architecture, or with a key or a tensor, that is not understood is refused with an error
// of kind fault.Unsupported: a wrong graph gives plausible numbers.
func New(m *model.Model) (*Model, error) {
	arch := m.Architecture()
	g := lookup(arch)
	if g == nil {
		return nil, fault.Errorf(fault.Unsupported, "%s: architecture %q cannot be run; these can: %s", m.Path, arch, strings.Join(Supported(), ", "))
	}
	k := newKeys(m.Path, m.Metadata)
	p := g.params(k, len(m.Tensors))
	if k.err != nil {
		return nil, k.err
	}
	t := newTensors(m)
	r := &Model{source: m, graph: g, p: p}
	if err := r.resolve(k, t); err != nil {
		return nil, err
	}
	if err := k.rest(); err != nil {
		return nil, err
	}
	return r, t.rest()
}

// resolve finds the tensors of the model.
func (m *Model) resolve(k *keys, t *tensors) error {
	p := m.p
	if e := t.all["token_embd.weight"]; e != nil && len(e.NE) == 2 {
		p.vocab = int(e.NE[1])
	}
	m.embed = t.must("token_embd.weight", p.width, p.vocab)
	m.outNorm = t.norm("output_norm", p.width)
	if m.outNorm == nil && !m.graph.BareNorm {
		t.fail(errBroken, "no tensor %q", "output_norm.weight")
	}
	if m.output = t.linear("output", p.width, p.vocab); m.output == nil && m.embed != nil {
		m.output = &linear{name: m.embed.Name, w: t.weights(m.embed, 0, p.vocab)}
	}
	m.freqs = t.vector("rope_freqs.weight", p.ropeDim/2)
	m.long, m.short = t.vector("rope_factors_long.weight", p.ropeDim/2), t.vector("rope_factors_short.weight", p.ropeDim/2)
	m.places = t.get("position_embd.weight", p.width, p.context)
	m.embedNorm = t.norm("token_embd_norm", p.width)
	if m.graph.BareNorm {
		m.outNorm = &norm{}
	}
	feedNorm := "ffn_norm"
	if m.graph.FeedNorm != "" {
		feedNorm = m.graph.FeedNorm
	}
	for name := range t.all { // layers that predict further tokens do not take part
		var i int
		if _, err := fmt.Sscanf(name, "blk.%d.", &i); err == nil && i >= p.layers && i < p.blocks {
			t.used[name] = true
		}
	}
	for i := range p.layers {
		l := layer{heads: p.heads[i], kv: p.kv[i]}
		l.local = p.local(i)
		l.turned = m.graph.Rope != RopeNone && (m.graph.Turned == nil || m.graph.Turned(p, i))
		name := func(s string) string { return fmt.Sprintf("blk.%d.%s", i, s) }
		nq, nk, nv := l.heads*p.keyLen, l.kv*p.keyLen, l.kv*p.valueLen
		l.attnNorm, l.ffnNorm = t.norm(name("attn_norm"), p.width), t.norm(name(feedNorm), p.width)
		if t.all[name("attn_norm_2.weight")] != nil { // attention has its own, the other is of the feed-forward layer
			l.ffnNorm, l.attnNorm = l.attnNorm, t.norm(name("attn_norm_2"), p.width)
		}
		if m.graph.BareNorm {
			l.attnNorm, l.ffnNorm = &norm{}, &norm{}
		}
		if l.qkv = t.linear(name("attn_qkv"), p.width, nq+nk+nv); l.qkv == nil {
			l.q, l.k, l.v = t.needed(name("attn_q"), p.width, nq), t.needed(name("attn_k"), p.width, nk), t.needed(name("attn_v"), p.width, nv)
		}
		l.out = t.needed(name("attn_output"), l.heads*p.valueLen, p.width)
		l.qNorm, l.kNorm = t.headNorm(name("attn_q_norm"), l.heads, p.keyLen), t.headNorm(name("attn_k_norm"), l.kv, p.keyLen)
		if l.sinks = t.vector(name("attn_sinks.weight"), l.heads); t.err == nil {
			l.slopes = p.slopes(l.heads)
		}
		if feedNorm != "post_attention_norm" {
			l.postAttn = t.norm(name("post_attention_norm"), p.width)
		}
		l.postFFN = t.norm(name("post_ffw_norm"), p.width)
		l.parallel = m.graph.Parallel != nil && m.graph.Parallel(k, &l)
		switch {
		case m.graph.NormAfter:
			if l.postAttn == nil || l.postFFN == nil {
				t.fail(errBroken, "no tensor %q or %q", name("post_attention_norm.weight"), name("post_ffw_norm.weight"))
			}
		case l.attnNorm == nil:
			t.fail(errBroken, "no tensor %q", name("attn_norm.weight"))
		case l.ffnNorm == nil && !l.parallel:
			t.fail(errBroken, "no tensor %q", name(feedNorm+".weight"))
		}
		if l.experts = m.experts(t, name); l.experts == nil {
			l.feed = m.feedForward(t, name, p.ff[i])
		} else if l.parallel || l.ffnNorm == nil {
			t.fail(errUnsupported, "layer %d has experts that do not read the normalized stream after attention", i)
		}
		m.layers = append(m.layers, l)
		if t.err != nil {
			return t.err
		}
	}
	return t.err
}

// feedForward returns the feed-forward layer of tensors of those names.
func (m *Model) feedForward(t *tensors, name func(string) string, ff int) *feedForward {
	f := &feedForward{ff: ff, gate: t.linear(name("ffn_gate"), m.p.width, ff)}
	if up := t.all[name("ffn_up")+".weight"]; f.gate == nil && up != nil && len(up.NE) == 2 && up.NE[1] == int64(2*ff) {
		f.fused = true
	}
	n := ff
	if f.fused {
		n = 2 * ff
	}
	f.up, f.down = t.needed(name("ffn_up"), m.p.width, n), t.needed(name("ffn_down"), ff, m.p.width)
	return f
}

// norm returns the normalization of NAME.weight and NAME.bias, nil if there is none.
func (t *tensors) norm(name string, n int) *norm {
	w := t.vector(name+".weight", n)
	if w == nil {
		return nil
	}
	return &norm{w, t.vector(name+".bias", n)}
}

// headNorm normalizes size values at once, a head or all of them; the weights are of a
// head or of all, too.
type headNorm struct {
	norm
	size int
}

// headNorm returns the normalization of heads, nil if there is none.
func (t *tensors) headNorm(name string, heads, size int) *headNorm {
	x := t.all[name+".weight"]
	if x == nil {
		return nil
	}
	switch {
	case len(x.NE) == 2: // each its own
		v := t.matrix(name+".weight", size, heads)
		return &headNorm{norm{v, t.matrix(name+".bias", size, heads)}, size}
	case x.NE[0] == int64(size):
		return &headNorm{*orBare(t.norm(name, size)), size}
	}
	return &headNorm{*orBare(t.norm(name, heads*size)), heads * size}
}

func orBare(n *norm) *norm {
	if n == nil {
		return &norm{}
	}
	return n
}

// slopes returns the factors of distances, see Graph.Alibi.
func (p *params) slopes(heads int) []float32 {
	if p.alibi == 0 {
		return nil
	}
	power := 1
	for power*2 <= heads {
		power *= 2
	}
	slopes := make([]float32, heads)
	for h := range slopes {
		bias, n := p.alibi, h+1
		if h >= power {
			bias, n = p.alibi/2, 2*(h-power)+1
		}
		slopes[h] = float32(vecmath.Pow(vecmath.Pow(2, -bias/float64(power)), float64(n)))
	}
	return slopes
}

// Vocab returns the number of tokens.
func (m *Model) Vocab() int { return m.p.vocab }
