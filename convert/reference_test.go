package convert_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
	"ggforge/test/hftest"
)

// TestReference checks that the file has a key that the runtime needs and the reference's converter does not write,
// except with Options.Reference.
func TestReference(t *testing.T) {
	for name, want := range map[string]struct {
		key string
		eps float32
	}{
		"exaone": {"exaone.attention.layer_norm_rms_epsilon", 1e-5},
		"qwen":   {"qwen.attention.layer_norm_rms_epsilon", 1e-6},
	} {
		s := hftest.Lookup(name)
		dir, err := s.Write(t.TempDir(), s.All()[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, reference := range []bool{false, true} {
			job, err := convert.Prepare(t.Context(), dir, convert.Options{Pre: s.PreTokenizer(), Reference: reference})
			if err != nil {
				t.Fatal(err)
			}
			v, ok := job.Metadata().Get(want.key)
			if eps, _ := v.Float(); ok == reference || ok && float32(eps) != want.eps {
				t.Errorf("%s like the reference %v: the key is there %v with %v", name, reference, ok, eps)
			}
			job.Close()
		}
	}
}

// TestCogVLM checks that the file has the weights for image tokens, which the reference leaves out, and that
// published configs, whose num_key_value_heads is null, are accepted.
func TestCogVLM(t *testing.T) {
	s := hftest.Lookup("cogvlm")
	v := s.All()[0]
	v.Set = `{"num_key_value_heads": null}`
	dir, err := s.Write(t.TempDir(), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, reference := range []bool{false, true} {
		job, err := convert.Prepare(t.Context(), dir, convert.Options{Reference: reference})
		if err != nil {
			t.Fatal(err)
		}
		there := slices.ContainsFunc(job.Plan, func(t convert.Tensor) bool { return t.Name == "blk.1.vis_down.weight" })
		if there == reference {
			t.Errorf("like the reference %v: vis_down is there %v", reference, there)
		}
		job.Close()
	}
}

// TestRefusedSettings checks that settings which change the arithmetic, and which the file cannot hold, are refused.
func TestRefusedSettings(t *testing.T) {
	for _, c := range []struct{ spec, set, want string }{
		{"iquestcoder", `{"clip_qkv": 8}`, "clip_qkv"},
		{"kormo", `{"mask_type": "intra_document"}`, "mask_type"},
		{"smolvlm", `{"text_config": {"qk_layer_norms": true}}`, "qk_layer_norms"},
		{"rnd1", `{"norm_topk_prob": false}`, "norm_topk_prob"},
		{"qwen", `{"rotary_pct": 0.5}`, "rotary_pct"},
		{"spark2_5", `{"hidden_act": "silu"}`, "hidden_act"},
		{"spark2_5", `{"layer_types": ["linear_attention", "full_attention"]}`, "linear_attention"},
		{"maple", `{"nope_on_global_attention": null}`, "nope_on_global_attention"},
		{"k2_horizon", `{"attention_gate_func": "sigmoid"}`, "attention_gate_func"},
		{"k2_horizon", `{"mlp_only_layers": [1]}`, "mlp_only_layers"},
		{"d1_omni", `{"max_length": 8192}`, "max_length"},
		{"granite_switch", `{"num_local_experts": 4}`, "num_local_experts"},
		{"granite_vision", `{"deepstack_layer_map": [[1, 4]]}`, "layer 4 twice"},
	} {
		s := hftest.Lookup(c.spec)
		v := s.All()[0]
		v.Set = c.set
		dir, err := s.Write(t.TempDir(), v)
		if err == nil {
			_, err = convert.Prepare(t.Context(), dir, convert.Options{Pre: s.PreTokenizer()})
		}
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %s: %v", c.spec, c.set, err)
		}
	}
}

// TestFirstDense checks that a late-interaction model (ColBERT) needs the sizes of its dense module.
func TestFirstDense(t *testing.T) {
	s := hftest.Lookup("lfm2_colbert")
	dir, err := s.Write(t.TempDir(), s.All()[0])
	if err == nil {
		err = os.Remove(filepath.Join(dir, "1_Dense", "config.json"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert.Prepare(t.Context(), dir, convert.Options{Pre: s.PreTokenizer()}); !errors.Is(err,
		fault.Broken) || !strings.Contains(err.Error(), "1_Dense/config.json") {
		t.Errorf("%v, want an error about the missing sizes", err)
	}
}
