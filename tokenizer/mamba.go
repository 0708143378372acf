package tokenizer

import "ggforge/internal/text/pyjson"

// padVocab rounds the vocabulary up to a multiple.
func (o *Options) padVocab(multiple int) error {
	if multiple <= 0 {
		return badf(modelFile, "pad_vocab_size_multiple: want more than 0, got %d", multiple)
	}
	if o.VocabSize <= 0 || o.VocabSize > maxVocab || multiple > maxVocab {
		return badf(modelFile, "vocab_size %d, want 1 to %d", o.VocabSize, maxVocab)
	}
	o.VocabSize = (o.VocabSize + multiple - 1) / multiple * multiple
	return nil
}

// errBuiltin refuses a directory without a tokenizer, for which the reference
// takes one from its source tree.
func errBuiltin(name string) error {
	return unsupportedf(
		"neither %s nor %s: the vocabulary that replaces them (models/ggml-vocab-%s.gguf of llama.cpp's sources) is "+
			"not part of this program; "+
			"put the tokenizer files of the model next to the weights", jsonFile, spmFile, name)
}

// loadMamba follows MambaModel (conversion/mamba.py).
func loadMamba(f *files, v *Vocab, opt Options) error {
	multiple, err := f.integer("pad_vocab_size_multiple", 8)
	if err != nil {
		return err
	}
	if err := opt.padVocab(multiple); err != nil {
		return err
	}
	switch {
	case f.json != nil:
		return loadGPT2(f, v, opt)
	case isFile(f.dir, spmFile):
		return loadSPM(f, v, opt)
	}
	return errBuiltin("gpt-neox")
}

// loadMamba2 follows Mamba2Model (conversion/mamba.py).
func loadMamba2(f *files, v *Vocab, opt Options) error {
	multiple, err := f.integer("pad_vocab_size_multiple", 16)
	if err != nil {
		return err
	}
	return f.mamba2(v, opt, multiple)
}

// loadGraniteHybrid follows GraniteHybridModel (conversion/granite.py): Mamba2's
// rules, without padding when all layers are attention.
func loadGraniteHybrid(f *files, v *Vocab, opt Options) error {
	multiple := 1
	ssm, err := f.hasSSM()
	if err != nil {
		return err
	}
	if ssm {
		multiple = 8
	}
	return f.mamba2(v, opt, multiple)
}

// hasSSM reports whether a Granite model has layers other than attention, by the keys for their types, their
// indexes or their interval.
func (f *files) hasSSM() (bool, error) {
	n, err := f.integer("num_hidden_layers", 0)
	if err != nil {
		return false, err
	}
	attention := make(map[int]bool)
	types, _ := f.member("layer_types").([]any)
	indices, _ := f.member("attn_layer_indices").([]any)
	switch {
	case len(types) > 0:
		for i, t := range types {
			attention[i] = t == "attention"
		}
	case len(indices) > 0:
		for _, e := range indices {
			if i, ok := pyjson.Integer(e); ok && i.IsInt64() {
				attention[int(i.Int64())] = true
			}
		}
	default:
		period, err := f.integer("attn_layer_period", 0)
		if err != nil {
			return false, err
		}
		offset, err := f.integer("attn_layer_offset", -1)
		if err != nil {
			return false, err
		}
		if period == 0 || offset < 0 {
			return false, badf(modelFile,
				"neither layer_types nor attn_layer_indices nor attn_layer_period and attn_layer_offset")
		}
		return n > 0 && (period > 1 || offset != 0), nil
	}
	for i := range n {
		if !attention[i] {
			return true, nil
		}
	}
	return false, nil
}

func (f *files) mamba2(v *Vocab, opt Options, multiple int) error {
	if err := opt.padVocab(multiple); err != nil {
		return err
	}
	switch {
	case isFile(f.dir, spmFile):
		return loadSPM(f, v, opt)
	case isFile(f.dir, spmV3File):
		return unsupportedf("%s: rename it to %s", spmV3File, spmFile)
	case f.json != nil:
		return loadGPT2(f, v, opt)
	}
	return errBuiltin("gpt-neox")
}

// loadNemotronH follows NemotronHModel (conversion/nemotron.py).
func loadNemotronH(f *files, v *Vocab, opt Options) error {
	if err := opt.padVocab(8); err != nil {
		return err
	}
	return loadGPT2(f, v, opt)
}
