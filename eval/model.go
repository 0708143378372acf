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

	"ggforge/eval/internal/metadata"
	"ggforge/fault"
	"ggforge/internal/kernel/gemm"
	"ggforge/model"
)

var errBroken, errUnsupported = fault.Broken, fault.Unsupported

// Model is a model that can be run.
type Model struct {
	source *model.Model
	graph  *Graph
	p      *params

	embed               *model.Tensor
	outNorm             *norm
	output              *linear
	ropeFreqs           []float32     // divisors of RoPE frequencies, or nil
	ropeLong, ropeShort []float32     // further ones, for texts beyond the context of the training and others; or nil
	positions           *model.Tensor // embeddings of positions, or nil
	tokenType           []float32     // is added to each embedding, or nil
	embedNorm           *norm         // or nil
	head                poolingHead
	layers              []layer
	costs               map[*gemm.Weights]int64
}

// norm is a normalization; weight and bias may be nil.
type norm struct{ weight, bias []float32 }

// layer is a mixer and, usually, a feed-forward layer or experts, with their norms.
type layer struct {
	attnNorm, ffnNorm *norm
	mixer             mixer
	postAttn, postFFN *norm
	// norms of the residual stream: after attention, after adding the layer's input once more, after the FFN; or nil
	residualNorms     [3]*norm
	ffn               mixer              // or
	experts           *experts           // or neither
	parallel          bool               // attention and FFN read the same stream
	perLayer          *perLayerEmbedding // or nil
	outputScale       *float32           // of the residual stream after the layer, or nil
	halved            bool               // the residual stream, after the layer
	ffnNeedsAllTokens bool               // even if not all positions are wanted
}

// mixer is a block of a layer: token mixer or feed-forward network. It keeps nothing between calls.
type mixer interface {
	// mix sets y to the output for x, normalized states of n tokens, whole chunks. In the last layer it sets only rows
	// at positions from Run.First on, one after the other: see stream.project.
	mix(s *stream, y, x []float32, n int, last bool) error
}

// partName names a mixer in messages.
func partName(m mixer) string { return strings.TrimPrefix(fmt.Sprintf("%T", m), "*eval.") }

// builder builds the layers of a model from its tensors and keys.
type builder struct {
	m *Model
	p *params
	k *keys
	t *tensors
}

