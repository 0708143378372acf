package main

import (
	"fmt"

	"ggforge/test/hftest"
)

// llama is the shape of a made-up Llama checkpoint.
type llama struct {
	hidden, ffn, heads, kvHeads, vocab int64
	layers                             int64
}

// llamas are the shapes to choose from, the largest first. The first two are
// those of published models: Mistral 7B, TinyLlama 1.1B.
var llamas = []llama{
	{hidden: 4096, ffn: 14336, heads: 32, kvHeads: 8, vocab: 32000},
	{hidden: 2048, ffn: 5632, heads: 32, kvHeads: 4, vocab: 32000},
	{hidden: 1024, ffn: 2816, heads: 16, kvHeads: 4, vocab: 32000},
	{hidden: 512, ffn: 1536, heads: 8, kvHeads: 2, vocab: 4096},
	{hidden: 256, ffn: 768, heads: 8, kvHeads: 2, vocab: 4096},
}

// shardBytes is about the size of a shard.
const shardBytes = 5e9

// llamaOfSize returns the model with the largest shape of which 8 layers fit into
// that many bytes of BF16, and as many layers as fit; at least one.
func llamaOfSize(size int64) llama {
	var m llama
	for _, m = range llamas {
		m.layers = 1
		one := m.bytes()
		m.layers = 2
		m.layers = max(1, 1+(size-one)/(m.bytes()-one))
		if m.layers >= 8 {
			break
		}
	}
	return m
}

// spec returns the checkpoint as package hftest makes it, in a folder "model".
func (m llama) spec() (hftest.Spec, hftest.Variant) {
	s := *hftest.Lookup("llama")
	s.Name = "model"
	return s, hftest.Variant{Seed: 1, DType: "BF16", Ring: true, Set: fmt.Sprintf(`{"torch_dtype": "bfloat16", "vocab_size": %d, "hidden_size": %d,
		"intermediate_size": %d, "num_hidden_layers": %d, "num_attention_heads": %d, "num_key_value_heads": %d, "head_dim": %d}`,
		m.vocab, m.hidden, m.ffn, m.layers, m.heads, m.kvHeads, m.hidden/m.heads)}
}

// bytes returns the size of all tensors.
func (m llama) bytes() int64 {
	s, v := m.spec()
	n, err := s.Bytes(v)
	if err != nil {
		panic(err) // of a config made here
	}
	return n
}

// float8Folder is where writeFloat8 makes its checkpoint.
const float8Folder = "fp8-tensor"

// writeFloat8 makes a checkpoint of as many bytes in FP8, of about twice as many
// layers, in the folder float8Folder of dir, and returns its size.
func (m llama) writeFloat8(dir string) (int64, error) {
	s, v := hftest.Lookup(float8Folder), hftest.Variant{}
	for twice := 2 * m.layers; ; twice-- {
		more := m
		more.layers = twice
		_, v = more.spec()
		if n, err := s.Bytes(v); err != nil || n <= m.bytes() || twice == m.layers {
			if err != nil {
				return 0, err
			}
			_, err = s.Write(dir, v)
			return n, err
		}
	}
}

// write makes the checkpoint in the folder "model" of dir.
func (m llama) write(dir string) error {
	s, v := m.spec()
	v.Shards = int((m.bytes() + shardBytes - 1) / shardBytes)
	_, err := s.Write(dir, v)
	return err
}
