package main

import (
	"strings"
	"testing"
)

// TestConfigValues converts checkpoints whose config.json spells what it says
// differently, or says what the architecture does not do.
func TestConfigValues(t *testing.T) {
	for name, c := range map[string]struct {
		spec, set string
		code      int
		want      string // part of the message
	}{
		"number-with-zeros":    {"gpt_oss", `{"swiglu_limit": 7.00}`, 0, ""},
		"number-with-exponent": {"gpt_oss", `{"swiglu_limit": 70e-1}`, 0, ""},
		"integer":              {"gpt_oss", `{"swiglu_limit": 7}`, 0, ""},
		"other-number":         {"gpt_oss", `{"swiglu_limit": 7.5}`, 4, `key "swiglu_limit" is "7.5", but models of architecture gpt-oss compute with 7 only`},
		"text-of-a-number":     {"gpt_oss", `{"swiglu_limit": "7.0"}`, 4, `key "swiglu_limit" is "7.0"`},
		"class-with-a-typo":    {"llama", `{"architectures": ["LlamaForCasualLM"]}`, 4, `"LlamaForCasualLM" is not supported; the nearest that are: LLaMAForCausalLM, LlamaForCausalLM`},
		"class-of-next-year":   {"qwen3", `{"architectures": ["Qwen9MoeForCausalLM"]}`, 4, "Qwen3MoeForCausalLM"},
		"wrong-kind":           {"llama", `{"num_hidden_layers": [null, "` + strings.Repeat("x", 1000) + `"]}`, 3, `key "num_hidden_layers": want an integer, found [null,"xxx`},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, c.spec)
			configure(t, dir, c.set)
			code, _, err := convertSpec(s, dir)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if code != c.code || !strings.Contains(text, c.want) || strings.Contains(text, "<nil>") {
				t.Errorf("exit %d, %s; want %d and %q", code, text, c.code, c.want)
			}
			if len(text) > 600 {
				t.Errorf("a message of %d bytes", len(text))
			}
		})
	}
}
