package tokenizer

import "ggforge/gguf"

// The rule sets of this file take one of two kinds of tokenizer, by the files
// that are there.

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

// loadMamba follows MambaModel (conversion/mamba.py). Without any file the
// reference takes the vocabulary of GPT-NeoX from a file of its own.
func loadMamba(f *files, v *Vocab, opt Options) error {
	switch {
	case f.json != nil:
		return loadGPT2(f, v, opt)
	case isFile(f.fsys, spmFile):
		return loadSPM(f, v, opt)
	}
	return withoutFiles()
}

// loadMamba2 follows Mamba2Model (conversion/mamba.py).
func loadMamba2(f *files, v *Vocab, opt Options) error {
	const version3 = "tokenizer.model.v3"
	switch {
	case isFile(f.fsys, spmFile):
		return loadSPM(f, v, opt)
	case isFile(f.fsys, version3):
		return unsupportedf("%s: rename it to %s", version3, spmFile)
	case f.json != nil:
		return loadGPT2(f, v, opt)
	}
	return withoutFiles()
}

func withoutFiles() error {
	return unsupportedf("no %s and no %s: models without a tokenizer use that of GPT-NeoX; copy its %s beside them", jsonFile, spmFile, jsonFile)
}

// loadJamba follows JambaModel (conversion/jamba.py).
func loadJamba(f *files, v *Vocab, opt Options) error {
	if isFile(f.fsys, spmFile) {
		return loadSPM(f, v, opt)
	}
	if err := loadLlamaHF(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// loadRefact follows RefactModel (conversion/refact.py): byte-level BPE, then an
// end of turn if a file names one. The tokens around a gap, which the reference
// sets too, have no keys.
func loadRefact(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	sp := &special{files: f, kinds: []string{"prefix", "suffix", "middle", "eot"}, nVocab: -1}
	if err := sp.load(v, opt.Config); err != nil {
		return err
	}
	for _, t := range []kindOf[int64]{{"prefix", 1}, {"suffix", 3}, {"middle", 2}} {
		if err := sp.setID(v, "", t.kind, t.value); err != nil {
			return err
		}
	}
	sp.template = nil // it has been written
	return sp.write(v)
}
