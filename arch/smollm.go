package arch

import (
	"slices"

	"ggforge/arch/config"
	"ggforge/arch/graph"
	"ggforge/arch/parts"
	"ggforge/arch/table"
	"ggforge/gguf"
	"ggforge/tokenizer"
)

var _ = register(smollm3)

// smollm3 is Hugging Face's SmolLM 3. Source: the SmolLM3 class of the reference's converter. In the runtime every
// fourth layer has no RoPE.
var smollm3 = &table.Arch{
	Name:      "smollm3",
	Classes:   []string{"SmolLM3ForCausalLM"},
	Body:      table.Body{Classes: []string{"SmolLM3Model"}, Prefix: "model."},
	Tokenizer: tokenizer.Llama{},
	Fused:     table.FusedQKV,
	Metadata:  slices.Concat(parts.LlamaRows, []table.Row{{Key: "no_rope_layers", Derive: eachFourthWithoutRope}}),
	Expect:    []table.Expect{parts.SiLU, parts.Expect("use_sliding_window", "false")},
	Unused: append([]string{"max_window_layers", "no_rope_layer_interval", "sliding_window", "layer_types"},
		parts.BiasKeys...),
	Tensors: parts.LlamaTensors,
	Extra:   parts.Llama3Extra,
	Graph: parts.Decoder(graph.RMS, parts.GQA(graph.On{In: graph.Where("i mod 4 != 3"),
		Steps: []graph.HeadStep{parts.Interleaved}}), parts.SwiGLU),
}

// eachFourthWithoutRope writes nothing; it refuses models with another pattern.
func eachFourthWithoutRope(c *config.View) (v gguf.Value, ok bool, err error) {
	list, _, err := c.Ints("no_rope_layers")
	if err != nil {
		return v, false, err
	}
	for i, rope := range list {
		if (rope != 0) != ((i+1)%4 != 0) {
			return v, false, parts.UnsupportedPattern("no_rope_layers",
				"each fourth layer without rope, and only those")
		}
	}
	return v, false, nil
}
