package tokenizer

// loadGPT2 follows _set_vocab_gpt2 (conversion/base.py).
func loadGPT2(f *files, v *Vocab, opt Options) error {
	return unsupportedf("byte-level BPE is not read yet")
}
