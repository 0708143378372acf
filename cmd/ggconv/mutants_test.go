package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestHeadsOfOne converts models with wrong head dimensions, some below the two that RoPE rotates: computing
// rope_freqs must not panic.
func TestHeadsOfOne(t *testing.T) {
	rope := `"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}`
	for _, c := range []struct{ spec, set string }{
		{"gemma4-moe", `{"global_head_dim": %s}`},
		{"llama", `{"head_dim": %s, ` + rope + `}`},
	} {
		s, dir := made(t, c.spec)
		for _, n := range []string{"1", "0", "-1", "3", "1000000000"} {
			configure(t, dir, fmt.Sprintf(c.set, n))
			code, _, err := call("--dry-run", "--pre", s.PreTokenizer(), dir)
			if code != 3 || n == "1" && c.spec == "gemma4-moe" && !strings.Contains(fmt.Sprint(err), "two dimensions") {
				t.Errorf("%s with heads of %s: %d, %v", c.spec, n, code, err)
			}
		}
	}
}

// TestCountsThatNothingLoads converts checkpoints with counts in config.json above the limits of llama.cpp, or above
// the counts of their tensors.
func TestCountsThatNothingLoads(t *testing.T) {
	for _, c := range []struct {
		spec, set string
		code      int
		want      string
	}{
		{"llama", `{"num_local_experts": 1000000000}`, 4,
			`"llama.expert_count" is 1000000000: llama.cpp loads at most 1024`},
		{"qwen2", `{"num_experts": 1000000000}`, 4, `"qwen2.expert_count" is 1000000000`},
		{"llama", `{"num_experts": 1025, "num_experts_per_tok": 2}`, 4, "at most 1024"},
		{"llama", `{"num_experts": 8, "num_experts_per_tok": 9}`, 3, `"llama.expert_used_count" is 9`},
		{"llama", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3,
			`config.json: "llama.expert_count" is 8, but there is no tensor "blk.0.ffn_gate_inp.weight"`},
		{"minicpm", `{"num_experts": 1, "num_experts_per_tok": 1}`, 3,
			`"minicpm.expert_count" is 1, but there is no tensor "blk.0.ffn_gate_inp.weight"`},
		{"granite", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3, `"granite.expert_count" is 8`},
		{"granite_swa", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3, `"granite_swa.expert_count" is 8`},
		{"bamba", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3, `"granitehybrid.expert_count" is 8`},
		{"llama_embed", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3, `"llama-embed.expert_count" is 8`},
		{"ministral3", `{"num_experts": 8, "num_experts_per_tok": 2}`, 3, `"mistral3.expert_count" is 8`},
		{"qwen2", `{"num_experts": 8, "num_experts_per_tok": 2}`, 0, ""}, // llama.cpp loads it without experts
		{"llama", `{"num_hidden_layers": 1000000000}`, 3, ""},
		{"llama", `{"num_attention_heads": 1000000000}`, 3, ""},
		{"llama", `{"num_key_value_heads": 1000000000}`, 3, ""},
		{"llama", `{"vocab_size": 1000000000}`, 3, ""},
		{"rwkv6", `{"num_hidden_layers": 1000000000}`, 3, ""},
		{"mamba2", `{"vocab_size": 1000000000}`, 3, ""},
	} {
		s, dir := made(t, c.spec)
		configure(t, dir, c.set)
		code, _, err := call("--dry-run", "--pre", s.PreTokenizer(), dir)
		if code != c.code || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s with %s: %d, %v", c.spec, c.set, code, err)
		}
	}
	// without weights, only the limits of llama.cpp apply
	_, dir := made(t, "llama")
	configure(t, dir, `{"num_hidden_layers": 513}`)
	if code, _, err := call("--config-only", "--dry-run", dir); code != 4 ||
		!strings.Contains(fmt.Sprint(err), "at most 512") {
		t.Errorf("513 layers: %d, %v", code, err)
	}
}

// TestSpecialTokenOfNoToken converts a vocabulary with the id of a special token outside of it: there is a warning.
// TestVerifyCounts of ggtool has the findings of ggtool verify.
func TestSpecialTokenOfNoToken(t *testing.T) {
	s, dir := made(t, "qwen2")
	configure(t, dir, `{"bos_token_id": 99999}`)
	code, log, err := call("--dry-run", "--pre", s.PreTokenizer(), dir)
	if want := "tokenizer.ggml.bos_token_id = 99999, but the vocabulary has 1024 tokens"; code != 0 ||
		!strings.Contains(log, want) {
		t.Errorf("%d, %v: %q is not in\n%s", code, err, want, log)
	}
}
