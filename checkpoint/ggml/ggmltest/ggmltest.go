// Package ggmltest builds small files of the formats before GGUF for tests. It checks
// nothing, so it can build broken ones too.
package ggmltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"ggforge/checkpoint/ggml"
	"ggforge/gguf"
	"ggforge/quants"
)

// Model is the content of a file.
type Model struct {
	Magic   string // "lmgg", "fmgg" or "tjgg"
	Version uint32 // not in "lmgg"
	Sizes   ggml.Sizes
	Tokens  []ggml.Token
	Tensors []Tensor
}

// Tensor is a tensor to write.
type Tensor struct {
	Name string
	Type gguf.Type
	NE   []int64 // innermost first
	Data []byte
}

// Encode returns the file.
func Encode(m Model) []byte {
	b := []byte(m.Magic)
	u32 := func(list ...uint32) {
		for _, n := range list {
			b = binary.LittleEndian.AppendUint32(b, n)
		}
	}
	if m.Magic != "lmgg" {
		u32(m.Version)
	}
	s := m.Sizes
	u32(s.Vocab, s.Embd, s.Mult, s.Head, s.Layer, s.Rot, s.FileType)
	for _, t := range m.Tokens {
		u32(uint32(len(t.Text)))
		b = append(b, t.Text...)
		if m.Magic != "lmgg" {
			u32(math.Float32bits(t.Score))
		}
	}
	for _, t := range m.Tensors {
		u32(uint32(len(t.NE)), uint32(len(t.Name)), uint32(t.Type))
		for _, n := range t.NE {
			u32(uint32(n))
		}
		b = append(b, t.Name...)
		for m.Magic == "tjgg" && len(b)%32 != 0 {
			b = append(b, 0)
		}
		b = append(b, t.Data...)
	}
	return b
}

// Llama returns a model of two layers whose matrices have that type: n_embd 64, 4 heads, FFN width 96. Types with
// blocks of 256 need wide.
func Llama(magic string, version, fileType uint32, t gguf.Type, wide bool) Model {
	embd, ff := int64(64), int64(96)
	if wide {
		embd, ff = 256, 512
	}
	const vocab = 300
	m := Model{Magic: magic, Version: version, Sizes: ggml.Sizes{Vocab: vocab, Embd: uint32(embd), Mult: 256, Head: 4,
		Layer: 2, Rot: uint32(embd / 4), FileType: fileType}}
	for i := range vocab {
		text := fmt.Sprintf(" token%d", i)
		switch {
		case i < 3 || i == 270:
			text = ""
		case i < 259:
			text = string([]byte{byte(i - 3)})
		case i == 280:
			text = "ä" // two bytes
		}
		m.Tokens = append(m.Tokens, ggml.Token{Text: text, Score: -float32(i) / 2})
	}
	add := func(name string, t gguf.Type, ne ...int64) {
		n := gguf.Rows(ne) * ne[0]
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(math.Sin(float64(len(name)*7+i))) / 4
		}
		data := make([]byte, t.RowBytes(n))
		if err := quants.Lookup(t).Quantize(data, x, int(ne[0]), nil); err != nil {
			panic(err) // a type that needs importance
		}
		m.Tensors = append(m.Tensors, Tensor{name, t, ne, data})
	}
	add("tok_embeddings.weight", t, embd, vocab)
	add("norm.weight", gguf.TypeF32, embd)
	add("output.weight", t, embd, vocab)
	for i := range 2 {
		in := fmt.Sprintf("layers.%d.", i)
		for _, w := range []string{"wq", "wk", "wv", "wo"} {
			add(in+"attention."+w+".weight", t, embd, embd)
		}
		add(in+"attention_norm.weight", gguf.TypeF32, embd)
		add(in+"feed_forward.w1.weight", t, embd, ff)
		add(in+"feed_forward.w2.weight", t, ff, embd)
		add(in+"feed_forward.w3.weight", t, embd, ff)
		add(in+"ffn_norm.weight", gguf.TypeF32, embd)
	}
	return m
}