// name returns the name of a tensor of layer i, without ".weight".
func (b *builder) name(i int, s string) string {
	return fmt.Sprintf("%sblk.%d.%s", b.m.graph.TensorPrefix, i, s)
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
func New(m *model.Model) (r *Model, err error) {
	defer func() {
		if x := recover(); x != nil {
			s, ok := x.(buildError)
			if !ok {
				panic(x)
			}
			r, err = nil, s.err
		}
	}()
	arch := m.Architecture()
	g := lookup(arch)
	if g == nil {
		return nil, fault.Errorf(fault.Unsupported,
			"%s: architecture %q is not supported by the evaluator; supported: %s", m.Path, arch,
			strings.Join(Supported(), ", "))
	}
	k := newKeys(m.Path, m.Metadata)
	p := g.params(k, len(m.Tensors))
	t := newTensors(m)
	r = &Model{source: m, graph: g, p: p, costs: t.costs}
	r.resolve(k, t)
	if err := k.checkUnused(); err != nil {
		return nil, err
	}
	return r, t.checkUnused()
}

// resolve finds the tensors of the model.
func (m *Model) resolve(k *keys, t *tensors) {
	p := m.p
	if e := t.all["token_embd.weight"]; e != nil && len(e.NE) == 2 {
		p.vocab = int(e.NE[1])
	}
	m.embed = t.required("token_embd.weight", p.width, p.vocab)
	outNorm := "output_norm"
	if m.graph.OutputNorm != "" {
		outNorm = m.graph.OutputNorm
	}
	m.outNorm = t.norm(outNorm, p.width)
	if m.outNorm == nil && !m.graph.NormWithoutWeights && !m.graph.PostLN {
		t.fail(errBroken, "no tensor %q", outNorm+".weight")
	}
	if m.output = t.linear("output", p.width, p.vocab); m.graph.Bidirectional {
		m.output = nil // the pretraining head is not used
	} else if m.output == nil && m.embed != nil {
		m.output = &linear{name: m.embed.Name, w: t.weights(m.embed, 0, p.vocab)}
	}
	m.ropeFreqs = t.vector("rope_freqs.weight", p.ropeDim/2)
	m.ropeLong, m.ropeShort = t.vector("rope_factors_long.weight", p.ropeDim/2),
		t.vector("rope_factors_short.weight", p.ropeDim/2)
	m.positions = t.get("position_embd.weight", p.width, p.context)
	if outNorm != "token_embd_norm" {
		m.embedNorm = t.norm("token_embd_norm", p.width)
	}
	if kinds := t.all["token_types.weight"]; kinds != nil && len(kinds.NE) > 0 {
		rows := 1
		if len(kinds.NE) == 2 {
			rows = int(min(kinds.NE[1], metadata.MaxSize))
		}
		if all := t.matrix("token_types.weight", p.width, rows); all != nil {
			m.tokenType = all[:p.width] // of the first kind, as all tokens of a text are
		}
	}
	m.head = t.poolingHead(k, p, m.graph.Classifier)
	if m.graph.NormWithoutWeights {
		m.outNorm = &norm{}
	}
	feedNorm := "ffn_norm"
	if m.graph.FFNNorm != "" {
		feedNorm = m.graph.FFNNorm
	}
	if m.graph.IgnoresDecoder {
		for name := range t.all {
			t.used[name] = t.used[name] || strings.HasPrefix(name, "dec.")
		}
	}
	for name := range t.all { // MTP (NextN) layers are not evaluated
		var i int
		if _, err := fmt.Sscanf(name, "blk.%d.", &i); err == nil && i >= p.layers && i < p.allLayers {
			t.used[name] = true
		}
	}
	b := &builder{m, p, k, t}
	build := m.graph.Mixer
	if build == nil {
		build = newAttention
	}
	for i := range p.layers {
		var l layer
		name := func(s string) string { return b.name(i, s) }
		l.attnNorm, l.ffnNorm = t.norm(name("attn_norm"), p.width), t.norm(name(feedNorm), p.width)
		if m.graph.PostLN {
			l.residualNorms = [3]*norm{t.norm(name("attn_output_norm"), p.width), t.norm(name("attn_norm_2"), p.width),
				t.norm(name("layer_output_norm"), p.width)}
		} else if t.all[name("attn_norm_2.weight")] != nil {
			// attention has its own, the other is of the feed-forward layer
			l.ffnNorm, l.attnNorm = l.attnNorm, t.norm(name("attn_norm_2"), p.width)
		}
		if m.graph.NormWithoutWeights {
			l.attnNorm, l.ffnNorm = &norm{}, &norm{}
		}
		l.mixer = build(b, i)
		if p.bidirectional {
			switch l.mixer.(type) {
			case *attention, *shortConv:
			default:
				t.fail(errUnsupported, "%q is false, but the %s of layer %d is causal",
					p.arch+".attention.causal", partName(l.mixer), i)
			}
		}
		if feedNorm != "post_attention_norm" {
			l.postAttn = t.norm(name("post_attention_norm"), p.width)
		}
		l.postFFN = t.norm(name("post_ffw_norm"), p.width)
		l.parallel = m.graph.ParallelResidual != nil && m.graph.ParallelResidual(k, &l)
		switch {
		case m.graph.OutputNormOnly:
			if l.postAttn == nil || l.postFFN == nil {
				t.fail(errBroken, "no tensor %q or %q", name("post_attention_norm.weight"),
					name("post_ffw_norm.weight"))
			}
		case m.graph.PostLN:
			if l.attnNorm != nil || l.ffnNorm != nil || l.residualNorms[0] == nil || l.residualNorms[2] == nil {
				t.fail(errBroken, "no tensor %q or %q, or one of %q and %q", name("attn_output_norm.weight"),
					name("layer_output_norm.weight"), name("attn_norm.weight"), name(feedNorm+".weight"))
			}
		case l.attnNorm == nil && i == 0 && m.graph.NoNormInFirstLayer:
		case l.attnNorm == nil:
			t.fail(errBroken, "no tensor %q", name("attn_norm.weight"))
		case l.ffnNorm == nil && !l.parallel && m.graph.FFN == nil:
			t.fail(errBroken, "no tensor %q", name(feedNorm+".weight"))
		}
		if m.graph.SWAHeadSizes && t.all[name("ffn_gate_inp.weight")] != nil {
			t.fail(errUnsupported,
				"layer %d has experts and a feed-forward network side by side, which the evaluator does not support", i)
		}
		var u ffnActivation
		if m.graph.FFNActivation != nil {
			u = m.graph.FFNActivation(b, i)
		}
		if m.graph.FFN != nil {
			m.graph.FFN(b, i, &l)
		} else if l.experts = m.experts(t, i, name); l.experts == nil {
			f := m.feedForward(t, name, p.ff[i])
			f.activation, l.ffn = u, f
		} else if l.experts.activation = u; l.parallel || l.ffnNorm == nil && !m.graph.PostLN {
			t.fail(errUnsupported,
				"layer %d has experts that do not read the normalized residual stream after attention", i)
		}
		if m.graph.SWAHeadSizes {
			l.perLayer = b.perLayerEmbedding(i)
			if v := t.vector(name("layer_output_scale.weight"), 1); v != nil {
				l.outputScale = &v[0]
			}
		}
		m.layers = append(m.layers, l)
	}
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
	f.up, f.down = t.requiredLinear(name("ffn_up"), m.p.width, n), t.requiredLinear(name("ffn_down"), ff, m.p.width)
	return f
}

// norm returns the normalization of NAME.weight and NAME.bias, nil if there is none. One
// of falcon-h1 is NAME alone.
func (t *tensors) norm(name string, n int) *norm {
	w := t.vector(name+".weight", n)
	if w == nil {
		w = t.vector(name, n)
	}
	if w == nil {
		return nil
	}
	return &norm{w, t.vector(name+".bias", n)}
}

// requiredNorm is norm for one that there has to be.
func (t *tensors) requiredNorm(name string, n int) *norm {
	t.required(name+".weight", n)
	return t.norm(name, n)
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
		return &headNorm{*orUnitNorm(t.norm(name, size)), size}
	}
	return &headNorm{*orUnitNorm(t.norm(name, heads*size)), heads * size}
}

func orUnitNorm(n *norm) *norm {
	if n == nil {
		return &norm{}
	}
	return n
}

// Vocab returns the number of tokens.
func (m *Model) Vocab() int { return m.p.vocab }

// Output returns the name of the tensor that makes logits, "" for none: of the embedding where
// a model has no other.
func (m *Model) Output() string {
	if m.output == nil {
		return ""
	}
	return m.output.name
}

// EmbeddingTensors returns the names of the tensors of which each token reads one row.
func (m *Model) EmbeddingTensors() []string {
	names := []string{m.embed.Name}
	for i := range m.layers {
		if l := m.layers[i].perLayer; l != nil && !slices.Contains(names, l.embed.Name) {
			names = append(names, l.embed.Name)
		}
	}
	return names
}
