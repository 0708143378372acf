package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSavedAgain converts checkpoints with the config.json that version 5 of the
// transformers library writes for them: the file is the same.
func TestSavedAgain(t *testing.T) {
	for name, c := range map[string]struct{ spec, published, saved string }{
		"infinity": {"mamba-codestral", `{}`, `{"time_step_limit": [0.0, {"__float__": "Infinity"}]}`},
		"infinity-h1": {"falcon-h1", `{}`,
			`{"time_step_limit": [0.0, {"__float__": "Infinity"}], "mamba_norm_before_gate": true}`},
		"one-key-head": {"falcon", `{}`,
			`{"num_kv_heads": 4, "ffn_hidden_size": 256, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}}`},
		"partial-rotary": {"gpt_neox", `{}`,
			`{"rotary_pct": null, "rotary_emb_base": null, "rope_parameters": {"partial_rotary_factor": 0.25, "rope_theta": 10000, "rope_type": "default"}}`},
		"full-rotary-cohere": {"cohere2", `{"rotary_pct": 1.0}`, `{"rotary_pct": null}`},
	} {
		t.Run(name, func(t *testing.T) {
			var files [2][]byte
			for i, set := range []string{c.published, c.saved} {
				s, dir := made(t, c.spec)
				configure(t, dir, set)
				code, out, err := convertSpec(s, dir)
				if code != 0 {
					t.Fatal(err)
				}
				if strings.Contains(out, "warning") {
					t.Error(out)
				}
				if files[i], err = os.ReadFile(filepath.Join(dir, "out.gguf")); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(files[0], files[1]) {
				t.Error("the files differ")
			}
		})
	}
}

// TestSavedScaling expects RoPE scaling that GGUF cannot express to be refused, also in the layout of version 5 of
// the transformers library.
func TestSavedScaling(t *testing.T) {
	for _, spec := range []string{"gpt_neox", "falcon", "falcon-h1"} {
		for _, key := range []string{"rope_scaling", "rope_parameters"} {
			t.Run(spec+"/"+key, func(t *testing.T) {
				s, dir := made(t, spec)
				configure(t, dir, `{"`+key+`": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}`)
				if code, _, err := convertSpec(s, dir); code != 4 ||
					!strings.Contains(err.Error(), `"rope_type" is "linear"`) {
					t.Errorf("code %d: %v", code, err)
				}
			})
		}
	}
}

// TestNormBeforeGate expects models whose gated norm comes before the gate to be refused.
func TestNormBeforeGate(t *testing.T) {
	s, dir := made(t, "falcon-h1", "if mamba_rms_norm", "if !mamba_rms_norm")
	configure(t, dir, `{"mamba_norm_before_gate": true, "mamba_rms_norm": true}`)
	if code, _, err := convertSpec(s, dir); code != 4 || !strings.Contains(err.Error(), "mamba_norm_before_gate") {
		t.Errorf("code %d: %v", code, err)
	}
}
