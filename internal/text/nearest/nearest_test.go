package nearest

import (
	"strings"
	"testing"
)

func TestEdits(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"qwen3", "qwen2", 1},
		{"same", "same", 0},
		{strings.Repeat("x", 1<<20), "x", maxCompared - 1},
	} {
		if got := Edits(c.a, c.b); got != c.want {
			t.Errorf("%.9s %.9s: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestName(t *testing.T) {
	names := []string{"gpt-2", "llama-bpe", "qwen2", "qwen35"}
	for name, want := range map[string]string{"QWEN-2": "qwen2", "llama3": "llama-bpe", "gpt2": "gpt-2", "": "gpt-2"} {
		if got := Name(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if got := Name("x", nil); got != "" {
		t.Errorf("without candidates: %q", got)
	}
}

func TestHint(t *testing.T) {
	verbs := []string{"inspect", "verify", "diff", "quality", "hash", "imatrix", "meta", "split", "merge",
		"endian", "export"}
	types := []string{"Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
		"IQ4_XS", "F16", "BF16"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"insepct", verbs, "inspect"}, {"verfy", verbs, "verify"}, {"xyz", verbs, ""}, {"hsah", verbs, "hash"},
		{"", verbs, ""}, {"ins", verbs, "inspect"}, {"e", verbs, ""}, {"merges", verbs, "merge"},
		{"q4km", types, "Q4_K_M"}, {"Q4-K-M", types, "Q4_K_M"}, {"q4_mk", types, "Q4_K_M"},
		{"Q4_K", types, "Q4_K_S or Q4_K_M"}, {"Q3_K", types, "Q3_K_S, Q3_K_M or Q3_K_L"}, {"iq4xs", types, "IQ4_XS"},
		{"F61", types, "F16"}, {"xy", types, ""}, {"Q7_0", types, "Q4_0, Q5_0 or Q8_0"},
		{strings.Repeat("Q", 1<<20), types, ""}, {"\xff", types, ""},
	} {
		want := c.want
		if want != "" {
			want = ", did you mean " + want + "?"
		}
		if got := Hint(c.name, c.names); got != want {
			t.Errorf("%.20q: %q, want %q", c.name, got, want)
		}
	}
}
