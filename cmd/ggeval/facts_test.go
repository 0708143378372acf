package main

import (
	"fmt"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/test/mutate"
)

// perplexityOf returns the perplexity of a file from the JSON output; without one the test fails.
func perplexityOf(t *testing.T, file string) string {
	t.Helper()
	_, out, _, err := call("perplexity", file, "-f", textOf(t, source(t, 3000)), "-c", "64", "--chunks", "2", "--json",
		"--progress", "none")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(result[perplexityResult](t, out).PPL)
}

func setting(key string, v gguf.Value) func(m *gguf.Metadata) {
	return func(m *gguf.Metadata) { m.Set(key, v) }
}

func removing(keys ...string) func(m *gguf.Metadata) {
	return func(m *gguf.Metadata) {
		for _, key := range keys {
			m.Delete(key)
		}
	}
}

// TestMissingKeysAreRefused evaluates files that lack a key without which no runtime loads them: norm and epsilon
// must not be guessed from other keys.
func TestMissingKeysAreRefused(t *testing.T) {
	for _, c := range []struct{ spec, key string }{
		{"exaone", "exaone.attention.layer_norm_rms_epsilon"},
		{"qwen", "qwen.attention.layer_norm_rms_epsilon"},
		{"llama", "llama.attention.layer_norm_rms_epsilon"},
		{"phi", "phi2.attention.layer_norm_epsilon"},
		{"cohere", "command-r.attention.layer_norm_epsilon"},
		{"dots1", "dots1.expert_gating_func"},
		{"granite", "granite.logit_scale"},
		{"gpt_neox", "gptneox.use_parallel_residual"},
		{"granite_moe_swa", "granite_swa.attention.sliding_window_pattern"},
		{"gemma4", "gemma4.attention.sliding_window_pattern"},
		{"nemotron_h", "nemotron_h.attention.layer_norm_epsilon"},
	} {
		file := mutate.File(t, c.spec, "plain", removing(c.key))
		code, _, _, err := call("perplexity", file, "-f", textOf(t, source(t, 3000)), "-c", "64", "--progress", "none")
		if code != 3 || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("no key %q", c.key)) {
			t.Errorf("%s without %s: %d, %v", c.spec, c.key, code, err)
		}
	}
}

// TestUnreadKeysAreRefused evaluates files with keys that only other architectures use: llama.cpp does not read them
// here, so values other than the default are refused.
func TestUnreadKeysAreRefused(t *testing.T) {
	plain := perplexityOf(t, mutate.File(t, "llama", "plain", nil))
	for key, usual := range map[string]float32{
		"attn_logit_softcapping": 0, "final_logit_softcapping": 0, "attention.clamp_kqv": 0,
		"attention.max_alibi_bias": 0, "attention.scale": 0, "residual_scale": 1,
		"embedding_scale": 1, "logit_scale": 1, "rope.scaling.alpha": 0, "rope.scaling.yarn_log_multiplier": 0,
		"rope.scaling.yarn_beta_fast": 32,
	} {
		file := mutate.File(t, "llama", "plain", setting("llama."+key, gguf.Float32(usual+0.5)))
		code, _, _, err := call("perplexity", file, "-f", textOf(t, source(t, 3000)), "-c", "64", "--progress", "none")
		if code != 4 || !strings.Contains(fmt.Sprint(err), "llama."+key) {
			t.Errorf("%s: %d, %v", key, code, err)
		}
		if got := perplexityOf(t, mutate.File(t, "llama", "plain",
			setting("llama."+key, gguf.Float32(usual)))); got != plain {
			t.Errorf("%s as usual: %s, want %s", key, got, plain)
		}
	}
}

// TestDefaultsOfKeys evaluates files without keys whose default depends on the architecture: the figure is that of a
// file with the default.
func TestDefaultsOfKeys(t *testing.T) {
	for _, c := range []struct {
		spec, key string
		def       gguf.Value
	}{
		{"gemma2", "gemma2.attn_logit_softcapping", gguf.Float32(50)},
		{"gemma2", "gemma2.final_logit_softcapping", gguf.Float32(30)},
		{"minicpm", "minicpm.embedding_scale", gguf.Float32(12)},
		{"minicpm", "minicpm.logit_scale", gguf.Float32(4)}, // default: 256/width
		{"afmoe", "afmoe.expert_gating_func", gguf.Uint32(2)},
		{"glm4_moe", "glm4moe.expert_gating_func", gguf.Uint32(2)},
		{"mellum", "mellum.expert_weights_norm", gguf.Bool(true)},
		{"plamo3", "plamo3.rope.freq_base_swa", gguf.Float32(10000)},
		{"rwkv6", "rwkv6.attention.layer_norm_epsilon", gguf.Float32(0)},
		{"rwkv7", "rwkv7.attention.layer_norm_epsilon", gguf.Float32(0)},
		{"qrwkv6", "rwkv6qwen2.attention.layer_norm_rms_epsilon", gguf.Float32(0)},
		{"arwkv7", "arwkv7.attention.layer_norm_rms_epsilon", gguf.Float32(0)},
		// the default epsilon is that of layer norm
		{"nemotron_h_moe", "nemotron_h_moe.attention.layer_norm_rms_epsilon", gguf.Float32(1e-5)},
	} {
		want := perplexityOf(t, mutate.File(t, c.spec, "plain", setting(c.key, c.def)))
		if got := perplexityOf(t, mutate.File(t, c.spec, "plain", removing(c.key))); got != want {
			t.Errorf("%s without %s: %s, want %s", c.spec, c.key, got, want)
		}
	}
}

// TestWindowsThatCount evaluates models with sliding windows: DeepSeek-OCR's file has one, which llama.cpp does not
// read; LFM2 has it in all layers with attention.
func TestWindowsThatCount(t *testing.T) {
	ocr := func(change func(m *gguf.Metadata)) string {
		return perplexityOf(t, mutate.File(t, "deepseek-ocr", "grouped", change))
	}
	if with, without := ocr(nil), ocr(removing("deepseek2-ocr.attention.sliding_window")); with != without {
		t.Errorf("deepseek2-ocr: %s with a window, %s without", with, without)
	}
	lfm := func(n uint32) string {
		return perplexityOf(t, mutate.File(t, "lfm2", "plain",
			setting("lfm2.attention.sliding_window", gguf.Uint32(n))))
	}
	plain := perplexityOf(t, mutate.File(t, "lfm2", "plain", nil))
	if short, long := lfm(7), lfm(64); short == plain || long != plain {
		t.Errorf("lfm2: %s without a window, %s with one of 7 tokens, %s of 64", plain, short, long)
	}
}

// TestHeadsWiderThanRows evaluates RWKV models whose heads are wider than their rows: this must not divide by 0.
func TestHeadsWiderThanRows(t *testing.T) {
	for _, c := range []struct{ spec, arch string }{{"rwkv6", "rwkv6"}, {"qrwkv6", "rwkv6qwen2"}, {"rwkv7", "rwkv7"}} {
		for _, n := range []uint32{0, 1, 3, 1 << 24, 1<<32 - 1} {
			file := mutate.File(t, c.spec, "plain", setting(c.arch+".embedding_length", gguf.Uint32(n)))
			code, _, _, err := call("perplexity", file, "-f", textOf(t, source(t, 3000)), "-c", "64",
				"--progress", "none")
			if code != 3 || !strings.Contains(fmt.Sprint(err), ".gguf") {
				t.Errorf("%s of rows of %d: %d, %v", c.spec, n, code, err)
			}
		}
	}
}
