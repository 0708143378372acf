package tokenizer

import "ggforge/gguf"

// loadQwen3Omni follows Qwen3OmniMoeTextModel (conversion/qwen3vl.py): the token that
// ends a turn is bos and eos.
func loadQwen3Omni(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeTurnEnds(v)
}

// loadQwen3ASR follows Qwen3ASRTextModel (conversion/qwen3vl.py), which also replaces
// the template for transcriptions by chatML.
func loadQwen3ASR(f *files, v *Vocab, opt Options) error {
	if err := loadSPMOrGPT2(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyChatTemplate, gguf.String(chatML))
	return f.writeTurnEnds(v)
}

const turnEnd = "<|im_end|>"

// chatML is the template of turns between <|im_start|> and turnEnd.
const chatML = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '` +
	turnEnd + `' + '\n'}}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// writeTurnEnds makes the first added token turnEnd of tokenizer_config.json bos and
// eos. Without such a token both stay unchanged.
func (f *files) writeTurnEnds(v *Vocab) error {
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.text != turnEnd {
			continue
		}
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			return badf(t.file, "added token %q has id %s, which the vocabulary does not have", t.text, t.id)
		}
		for _, kind := range []string{"bos", "eos"} {
			v.kvs.Set(specialKey(kind).id, gguf.Uint32(uint32(row)))
		}
		return nil
	}
	return nil
}
