package arch

import "ggforge/gguf"

// smollm3 is Hugging Face's SmolLM 3. Source: the SmolLM3 class of the
// reference's converter. The runtime takes it that each fourth layer does not
// rotate.
var smollm3 = &Arch{
	Name:      "smollm3",
	Classes:   []string{"SmolLM3ForCausalLM"},
	Tokenizer: llama.Tokenizer,
	Metadata: append(llama.Metadata[:len(llama.Metadata):len(llama.Metadata)],
		Row{Key: "no_rope_layers", Derive: eachFourthWithoutRope}),
	Expect:  append([]Expect{{"use_sliding_window", []string{"false"}}}, silu),
	Unused:  append([]string{"max_window_layers", "no_rope_layer_interval", "sliding_window", "layer_types"}, biasKeys...),
	Tensors: llama.Tensors,
	Extra:   llama.Extra,
}

// eachFourthWithoutRope writes nothing: it refuses other patterns.
func eachFourthWithoutRope(c *Config) (v gguf.Value, ok bool, err error) {
	list, _, err := c.Ints("no_rope_layers")
	if err != nil {
		return v, false, err
	}
	for i, rope := range list {
		if (rope != 0) != ((i+1)%4 != 0) {
			return v, false, unsupportedPattern("no_rope_layers", "each fourth layer without rope, and only those")
		}
	}
	return v, false, nil
}
