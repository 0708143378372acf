package arch

import (
	"slices"
	"testing"

	"ggforge/arch/parts"
)

// TestUnread lists the keys that nothing asks for, and no others.
func TestUnread(t *testing.T) {
	c := view(t, `{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "strange": 1, "off": false,
		"empty": null, "mlp_bias": false, "torch_dtype": "bfloat16", "pretraining_tp": 1, "partial_rotary_factor": 0.5,
		"rope_scaling": {"type": "linear", "factor": 2, "mscale": 1.5}}`)
	if _, _, err := llama.KVs(c, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := parts.Llama3Factors(c); err != nil {
		t.Fatal(err)
	}
	if got := llama.Unread(c); !slices.Equal(got, []string{"rope_scaling.mscale", "rope_scaling.partial_rotary_factor",
		"strange"}) {
		t.Errorf("unread %q", got)
	}
}
