package main

import (
	"testing"
)

// TestMetaWorse sets values that verify would report as defects.
func TestMetaWorse(t *testing.T) {
	path := vocabulary(t, t.TempDir())
	run := expect(t, "meta")
	eos := "tokenizer.ggml.eos_token_id="
	run(0, "+ "+eos[:len(eos)-1]+" = 2", "--set", eos+"u32:2", path)
	run(2, "want the id of one of 3 tokens", "--set", eos+"99999", path)
	run(2, "--force", "--set", eos+"99999", path)
	run(2, "want the id of one of 3 tokens", "--dry-run", "--set", eos+"3", path)
	run(2, "there are 3 tokens", "--set", "tokenizer.ggml.scores=[1,2]", path)
	run(0, "was 2", "--set", eos+"1", path)
	run(0, "was 1", "--set", eos+"99999", "--force", path)
	run(0, "general.name", "--set", "general.name=str:x", path) // the file had the defect before
}
