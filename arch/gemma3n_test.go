package arch

import (
	"errors"
	"testing"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
)

// TestGemma3n checks settings that are one per layer, and those that the runtime does
// not know.
func TestGemma3n(t *testing.T) {
	for _, c := range []struct{ set, key, want string }{
		{`"num_hidden_layers": 2, "intermediate_size": 8`, "feed_forward_length", "[8, 8]"},
		{`"num_hidden_layers": 2`, "feed_forward_length", "[16384, 16384]"},
		{`"num_hidden_layers": 2`, "activation_sparsity_scale", "[-Inf, -Inf]"},
		{`"num_hidden_layers": 11`, "activation_sparsity_scale",
			"[1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, 1.6448534, -Inf]"},
		{`"num_hidden_layers": 2, "intermediate_size": [8]`, "", "broken"},
		{`"num_hidden_layers": 2, "activation_sparsity_pattern": [0.5]`, "", "broken"},
		{`"num_hidden_layers": 2, "activation_sparsity_pattern": [0.5, 1.0]`, "", "broken"},
		{`"num_hidden_layers": 2, "activation_sparsity_pattern": [0.5, "x"]`, "", "broken"},
		{`"altup_num_inputs": 3`, "", "unsupported"},
		{`"laurel_rank": 32`, "", "unsupported"},
		{`"altup_correct_scale": false`, "", "unsupported"},
	} {
		v := view(t, `{"architectures": ["Gemma3nForCausalLM"], "model_type": "gemma3n_text", `+c.set+`}`).With(
			config.Facts{})
		_, m, err := gemma3n.KVs(v, 1)
		var got string
		switch {
		case errors.Is(err, fault.Broken):
			got = "broken"
		case errors.Is(err, fault.Unsupported):
			got = "unsupported"
		default:
			value, _ := m.Get(gguf.ArchKey(gemma3n.Name, c.key))
			got = value.String()
		}
		if got != c.want {
			t.Errorf("%s: %s is %s (%v), want %s", c.set, c.key, got, err, c.want)
		}
	}
}
