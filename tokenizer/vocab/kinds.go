package vocab

// modelKind is a value of tokenizer.ggml.model, with its encoder and the defaults of the file's keys.
type modelKind struct {
	bos, eos, unk, sep     int32
	addBOS, addEOS, addSep bool
	spacePrefix            bool
	wraps                  bool // BOS and EOS are added if the file's keys say so
	frames                 bool // BOS and a separator are always added
	make                   func(v *Vocab, r *reader) (kind, error)
}

var models map[string]modelKind

func init() {
	models = map[string]modelKind{
		"llama":      {bos: 1, eos: 2, unk: 0, sep: none, addBOS: true, spacePrefix: true, wraps: true, make: newSPM},
		"gpt2":       {bos: 11, eos: 11, unk: none, sep: none, wraps: true, make: newBPE},
		"hybriddna":  {bos: 11, eos: 11, unk: none, sep: none, wraps: true, make: newBPE},
		"whitespace": {bos: 11, eos: 11, unk: none, sep: none, wraps: true, make: newBPE},
		"gemma4":     {bos: none, eos: none, unk: none, sep: none, wraps: true, make: newBPE},
		"bert": {bos: 101, eos: none, unk: 100, sep: 102, addBOS: true, addSep: true, frames: true,
			make: newWordPiece},
		"t5":     {bos: none, eos: 1, unk: 2, sep: none, addEOS: true, wraps: true, make: newUnigram},
		"rwkv":   {bos: none, eos: none, unk: none, sep: none, make: newRWKV},
		"plamo2": {bos: 1, eos: 2, unk: 0, sep: none, wraps: true, make: newPLaMo},
		"plamo3": {bos: 1, eos: 2, unk: 0, sep: none, wraps: true, make: newPLaMo},
	}
}
