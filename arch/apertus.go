package arch

import (
	"encoding/json"
	"fmt"
	"slices"

	"ggforge/gguf"
)

// apertus is the Swiss AI Initiative's Apertus. The parameters of its activation,
// tensors in the checkpoint, are metadata of the file. Source: the Apertus class
// of the reference's converter.
var apertus = &Arch{
	Name:      "apertus",
	Classes:   []string{"ApertusForCausalLM"},
	Tokenizer: llama.Tokenizer,
	Metadata:  llamaRows,
	Expect:    []Expect{{"hidden_act", []string{"xielu"}}, {"post_norm", []string{"false"}}, {"qk_norm", []string{"true"}}},
	Unused:    append([]string{"mlp_bias"}, biasKeys...),
	Tensors: slices.Concat(embedRows, attentionRows(MayBias, MayBias), qkNormRows, mlpRows[1:], []TensorRow{
		{HF: "model.layers.{bid}.attention_layernorm", GGUF: "blk.{bid}.attn_norm"},
		{HF: "model.layers.{bid}.feedforward_layernorm", GGUF: "blk.{bid}.ffn_norm"},
		xielu("alpha_n"), xielu("alpha_p"), xielu("beta"), xielu("eps"),
	}),
	Extra: llama.Extra,
}

// xielu is a parameter of the activation of each layer.
func xielu(name string) TensorRow {
	return TensorRow{HF: "model.layers.{bid}.mlp.act_fn." + name, Exact: true, GGUF: "xielu." + name + ".{bid}", Meta: &Meta{
		Key: "xielu." + name,
		Make: func(c *Config, layers [][]float32) (gguf.Value, error) {
			var list []float32
			for bid, numbers := range layers {
				if len(numbers) != 1 {
					return gguf.Value{}, fmt.Errorf("layer %d has %d numbers, want one", bid, len(numbers))
				}
				list = append(list, numbers[0])
			}
			return gguf.Float32s(list), nil
		},
	}}
}

// apertusRope gives configs without rope settings those of the published model,
// rope_theta among them.
func apertusRope(c *Config) error {
	if len(c.rope) == 0 {
		c.rope = map[string]any{"rope_type": "llama3", "rope_theta": json.Number("12000000"), "factor": json.Number("8"),
			"original_max_position_embeddings": json.Number("8192"), "low_freq_factor": json.Number("1"), "high_freq_factor": json.Number("4")}
	}
	return nil
}
