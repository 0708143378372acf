package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestConfigValues converts checkpoints whose config.json spells values differently,
// or has values that the architecture does not support.
func TestConfigValues(t *testing.T) {
	for name, c := range map[string]struct {
		spec, set string
		code      int
		want      string // part of the message
	}{
		"number-with-zeros":    {"gpt_oss", `{"swiglu_limit": 7.00}`, 0, ""},
		"number-with-exponent": {"gpt_oss", `{"swiglu_limit": 70e-1}`, 0, ""},
		"integer":              {"gpt_oss", `{"swiglu_limit": 7}`, 0, ""},
		"other-number": {"gpt_oss", `{"swiglu_limit": 7.5}`, 4,
			`key "swiglu_limit" is "7.5", but models of architecture gpt-oss compute with 7 only`},
		"text-of-a-number": {"gpt_oss", `{"swiglu_limit": "7.0"}`, 4, `key "swiglu_limit" is "7.0"`},
		"class-with-a-typo": {"llama", `{"architectures": ["LlamaForCasualLM"]}`, 4,
			`"LlamaForCasualLM" is not supported; the nearest that are: LLaMAForCausalLM, LlamaForCausalLM`},
		"class-of-next-year": {"qwen3", `{"architectures": ["Qwen9MoeForCausalLM"]}`, 4, "Qwen3MoeForCausalLM"},
		"wrong-kind": {"llama", `{"num_hidden_layers": [null, "` + strings.Repeat("x", 1000) + `"]}`, 3,
			`key "num_hidden_layers": want an integer, found [null,"xxx`},
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
			if len(text) > 1000 {
				t.Errorf("a message of %d bytes", len(text))
			}
		})
	}
}

// TestConfigLayers converts checkpoints whose config.json has far more layers than there are tensors: the error comes
// without delay, however the layers are described.
func TestConfigLayers(t *testing.T) {
	const layers = 60_000
	list := func(element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", layers), ",") + "]"
	}
	for name, c := range map[string]struct{ spec, key, list string }{
		"plain":   {"llama", "_name_or_path", `""`},
		"granite": {"granitemoehybrid", "layer_types", list(`"mamba"`)},
		"lfm2":    {"lfm2", "layer_types", list(`"conv"`)},
		"qwen":    {"qwen3_next", "layer_types", list(`"linear_attention"`)},
		"deci":    {"deci-7b", "num_key_value_heads_per_layer", list("2")},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := made(t, c.spec)
			configure(t, dir, fmt.Sprintf(`{"num_hidden_layers": %d, %q: %s}`, layers, c.key, c.list))
			start := time.Now()
			code, _, err := convertSpec(s, dir)
			if code != 3 && code != 4 || err == nil ||
				!strings.Contains(err.Error(), fmt.Sprintf("%d layers", layers)) && !strings.Contains(err.Error(),
					fmt.Sprintf("%d layers", layers+1)) {
				t.Errorf("exit %d, %.300v", code, err)
			}
			if d := time.Since(start); d > 30*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}
