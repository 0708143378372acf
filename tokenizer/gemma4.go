package tokenizer

import (
	"slices"

	"ggforge/gguf"
)

// gemma4Visible are control tokens that chat parsers must see.
var gemma4Visible = []string{"<|channel>", "<channel|>", "<|tool_call>", "<tool_call|>", "<|tool_response>",
	"<tool_response|>", `<|"|>`}

// loadGemma4 follows Gemma4Model (conversion/gemma.py): LlamaHfVocab's rows,
// and merges.
func loadGemma4(f *files, v *Vocab, opt Options) error {
	rows := &Vocab{}
	if err := loadLlamaHF(f, rows, opt); err != nil {
		return err
	}
	v.Tokens, v.Scores, v.Types = rows.Tokens, rows.Scores, rows.Types
	for id, text := range v.Tokens {
		if slices.Contains(gemma4Visible, text) {
			v.Types[id] = UserDefined
		}
	}
	v.Model = "gemma4"
	if err := f.writeGPT2(v, opt, specialKinds, nil); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	return nil
}
