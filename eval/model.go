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

	"ggforge/arch/graph"
	"ggforge/fault"
	"ggforge/internal/kernel/gemm"
	"ggforge/model"
)

var errBroken, errUnsupported = fault.Broken, fault.Unsupported

// Model is a model that can be run.
type Model struct {
	source *model.Model
	graph  *graph.Model
	p      *params

	embed        *model.Tensor
	embedFold    *hadamard // of rows of embed, or nil
	outNorm      *norm     // or nil
	output       *linear
	positions    *model.Tensor // embeddings of positions, or nil
	tokenType    []float32     // is added to each embedding, or nil
	embedNorm    *norm         // or nil
	head         poolingHead
	layers       []layer
	ropes        []rotation // of layers
	temperatures []temperature
	costs        map[*gemm.Weights]int64
	decoder      *Model         // of an encoder-decoder, whose encoder is the model; or nil
	decision     *decision      // the head of a model that decides, or nil
	adapters     *tokenAdapters // or nil
	cache        *kvCache       // or nil: keys and values are in float32
	nextN        int            // the number of MTP (NextN) layers
	// drafts returns the MTP layers, which it builds once. A model of which the evaluator does not know what they compute
	// is an error of kind fault.Unsupported, one that lacks tensors of kind fault.Broken.
	drafts func() ([]draft, error)
	// maxChunk is the greatest number of tokens in a chunk, for the reason maxChunkOf; 0 for any
	maxChunk   int
	maxChunkOf string
}

// norm is a normalization; weight and bias may be nil.
type norm struct {
	groups       int // of values that are normalized apart; 0 for one
	weight, bias []float32
	tensor       string   // of weight
	eps          *float64 // in place of the model's, or nil
}

// mixer is a block of a layer: token mixer or feed-forward network. It keeps nothing between calls.
type mixer interface {
	// mix sets y to the output for x, normalized states of n tokens, whole chunks. In the last layer it sets only rows
	// at positions from Run.First on, one after the other: see stream.project.
	mix(s *stream, y, x []float32, n int, last bool) error
}

// partName names a mixer in messages.
func partName(m mixer) string { return strings.TrimPrefix(fmt.Sprintf("%T", m), "*eval.") }

// norm returns the normalization of NAME.weight and NAME.bias, nil if there is none. One
// of falcon-h1 is NAME alone.
func (t *tensors) norm(name string, n int) *norm {
	tensor := name + ".weight"
	w := t.vector(tensor, n)
	if w == nil {
		tensor, w = name, t.vector(name, n)
	}
	if w == nil {
		return nil
	}
	return &norm{weight: w, tensor: tensor, bias: t.vector(name+".bias", n)}
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
		return &headNorm{norm{weight: v, tensor: name + ".weight", bias: t.matrix(name+".bias", size, heads)}, size}
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
		for _, s := range m.layers[i].steps {
			if l, ok := s.(*perLayerEmbedding); ok && l.embed != nil && !slices.Contains(names, l.embed.Name) {
				names = append(names, l.embed.Name)
			}
		}
	}
	return names
}
