package tokenizer

import (
	"slices"

	"ggforge/gguf"
)

// gemma4Visible are control tokens that chat parsers must see.
var gemma4Visible = []string{"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
	"<tool_response|>", `<|"|>`}

// Gemma4 are the rows of ByteFallbackBPE with merges: llama.cpp's tokenizer "gemma4". Source: Gemma4Model
// (conversion/gemma.py).
type Gemma4 struct{}

func (Gemma4) load(f *files, v *Vocab, opt Options) error {
	if err := f.byteFallbackRows(v, opt); err != nil {
		return err
	}
	for id, text := range v.Tokens {
		if slices.Contains(gemma4Visible, text) {
			v.Types[id] = UserDefined
		}
	}
	v.Model = "gemma4"
	if err := f.writeBPE(v, opt, &special{kinds: specialKinds}, nil); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	return nil
}
