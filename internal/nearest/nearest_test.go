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
		{"", "", 0}, {"", "ab", 2}, {"ab", "", 2}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"qwen3", "qwen2", 1}, {"same", "same", 0},
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
		t.Errorf("of none: %q", got)
	}
}
