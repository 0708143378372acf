package main

import (
	"strings"
	"testing"
)

// TestWindowWarning expects a warning about a sliding window where runtimes would attend to more tokens than the
// original model, and only there.
func TestWindowWarning(t *testing.T) {
	for name, c := range map[string]struct {
		spec, set string
		want      string // "" for no warning
	}{
		"mistral": {"mistral", `{"sliding_window": 4096, "max_position_embeddings": 32768}`,
			"sliding window of 4096 positions, which architecture llama does not have: programs will let it see all 32768"},
		"mistral-by-default": {"mistral", `{"sliding_window": null, "max_position_embeddings": 32768}`,
			"sliding window of 4096 positions"},
		"as-long-as-context": {"mistral", `{"sliding_window": 4096, "max_position_embeddings": 4096}`, ""},
		"llama-has-none":     {"llama", `{"sliding_window": 1024}`, ""},
		"qwen-off": {"qwen2",
			`{"sliding_window": 1024, "use_sliding_window": false, "max_window_layers": 1}`, ""},
		"qwen-on": {"qwen2",
			`{"sliding_window": 1024, "use_sliding_window": true, "max_window_layers": 1}`, "sliding window of 1024"},
		"qwen-no-layer": {"qwen2",
			`{"sliding_window": 1024, "use_sliding_window": true, "max_window_layers": 80}`, ""},
		"qwen-layers": {"qwen3",
			`{"sliding_window": 1024, "use_sliding_window": true, "layer_types": ["full_attention", "sliding_attention"]}`, "sliding window of 1024"},
		"qwen-layers-all": {"qwen3",
			`{"sliding_window": 1024, "use_sliding_window": true, "layer_types": ["full_attention", "full_attention"]}`,
			""},
		"starcoder2": {"starcoder2", `{"sliding_window": 64, "max_position_embeddings": 128}`,
			"sliding window of 64"},
		"written":              {"gemma2", `{"sliding_window": 64}`, ""},
		"written-but-not-read": {"phi3", `{"sliding_window": 47}`, "sliding window of 47"},
		"custom-code-has-none": {"bailing_moe", `{"sliding_window": 47, "use_sliding_window": true}`, ""},
		"mixture-of-experts-on": {"qwen3_moe",
			`{"sliding_window": 1024, "use_sliding_window": true, "max_window_layers": 80}`, "sliding window of 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, c.spec)
			configure(t, dir, c.set)
			code, out, err := convertSpec(s, dir)
			if code != 0 {
				t.Fatal(err)
			}
			if strings.Contains(out, "window") != (c.want != "") || !strings.Contains(out, c.want) {
				t.Errorf("want %q in\n%s", c.want, out)
			}
		})
	}
}

// TestInertKeys adds keys to a config that change nothing, and some that do.
func TestInertKeys(t *testing.T) {
	const warning = "keys without a place in the file: "
	for name, c := range map[string]struct {
		spec, set string
		want      string // the keys, "" for no warning
	}{
		"labels": {"llama", `{"_num_labels": 5, "num_labels": 2, "name_or_path": "./x", "internal_version": "1.1", "id2label": {"0": "A"}, "label2id": {"A": 0},
			"transformers_version": "4.0", "_attn_implementation": "sdpa", "transformers.js_config": {"dtype": "q4"}}`, ""},
		"generation": {"llama",
			`{"do_sample": true, "temperature": 0.7, "top_k": 50, "top_p": 0.9, "num_beams": 4, "length_penalty": 1.1}`,
			""},
		"repeated": {"llama",
			`{"n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 2048, "seq_length": 2048, "max_position_embeddings": 2048}`, ""},
		"repeated-gpt2":    {"gpt2", `{"hidden_size": 64, "num_attention_heads": 4}`, ""},
		"repeated-wrongly": {"llama", `{"n_head": 5}`, "n_head"},
		"unknown":          {"llama", `{"strange": 1, "unknown": {"a": 1}, "absent": false}`, "strange, unknown"},
		"window": {"llama",
			`{"sliding_window": 1, "use_sliding_window": true, "max_window_layers": 1, "layer_types": ["full_attention", "full_attention"]}`, ""},
		"other-layers": {"llama", `{"layer_types": ["full_attention", "conv"]}`, "layer_types"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, c.spec)
			configure(t, dir, c.set)
			code, out, err := convertSpec(s, dir)
			if code != 0 {
				t.Fatal(err)
			}
			_, found, _ := strings.Cut(out, warning)
			found, _, _ = strings.Cut(found, "\n")
			if found != c.want {
				t.Errorf("found %q, want %q, in\n%s", found, c.want, out)
			}
		})
	}
}
