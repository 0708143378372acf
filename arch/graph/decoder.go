package graph

import "ggforge/model/limits"

// Second is a further stack of layers, next to Model.Layer.
type Second interface{ second() }

// Decoder is the decoder of an encoder-decoder (T5): the Model is the encoder, and the decoder predicts a text token by
// token, with the embeddings of the Model, from the earlier ones and from the last states of the encoder, which
// CrossAttention reads.
type Decoder struct {
	Prefix string // of the names of tensors of layers: "dec."
	Layers Num    // how many there are
	Layer  []Step // one layer
	Final  []Step // after the last layer: usually a norm
	Head   Head
}

// CrossAttention is the attention of a decoder's tokens to all tokens of the encoder's text: queries are cross_attn_q·x,
// keys and values are cross_attn_k and cross_attn_v times the encoder's last states, the output projection is
// cross_attn_o. Sizes are those of Attention. Files of the first T5 models have a table of relative positions that is
// not used, cross_attn_rel_b.
type CrossAttention struct{ Scale Num } // of scores

func (Decoder) second()      {}
func (CrossAttention) part() {}

func (CrossAttention) asks() []Num {
	return []Num{"n_head", "n_head_kv", "n_embd_head_k", "n_embd_head_v", relativeBuckets}
}

// Declare is Part.Declare.
func (a CrossAttention) Declare(d *Decl) {
	embd, heads, kv := d.Size("n_embd"), d.Size("n_head"), d.Size("n_head_kv")
	key, val := d.Size("n_embd_head_k"), d.Size("n_embd_head_v")
	if kv > 0 && heads%kv != 0 {
		d.contradiction("%d heads, want a multiple of the %d heads of keys", heads, kv)
	}
	d.checkNumbers(a.Scale)
	d.linear(Yes, "cross_attn_q", QueryRole, embd, mul(heads, key))
	d.linear(Yes, "cross_attn_k", KeyRole, embd, mul(kv, key))
	d.linear(Yes, "cross_attn_v", ValueRole, embd, mul(kv, val))
	d.linear(Yes, "cross_attn_o", AttnOutRole, mul(heads, val), embd)
	if d.Has("cross_attn_rel_b") {
		d.weight(May, "cross_attn_rel_b", KernelRole, heads, d.Size(relativeBuckets))
	}
}

// decoder returns the decoder of the model; ok is false without one.
func (f *facts) decoder() (x Decoder, ok bool) {
	x, ok = f.model.Second.(Decoder)
	return x, ok
}

// second declares the second stack of layers.
func (d *Decl) second() {
	switch x := d.model.Second.(type) {
	case nil:
	case Decoder:
		d.layer, d.used = -1, nil
		n := d.Size(x.Layers)
		switch tensors := int64(len(d.file.Tensors)); {
		case n == 0 || tensors > 0 && n > tensors:
			d.broken("%d layers of a decoder, in a file of %d tensors%s", n, tensors, d.describe(d.used))
		case n > limits.MaxLayers:
			d.broken("%d layers of a decoder: llama.cpp loads at most %d%s", n, limits.MaxLayers, d.describe(d.used))
		}
		d.steps(x.Final)
		d.used = nil
		d.head(x.Head)
		for i := range int(n) {
			if d.err != nil {
				return
			}
			d.inDecoder, d.layer, d.pass = true, i, i
			d.steps(x.Layer)
		}
		d.inDecoder = false
		if d.err == nil {
			d.decoderLayers = int(n)
		}
	case Decision:
		d.decide(x)
	default:
		d.unknown("second stack", x)
	}
}

// DecoderLayers returns the number of layers of the decoder, 0 without one.
func (d *Decl) DecoderLayers() int { return d.decoderLayers }

// InDecoder returns the scope of layer i of the decoder.
func (d *Decl) InDecoder(i int) *Scope { return &Scope{facts: d.facts, layer: i, inDecoder: true} }

// Prefix returns what the names of tensors of the scope's layers begin with.
func (s *Scope) Prefix() string {
	if x, ok := s.decoder(); ok && s.inDecoder {
		return x.Prefix
	}
	return s.model.Prefix
}
