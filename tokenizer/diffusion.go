package tokenizer

import "ggforge/gguf"

// diffusion is loadGPT2 without guesses about added tokens: only tokens marked special in the files are control tokens.
func (f *files) diffusion(v *Vocab, opt Options) error {
	if err := f.base(v, opt); err != nil {
		return err
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	for id, t := range tok.Added() {
		if id >= len(v.Tokens) {
			continue
		}
		v.Tokens[id], v.Types[id] = t.Content, UserDefined
		if t.Special {
			v.Types[id] = Control
		}
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, nil)
}

// loadDream follows DreamModel (conversion/dream.py).
func loadDream(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	return f.diffusion(v, opt)
}

// loadLLaDA follows LLaDAModel (conversion/llada.py).
func loadLLaDA(f *files, v *Vocab, opt Options) error {
	if err := f.diffusion(v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddBOS, gguf.Bool(true))
	return nil
}
