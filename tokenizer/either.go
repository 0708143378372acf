package tokenizer

import "ggforge/gguf"

// loadGPT2OrSPM follows MPTModel (conversion/mpt.py).
func loadGPT2OrSPM(f *files, v *Vocab, opt Options) error {
	if f.json != nil || isFile(f.fsys, vocabJSONFile) {
		return loadGPT2(f, v, opt)
	}
	if err := loadSPM(f, v, opt); err != nil { // SEA-LION
		return err
	}
	v.kvs.Set(keyAddBOS, gguf.Bool(false))
	v.kvs.Set(keyPadID, gguf.Uint32(3))
	v.kvs.Set("tokenizer.ggml.eos_token_id", gguf.Uint32(1))
	v.kvs.Set(keyUnkID, gguf.Uint32(0))
	return nil
}
