package arch

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
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%.9s %.9s: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for class, want := range map[string]string{
		"LlamaForCasualLM":               "LLaMAForCausalLM LlamaForCausalLM",
		"llama":                          "LLaMAForCausalLM LlamaForCausalLM",
		"Gemma4ForConditionalGeneration": "Gemma3ForConditionalGeneration",
		"DeepseekV9ForCausalLM":          "DeepseekV2ForCausalLM DeepseekV3ForCausalLM",
	} {
		if got := strings.Join(nearest(class, Classes()), " "); got != want {
			t.Errorf("%s: %s, want %s", class, got, want)
		}
	}
}
