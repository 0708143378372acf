package convert_test

import (
	"errors"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/test/hftest"
)

// TestNgramTables checks that tables of n-grams are refused if they contradict the tensors with their sizes and
// offsets.
func TestNgramTables(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		kind     error
		want     string
	}{
		"floats": {"| 3 | as I64 | fill list 24000000000091 17592186044423 3", "| 3 | as F32", fault.Unsupported,
			"layer_multipliers\" holds F32, want integers"},
		"matrix": {"| 2 | as I64 | fill list 0 47", "| 1, 2 | as I64 | fill list 0 47", fault.Broken,
			"ngram_heads_offsets\": shape [1 2], want one dimension"},
		"negative": {"fill list 0 47", "fill list 0 -47", fault.Broken, "number 1 of offsets is -47"},
		"narrow":   {"24, ple_embed_dim/2", "24, ple_embed_dim/4", fault.Broken, "per_layer_token_embd"},
	} {
		_, err := prepared(t, "qwen4_exp-text", func(s *hftest.Spec) {
			if !strings.Contains(s.Tensors, c.from) {
				t.Fatalf("the spec has no %q", c.from)
			}
			s.Tensors = strings.Replace(s.Tensors, c.from, c.to, 1)
		})
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.want)
		}
	}
	_, err := prepared(t, "qwen4_exp-text", func(s *hftest.Spec) {
		s.Config = strings.Replace(s.Config, `"ple_layer_ids": [2]`, `"ple_layer_ids": [1, 2]`, 1)
	})
	if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "ple_layer_ids") {
		t.Errorf("two layers with tables: %v", err)
	}
}
