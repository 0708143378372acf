package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/memory"
)

// runnable writes the header of a small model of two layers.
func runnable(t *testing.T) string {
	t.Helper()
	m := gguf.Metadata{
		{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
		{Key: "llama.block_count", Value: gguf.Uint32(2)},
		{Key: "llama.context_length", Value: gguf.Uint32(8192)},
		{Key: "llama.embedding_length", Value: gguf.Uint32(64)},
		{Key: "llama.attention.head_count", Value: gguf.Uint32(2)},
		{Key: "llama.attention.head_count_kv", Value: gguf.Uint32(1)},
	}
	tensors := []gguf.Tensor{{Name: "blk.0.attn_k.weight", NE: []int64{32, 2}, Type: gguf.TypeQ8_0}}
	data := make([]byte, gguf.Layout(tensors, 32))
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, append(gguf.AppendHeader(nil, m, tensors, 32), data...), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMemory checks what inspect --memory prints. Package memory has the sizes.
func TestMemory(t *testing.T) {
	inspect := expect(t, "inspect")
	file := runnable(t)
	text := inspect(0, "llama, cache f16, batches of 512 tokens", "--memory", file)
	for _, want := range []string{"\n          4096 ", "\n          8192 ", "context 8192, all tokens: 8192 cells, 2 layers, keys 1.00 MiB, values 1.00 MiB\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	inspect(0, "cache q8_0 and f16, batches of 64 tokens, 4 sequences", "--memory", "--markdown", "--cache-type", "q8_0,f16", "--ubatch-size", "64", "--parallel", "4", file)
	var r memory.Report
	if err := json.Unmarshal([]byte(inspect(0, "", "--memory", "--json", "--context", "1k,32k", file)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Uses) != 2 || r.Uses[1].Context != 32768 || r.Uses[1].Cache != 2*2*32768*64 || r.Uses[1].Weights != 68 || r.Trained != 8192 {
		t.Errorf("%+v", r)
	}
	inspect(2, "needs --memory", "--context", "4k", file)
	inspect(2, "--context", "--memory", "--context", "4k,", file)
	inspect(2, "q4_K", "--memory", "--cache-type", "q4_K", file)
	inspect(3, "llama.block_count", "--memory", write(t, t.TempDir(), "bare.gguf", 0))
}
