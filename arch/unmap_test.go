package arch

import (
	"errors"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestUnmapInverts takes every row of every architecture that has a way back there
// and back.
func TestUnmapInverts(t *testing.T) {
	tried := 0
	for _, a := range registry {
		if !a.invertible() {
			continue
		}
		for i := range a.Tensors {
			row := &a.Tensors[i]
			if row.dropped() {
				continue
			}
			suffixes := []string{".weight"}
			if row.Exact {
				suffixes = []string{""}
			} else if row.Bias != NoBias {
				suffixes = append(suffixes, ".bias")
			}
			for _, suffix := range suffixes {
				name := strings.Replace(row.HF, "{bid}", "10", 1) + suffix
				there := place(t, a, name, 11)
				back, ok := a.Unmap(there, 11)
				if !ok || back.Name != name || back.Row != row {
					t.Errorf("%s: %s became %s and came back as %+v %v", a.Name, name, there, back, ok)
				}
				tried++
			}
		}
	}
	if tried < 15 {
		t.Errorf("%d rows", tried)
	}
}

func TestUnmap(t *testing.T) {
	for name, want := range map[string]string{
		"token_embd.weight":       "model.embed_tokens.weight",
		"blk.3.attn_q.bias":       "model.layers.3.self_attn.q_proj.bias",
		"rope_freqs.weight":       "",
		"blk.4.attn_q.weight":     "none", // beyond the last layer
		"blk.03.attn_q.weight":    "none",
		"blk.3.attn_norm.bias":    "none",
		"blk.3.ffn_gate_exps":     "none",
		"":                        "none",
		".weight":                 "none",
		"rope_freqs.weight.extra": "none",
	} {
		m, ok := llama.Unmap(name, 4)
		got := m.Name
		if !ok {
			got = "none"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	k := llama.Keys(gguf.Metadata{
		{Key: "llama.block_count", Value: gguf.Uint32(7)},
		{Key: "llama.attention.head_count", Value: gguf.Uint64(4)},
	})
	if n, err := k.BlockCount(); n != 7 || err != nil {
		t.Errorf("layers: %d %v", n, err)
	}
	if n, err := k.headsKV(); n != 4 || err != nil {
		t.Errorf("key heads without a key: %d %v, want the query heads", n, err)
	}
	k.metadata.Set("llama.attention.head_count_kv", gguf.Int32s([]int32{1, 2}))
	if _, err := k.headsKV(); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "llama.attention.head_count_kv") {
		t.Errorf("a number per layer: %v", err)
	}
	if _, err := llama.Keys(nil).heads(); !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), "llama.attention.head_count") {
		t.Errorf("no key: %v", err)
	}
}

func TestLookupGGUF(t *testing.T) {
	if a, err := LookupGGUF("llama"); a != llama || err != nil {
		t.Errorf("%v %v", a, err)
	}
	if _, err := LookupGGUF("mamba"); !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "llama") {
		t.Errorf("got %v, want the supported ones", err)
	}
}

// TestMissingIsBounded: the number of layers may be anything.
func TestMissingIsBounded(t *testing.T) {
	n := len(llama.Missing(maxBlocks, func(string) bool { return false }))
	if n < maxMissing || n > 2*maxMissing {
		t.Errorf("%d names", n)
	}
}
