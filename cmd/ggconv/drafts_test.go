package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
)

// TestDraftFiles converts MTP (NextN) layers to a separate file: in a directory it gets a different name, and the
// model without them has one layer less.
func TestDraftFiles(t *testing.T) {
	for _, c := range []struct{ spec, draft, rest string }{
		{"glm4_moe", "mtp-Glm4_Moe-F16.gguf", "Glm4_Moe-4x212K-F16.gguf"},
		{"qwen3_next", "mtp-Qwen3_Next-F16.gguf", "Qwen3_Next-4x353K-F16.gguf"},
	} {
		s, dir := made(t, c.spec)
		out := t.TempDir()
		for _, flag := range []string{"--mtp", "--no-nextn"} {
			if code, _, err := call("--progress", "none", "--outtype", "f16", "--pre", s.PreTokenizer(), "--outfile",
				out, flag, dir); code != 0 {
				t.Fatalf("%s %s: exit code %d, %v", c.spec, flag, code, err)
			}
		}
		var names []string
		list, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, e.Name())
		}
		if want := []string{c.draft, c.rest}; !slices.Equal(slices.Sorted(slices.Values(names)),
			slices.Sorted(slices.Values(want))) {
			t.Fatalf("%s: files %q, want %q", c.spec, names, want)
		}
		has := func(name string) (model, drafts int) {
			f, err := gguf.Open(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, tensor := range f.Tensors {
				switch {
				case strings.HasPrefix(tensor.Name, "blk.0."):
					model++
				case strings.Contains(tensor.Name, ".nextn."):
					drafts++
				}
			}
			return model, drafts
		}
		if model, drafts := has(c.draft); model != 0 || drafts == 0 {
			t.Errorf("%s: %d tensors of layer 0 and %d of drafts, want none and some", c.draft, model, drafts)
		}
		if model, drafts := has(c.rest); model == 0 || drafts != 0 {
			t.Errorf("%s: %d tensors of layer 0 and %d of drafts, want some and none", c.rest, model, drafts)
		}
	}
}

// TestDraftsRefused asks for draft models of checkpoints that have none.
func TestDraftsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spec, set string
		flags     []string
		code      int
		want      string
	}{
		"both": {spec: "glm4_moe", flags: []string{"--mtp", "--no-nextn"}, code: 2,
			want: "want one of them"},
		"other class": {spec: "llama", flags: []string{"--mtp"}, code: 4,
			want: "not supported for class LlamaForCausalLM"},
		"dropped": {spec: "deepseek_v3", flags: []string{"--no-mtp"}, code: 4,
			want: "not supported for class DeepseekV3ForCausalLM"},
		"none": {spec: "glm4_moe", set: `{"num_nextn_predict_layers": 0}`, flags: []string{"--mtp"},
			code: 4, want: "the model has no MTP layers"},
		"blocks and layers": {spec: "deepseek-v4", flags: []string{"--dspark", "--mtp"}, code: 2,
			want: "--dspark converts the DSpark draft model alone"},
		"blocks and a tower": {spec: "deepseek-v4", flags: []string{"--dspark", "--mmproj"}, code: 2,
			want: "has no place for drafts"},
		"blocks in params.json": {spec: "deepseek-v4", flags: []string{"--dspark", "--mistral-format"}, code: 2,
			want: "nor for Mistral's own format"},
		"blocks of another": {spec: "llama", flags: []string{"--dspark"}, code: 4,
			want: "models of class LlamaForCausalLM have no drafts of blocks of tokens (DSpark) next to them"},
		"blocks of drafts": {spec: "dspark-deepseek4", flags: []string{"--dspark"}, code: 4,
			want: "models of class DeepseekV4DSparkModel have no drafts"},
		"no target": {spec: "dspark-deepseek4", code: 2, want: "whose directory is needed"},
		"no weights": {spec: "qwen3_next", set: `{"mtp_num_hidden_layers": 2}`, flags: []string{"--mtp"}, code: 3,
			want: "tensors are missing for 7 layers:\n  model.layers.6.eh_proj.weight"},
	} {
		s, dir := made(t, c.spec)
		if c.set != "" {
			configure(t, dir, c.set)
		}
		code, _, err := convertSpec(s, dir, c.flags...)
		if code != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: exit code %d, %v; want %d, %q", name, code, err, c.code, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "out.gguf")); err == nil {
			t.Errorf("%s: a file was written", name)
		}
	}
}

// TestDSparkNextToModel converts the DSpark draft model in the checkpoint of its target model.
func TestDSparkNextToModel(t *testing.T) {
	s, dir := made(t, "deepseek-v4")
	code, _, err := convertSpec(s, dir, "--dspark", "--target-model-dir", dir)
	if code == 0 || !strings.Contains(err.Error(), "mtp.0.e_proj") {
		t.Errorf("MTP layers: exit code %d, %v; want an error that names mtp.0.e_proj", code, err)
	}
	s, dir = made(t, "dspark-deepseek4")
	configure(t, dir, `{"architectures": ["DeepseekV4ForCausalLM"]}`)
	if code, _, err := convertSpec(s, dir, "--dspark", "--target-model-dir", dir); code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	f, err := gguf.Open(filepath.Join(dir, "out.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key, want := range map[string]string{"general.architecture": `"dflash"`, "dflash.block_count": "3",
		"dflash.target_layers": "[2, 3, 4]", "tokenizer.ggml.mask_token_id": "1003"} {
		if v, _ := f.Metadata.Get(key); v.String() != want {
			t.Errorf("%s is %v, want %s", key, v, want)
		}
	}
}

// TestDots3Refused converts a dots3-note whose two kinds of layers do not fit one file.
func TestDots3Refused(t *testing.T) {
	for set, want := range map[string]string{
		`{"swa_q_lora_rank": 64}`:                           `"swa_q_lora_rank" 64`,
		`{"swa_qk_rope_head_dim": 32}`:                      `"swa_qk_rope_head_dim" 32`,
		`{"swa_head_dim": 256}`:                             "want the sum of swa_qk_nope_head_dim",
		`{"scoring_func": null}`:                            `"scoring_func" is missing`,
		`{"layer_types": ["full_attention"]}`:               "4 layers, but 1 in layer_types",
		`{"layer_types": ["full", "full", "full", "full"]}`: `"full", want full_attention or sliding_attention`,
		`{"use_dsa": false}`:                                `"use_dsa"`,
		`{"attention_gate_type": "elementwise"}`:            `"elementwise"`,
		`{"n_group": 2}`:                                    `"n_group"`,
		`{"swa_kv_lora_rank": 32}`:                          "attention.kv_lora_rank_swa\" is 32",
		`{"swa_num_attention_heads": 4}`:                    "want 4 heads",
	} {
		s, dir := made(t, "dots3note")
		configure(t, dir, set)
		if code, _, err := convertSpec(s, dir); code != 3 && code != 4 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: exit code %d, %v; want 3 or 4, %q", set, code, err, want)
		}
	}
}
