package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ggforge/eval/memory"
	"ggforge/gguf"
	"ggforge/test/mutate"
)

// TestMemoryOfWindows compares estimated caches of models with sliding windows with the allocations of llama.cpp.
func TestMemoryOfWindows(t *testing.T) {
	set := func(key string, v gguf.Value) func(m *gguf.Metadata) {
		return func(m *gguf.Metadata) { m.Set(key, v) }
	}
	for _, c := range []struct {
		spec, variant string
		change        func(m *gguf.Metadata)
		want          string // cells × layers
	}{
		{"smallthinker", "windows", nil, "8192×1 4608×1"}, // llama.cpp fixes 4096 tokens, whatever the file has
		{"granite_moe_swa", "plain", nil, "8192×1 768×3"},
		{"deepseek-ocr", "grouped", nil, "8192×2"},
		{"lfm2", "plain", set("lfm2.attention.sliding_window", gguf.Uint32(256)), "768×1"},
		{"lfm2", "plain", nil, "8192×1"},
	} {
		out := expect(t, "inspect")(0, "", "--memory", "--json", "--context", "8192",
			mutate.File(t, c.spec, c.variant, c.change))
		var r memory.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, x := range r.Uses[0].Caches {
			got += fmt.Sprintf(" %d×%d", x.Cells, x.Layers)
		}
		if got != " "+c.want {
			t.Errorf("%s/%s: caches%s, want %s", c.spec, c.variant, got, c.want)
		}
	}
}

// TestMemoryOfNoLayers estimates models whose files have a layer count of 0.
func TestMemoryOfNoLayers(t *testing.T) {
	for _, c := range []struct{ spec, key string }{{"granite_switch", "graniteswitch.block_count"},
		{"llama", "llama.block_count"}, {"mamba2", "mamba2.block_count"}} {
		file := mutate.File(t, c.spec, "plain", func(m *gguf.Metadata) { m.Set(c.key, gguf.Uint32(0)) })
		expect(t, "inspect")(3, c.key+`" is 0, want at least 1`, "--memory", file)
	}
}

// TestMemoryOfMasks checks encoders with windows in some layers and in all: there is a mask for each kind of layer,
// and llama.cpp's compute buffers are 20.80 and 12.80 MiB.
func TestMemoryOfMasks(t *testing.T) {
	for spec, want := range map[string]int64{"modernbert": 21807104, "embeddinggemma": 13418496} {
		code, out, err := call("inspect", "--memory", "--json", "-c", "2048", "--ubatch-size", "2048",
			mutate.File(t, spec, "plain", nil))
		if want := fmt.Sprintf(`"compute": %d,`, want); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d, %v: no %s in\n%s", spec, code, err, want, out)
		}
	}
}

// TestVerifyCounts checks files with counts that no runtime loads, and with ids of special tokens outside the
// vocabulary.
func TestVerifyCounts(t *testing.T) {
	for _, c := range []struct {
		key  string
		n    uint32
		code int
		want string
	}{
		{"llama.block_count", 513, 3, "llama.cpp loads at most 512"},
		{"llama.expert_count", 1000000000, 3, "llama.cpp loads at most 1024"},
		{"llama.expert_count", 8, 3, `no tensor "blk.0.ffn_gate_inp.weight", which llama.cpp reads`},
		{"tokenizer.ggml.bos_token_id", 99999, 3, `"tokenizer.ggml.bos_token_id": is 99999, want the id of one of`},
		{"tokenizer.ggml.padding_token_id", 99999, 0, `"tokenizer.ggml.padding_token_id": is 99999`},
	} {
		code, out, err := call("verify", mutate.File(t, "llama", "plain",
			func(m *gguf.Metadata) { m.Set(c.key, gguf.Uint32(c.n)) }))
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s = %d: %d, %v\n%s", c.key, c.n, code, err, out)
		}
	}
}
