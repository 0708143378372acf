package arch

import (
	"errors"
	"strings"
	"testing"

	"ggforge/arch/config"
	"ggforge/fault"
	"ggforge/gguf"
)

// TestGemma4 checks settings per layer of Gemma 4, and settings that its files cannot hold.
func TestGemma4(t *testing.T) {
	const assistant = `"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant", "text_config": {"model_type": "gemma4_text", "num_hidden_layers": 2,
		"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, `
	const text = `"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "num_hidden_layers": 3, "layer_types": ["full_attention", "sliding_attention", "full_attention"], `
	// of an unknown model type: no defaults
	const embedding = `"architectures": ["EmbeddingGemma2Model"], "num_hidden_layers": 3, "layer_types": ["full_attention", "sliding_attention", "full_attention"], "head_dim": 32,
		"hidden_size": 64, "intermediate_size": 96, "sliding_window": 5, "embedding_dim": 8, "num_key_value_heads": 2, `
	for _, c := range []struct{ config, key, want string }{
		{text + `"num_kv_shared_layers": 1, "use_double_wide_mlp": true, "intermediate_size": 10`,
			"feed_forward_length", "[10, 10, 20]"},
		{text + `"num_global_key_value_heads": 1`, "attention.head_count_kv", "[1, 4, 1]"},
		{text + `"num_kv_shared_layers": 4`, "", "broken"},
		{text + `"layer_types": ["full_attention", "chunked_attention", "full_attention"]`, "", "unsupported"},
		{text + `"layer_types": ["full_attention", "full_attention"]`, "", "broken"},
		{text + `"use_bidirectional_attention": "audio"`, "", "unsupported"},
		{text + `"hidden_activation": "silu"`, "", "unsupported"},
		{text + `"rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 4}, "sliding_attention": {"rope_type": "default"}}`, "", "unsupported"},
		{text + `"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e6}, "sliding_attention": {"rope_type": "default"}}`, "", "unsupported"},
		{text + `"rope_parameters": {"full_attention": {"rope_type": "proportional", "rope_theta": 1e6}}`,
			"", "broken"},
		{text + `"rope_parameters": {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25}, "sliding_attention": {"partial_rotary_factor": 0.5}}`, "", "unsupported"},
		{text + `"rope_parameters": {"full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25}, "sliding_attention": {"rope_type": "linear"}}`, "", "unsupported"},
		{assistant + `"num_kv_shared_layers": 0}`, "attention.shared_kv_layers", "2"},
		{assistant + `"num_kv_shared_layers": 1}`, "", "unsupported"},
		{assistant + `"hidden_size_per_layer_input": 8}`, "", "unsupported"},
		{embedding + `"per_layer_config": {"0": {"head_dim": 64}, "1": {"head_dim": 16}, "2": {"head_dim": 64}}`,
			"attention.key_length", "64"},
		{embedding + `"per_layer_config": {"0": {"head_dim": 64, "num_key_value_heads": 1}}`, "attention.head_count_kv",
			"[1, 2, 1]"},
		{embedding + `"global_head_dim": 64`, "attention.sliding_window", "10"},
		{embedding + `"per_layer_config": {"0": {"head_dim": 64}, "2": {"head_dim": 32}}`, "", "unsupported"},
		{embedding + `"per_layer_config": {"zero": {"head_dim": 64}}`, "", "broken"},
		{embedding + `"per_layer_config": {"0": 64}`, "", "broken"},
		{embedding + `"per_layer_config": {}`, "", "broken"},
	} {
		v := view(t, "{"+c.config+"}").With(config.Facts{})
		a, err := For(v)
		if err != nil {
			t.Fatal(err)
		}
		_, m, err := a.KVs(v, 1)
		for _, e := range a.Extra {
			if err == nil {
				_, err = e.Make(v)
			}
		}
		var got string
		switch {
		case errors.Is(err, fault.Broken):
			got = "broken"
		case errors.Is(err, fault.Unsupported):
			got = "unsupported"
		default:
			value, _ := m.Get(gguf.ArchKey(a.Name, c.key))
			got = value.String()
		}
		if got != c.want {
			t.Errorf("%s: %s is %s (%v), want %s", strings.TrimSpace(c.config[len(c.config)/2:]), c.key,
				got, err, c.want)
		}
	}
}
