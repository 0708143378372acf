package tokenizer

import (
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// Llama takes what there is: tokenizer.model, else a tokenizer.json in SentencePiece's style (ByteFallbackBPE), else
// byte-level BPE (BPE), else tekken.json. Source: LlamaModel.set_vocab (conversion/llama.py).
type Llama struct{}

func (Llama) load(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, tekkenFile) && f.json == nil {
		return f.tekken(v, opt, false)
	}
	if prefix := f.config.Get("add_prefix_space"); prefix != nil {
		v.kvs.Set(keyAddSpacePrefix, gguf.Bool(pyjson.Truthy(prefix)))
	}
	const dna = "HybridDNATokenizer"
	if f.config.Get("tokenizer_class") == dna {
		return unsupportedf("%s: tokenizer_class %s: its tokens are in Python code only", configFile, dna)
	}
	var rules Rules
	switch {
	case isFile(f.dir, spmFile):
		rules = SentencePiece{}
	case f.llamaStyle():
		rules = ByteFallbackBPE{}
	case f.json != nil || isFile(f.dir, vocabJSONFile):
		rules = BPE{}
	default:
		return f.otherKind()
	}
	if err := rules.load(f, v, opt); err != nil {
		return err
	}
	switch opt.VocabSize {
	case 32016: // Code Llama: no file names its infill tokens
		return EndOfTurn{32010}.apply(f, v, opt)
	case 49152: // small Granite models
		v.kvs.Set(keyAddBOS, gguf.Bool(false))
	}
	return nil
}
