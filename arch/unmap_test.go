package arch

import (
	"errors"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/arch/table"
	"ggforge/fault"
)

// TestUnmapInverts takes every row of every architecture that has a way back there
// and back.
func TestUnmapInverts(t *testing.T) {
	tried := 0
	for _, a := range registry() {
		if !a.Invertible() {
			continue
		}
		for i := range a.Tensors {
			row := &a.Tensors[i]
			if row.Drops() {
				continue
			}
			suffixes := []string{".weight"}
			if row.Exact {
				suffixes = []string{""}
			} else if row.Bias != table.NoBias {
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
	n := len(llama.Missing(config.MaxBlocks, func(string) bool { return false }))
	if n < table.MaxMissing || n > 2*table.MaxMissing {
		t.Errorf("%d names", n)
	}
}
