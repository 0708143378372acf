package hftest

import (
	"slices"
	"strings"
	"testing"
)

// TestPublished makes a configuration small: sizes shrink, keys that decide the arithmetic stay, and matrices are
// stored in its quantization.
func TestPublished(t *testing.T) {
	config := `{"architectures": ["Qwen3ForCausalLM"], "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
		"hidden_size": 5120, "intermediate_size": 25600, "layer_types": ["full_attention", "full_attention",
		"full_attention", "sliding_attention", "full_attention", "full_attention"], "max_position_embeddings": 40960,
		"model_type": "qwen3", "num_attention_heads": 64, "num_hidden_layers": 6, "num_key_value_heads": 8,
		"rms_norm_eps": 1e-06, "rope_theta": 1000000, "limit": Infinity, "tie_word_embeddings": false,
		"vocab_size": 151936, "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
		"modules_to_not_convert": ["layers.1.mlp"]}}`
	none := func(string) []string { return nil }
	s, err := Published("model", map[string][]byte{"config.json": []byte(config)}, false, none)
	if err != nil {
		t.Fatal(err)
	}
	v := Variant{Seed: 1, DType: s.DType}
	small, err := s.config(v)
	if err != nil {
		t.Fatal(err)
	}
	text := string(configJSON(small))
	for _, want := range []string{`"head_dim": 128`, `"rope_theta": 1000000`, `"max_position_embeddings": 40960`,
		`"hidden_size": 64`, `"num_hidden_layers": 4`,
		`"limit": Infinity`, `"vocab_size": 1024`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if n := strings.Count(text, "_attention\""); n != 4 {
		t.Errorf("%d kinds of layers, want 4", n)
	}
	table, err := s.tensors(small)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(table, func(t tensor) bool { return t.name == name })
	}
	for name, want := range map[string]bool{"model.layers.0.mlp.up_proj.weight_scale_inv": true,
		"model.layers.1.mlp.up_proj.weight_scale_inv":      false,
		"model.layers.3.self_attn.q_proj.weight_scale_inv": true, "lm_head.weight_scale_inv": false,
		"model.layers.4.self_attn.q_proj.weight": false} {
		if has(name) != want {
			t.Errorf("%s: %v, want %v", name, !want, want)
		}
	}
	if _, err := Published("model", map[string][]byte{"config.json": []byte(`{"architectures": ["NoSuchClass"]}`)},
		false, none); err == nil {
		t.Error("an unknown class has a spec")
	}
}
