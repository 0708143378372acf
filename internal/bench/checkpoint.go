package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ggforge/internal/gen"
	"ggforge/internal/half"
	"ggforge/safetensors"
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

// shardBytes is where a checkpoint is cut into shards.
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

// bytes returns the size of all tensors.
func (m llama) bytes() int64 {
	var n int64
	for _, t := range m.tensors() {
		n += bf16Bytes(t.Shape)
	}
	return n
}

func bf16Bytes(shape []int64) int64 {
	n := int64(2)
	for _, d := range shape {
		n *= d
	}
	return n
}

// tensors returns the tensors by name, which is their order in a file.
func (m llama) tensors() []safetensors.Tensor {
	var list []safetensors.Tensor
	add := func(name string, shape ...int64) {
		list = append(list, safetensors.Tensor{Name: name + ".weight", DType: safetensors.BF16, Shape: shape})
	}
	kv := m.hidden / m.heads * m.kvHeads
	add("lm_head", m.vocab, m.hidden)
	add("model.embed_tokens", m.vocab, m.hidden)
	add("model.norm", m.hidden)
	for i := range m.layers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		add(layer+"input_layernorm", m.hidden)
		add(layer+"post_attention_layernorm", m.hidden)
		add(layer+"mlp.down_proj", m.hidden, m.ffn)
		add(layer+"mlp.gate_proj", m.ffn, m.hidden)
		add(layer+"mlp.up_proj", m.ffn, m.hidden)
		add(layer+"self_attn.k_proj", kv, m.hidden)
		add(layer+"self_attn.o_proj", m.hidden, m.hidden)
		add(layer+"self_attn.q_proj", m.hidden, m.hidden)
		add(layer+"self_attn.v_proj", kv, m.hidden)
	}
	slices.SortFunc(list, func(a, b safetensors.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// write makes the checkpoint in dir, with the tokenizer of another checkpoint.
// Weights are gaussian; norms are 1.
func (m llama) write(dir, tokenizer string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, name := range []string{"tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json"} {
		data, err := os.ReadFile(filepath.Join(tokenizer, name))
		if err != nil && (name == "tokenizer.model" || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
		if err == nil {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
				return err
			}
		}
	}
	config, err := json.MarshalIndent(map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "dtype": "bfloat16", "hidden_act": "silu",
		"bos_token_id": 1, "eos_token_id": 2, "vocab_size": m.vocab, "hidden_size": m.hidden, "intermediate_size": m.ffn,
		"num_hidden_layers": m.layers, "num_attention_heads": m.heads, "num_key_value_heads": m.kvHeads,
		"head_dim": m.hidden / m.heads, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "tie_word_embeddings": false,
		"attention_bias": false, "mlp_bias": false, "rope_parameters": map[string]any{"rope_theta": 10000.0, "rope_type": "default"},
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), append(config, '\n'), 0o666); err != nil {
		return err
	}
	shards := safetensors.Split(m.tensors(), shardBytes)
	if len(shards) > 1 {
		index, err := safetensors.Index(shards)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, safetensors.IndexName), index, 0o666); err != nil {
			return err
		}
	}
	pool := newPool()
	for i, tensors := range shards {
		if err := writeShard(filepath.Join(dir, safetensors.ShardName(i, len(shards))), tensors, pool); err != nil {
			return err
		}
	}
	return nil
}

// writeShard writes one file. All tensors are BF16 and sorted, so their data
// stands in the order of the list.
func writeShard(path string, tensors []safetensors.Tensor, weights *pool) (err error) {
	header, _, err := safetensors.Layout(tensors, map[string]string{"format": "pt"})
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	w.Write(header) // errors stay until Flush
	for _, t := range tensors {
		n := bf16Bytes(t.Shape)
		if strings.Contains(t.Name, "norm") {
			for range n / 2 {
				w.Write([]byte{0x80, 0x3F}) // 1
			}
			continue
		}
		for n > 0 {
			b := weights.next(n)
			n -= int64(len(b))
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}

// pool is a ring of gaussian weights. Its length shares no factor with that of
// rows, so that no two rows near each other are the same.
type pool struct {
	bf16 []byte
	pos  int
}

const poolLen = 1<<20 + 7 // a prime

func newPool() *pool {
	x, _ := gen.Input(fmt.Sprintf("normal/1x%d", poolLen))
	p := &pool{bf16: make([]byte, 0, 2*poolLen)}
	for _, v := range x {
		p.bf16 = binary.LittleEndian.AppendUint16(p.bf16, half.ToBF16(v))
	}
	return p
}

// next returns the next bytes of the ring, at most n, at least two.
func (p *pool) next(n int64) []byte {
	b := p.bf16[p.pos:]
	b = b[:min(int64(len(b)), n)]
	p.pos = (p.pos + len(b)) % len(p.bf16)
	return b
}
