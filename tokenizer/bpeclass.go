package tokenizer

import (
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// The rule sets built on the tokenizer that transformers makes of the files,
// byte-level BPE for most of them.

// gpt2 is loadGPT2 with a change of the special tokens before they are written.
func (f *files) gpt2(v *Vocab, opt Options, change func(s *special) error) error {
	if err := f.base(v, opt); err != nil {
		return err
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, change)
}

// writeGPT2 writes rows that are complete, merges and special tokens.
func (f *files) writeGPT2(v *Vocab, opt Options, kinds []string, change func(s *special) error) error {
	v.writeRows()
	s := &special{files: f, kinds: kinds, nVocab: -1, wantMerges: true}
	if err := s.load(v); err != nil {
		return err
	}
	if change != nil {
		if err := change(s); err != nil {
			return err
		}
	}
	return s.write(v)
}

// kindToken names the added token that gives a kind its id.
type kindToken struct{ kind, token string }

// gpt2Named is loadGPT2 for families whose files do not mark the special ones among the
// added tokens: each kind that has no id takes that of its token.
func gpt2Named(named ...kindToken) func(f *files, v *Vocab, opt Options) error {
	return func(f *files, v *Vocab, opt Options) error {
		tok, err := f.auto(v, opt)
		if err != nil {
			return err
		}
		added := tok.Added()
		return f.gpt2(v, opt, func(s *special) error {
			for _, n := range named {
				id := -1
				for i, t := range added {
					if t.Content == n.token {
						id = i
					}
				}
				if id < 0 {
					return badf(f.vocabFile(), "no added token %q, which is the %s token of this architecture",
						n.token, n.kind)
				}
				if err := s.setID(v, f.vocabFile(), n.kind, int64(id)); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

var (
	// base.py _set_vocab_glm
	loadGLM = gpt2Named(kindToken{"bos", "[gMASK]"}, kindToken{"eot", "<|user|>"}, kindToken{"unk", "<|endoftext|>"},
		kindToken{"eom", "<|observation|>"})
	// glm.py Glm4Model, base.py _set_vocab_glmedge
	loadGLM4 = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|user|>"},
		kindToken{"unk", "<|endoftext|>"}, kindToken{"bos", "<|endoftext|>"})
	// glm.py SolarOpenModel
	loadSolarOpen = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|endoftext|>"},
		kindToken{"unk", "<unk>"}, kindToken{"bos", "<|startoftext|>"})
	// dots3.py Dots3NoteModel
	loadDots3 = gpt2Named(kindToken{"eot", "<|endofassistant|>"})
	// chatglm.py ChatGLMModel, but for ChatGLM3
	loadChatGLM4 = gpt2Named(kindToken{"eos", "<|endoftext|>"}, kindToken{"eot", "<|user|>"},
		kindToken{"unk", "<|endoftext|>"})
)

// loadChatGLM follows ChatGLMModel (conversion/chatglm.py). Where the only
// vocabulary is tokenizer.model, as in ChatGLM2, the reference takes ChatGLM3 by its
// name and refuses the others: it looks for a fingerprint, and knows none.
func loadChatGLM(f *files, v *Vocab, opt Options) error {
	if path, _ := f.member("_name_or_path").(string); strings.Contains(path, "THUDM/chatglm3-6b") {
		return loadChatGLM3(f, v, opt)
	}
	if f.json == nil && !isFile(f.dir, vocabJSONFile) && isFile(f.dir, spmFile) {
		return unsupportedf(
			"%s: the tokenizer of ChatGLM2 and older models is not converted: of those with this file the reference "+
				"converts THUDM/chatglm3-6b, "+
				"by _name_or_path of %s", spmFile, modelFile)
	}
	if opt.VocabSize == 0 {
		return badf(modelFile, "no vocab_size")
	}
	return loadChatGLM4(f, v, opt)
}

// loadRefact follows RefactModel (conversion/refact.py).
func loadRefact(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	// GGUF has no keys for the infill tokens of which the reference knows the ids
	s, err := f.loadSpecial(v, opt, []string{"prefix", "suffix", "middle", "eot"}, -1)
	if err != nil {
		return err
	}
	s.template = nil // written already
	return s.write(v)
}

// loadMiniMax follows MiniMaxText01Model (conversion/minimax.py).
func loadMiniMax(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeJinja(v)
}

// writeJinja writes the text of chat_template.jinja, if it exists, in place of
// the chat template found so far.
func (f *files) writeJinja(v *Vocab) error {
	if !isFile(f.dir, chatJinjaFile) {
		return nil
	}
	text, err := readText(f.dir, chatJinjaFile)
	if err != nil {
		return err
	}
	v.kvs.Set(keyChatTemplate, gguf.String(text))
	return nil
}

// loadLaguna follows LagunaModel (conversion/laguna.py): of several eos tokens
// the first that is not bos, too, ends a turn.
func loadLaguna(f *files, v *Vocab, opt Options) error {
	if err := loadMiniMax(f, v, opt); err != nil {
		return err
	}
	list, _ := f.member("eos_token_id").([]any)
	for _, e := range list {
		if e != f.member("bos_token_id") {
			id, ok := pyjson.Integer(e)
			if !ok || !id.IsUint64() || id.Uint64() >= maxVocab {
				return badf(modelFile, "eos_token_id: want a list of ids, found %s in it", pyjson.Describe(e))
			}
			v.kvs.Set(specialKey("eot").id, gguf.Uint32(uint32(id.Uint64())))
			break
		}
	}
	return nil
}

// loadMuseGlimmer follows MuseGlimmerModel (conversion/muse_glimmer.py).
func loadMuseGlimmer(f *files, v *Vocab, opt Options) error {
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	if id := slices.Index(v.Tokens, "<|eot|>"); id >= 0 {
		v.kvs.Set(specialKey("eot").id, gguf.Uint32(uint32(id)))
	}
	return nil
}

// loadOpenELM follows OpenELMModel (conversion/openelm.py).
func loadOpenELM(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	return errBuiltin("llama-spm")
}

// loadJamba follows JambaModel (conversion/jamba.py).
func loadJamba(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	if err := loadLlamaHF(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// deciVocab is the vocabulary of the Deci models that have Llama 3's tokenizer.
const deciVocab = 128256

// loadDeci follows DeciModel (conversion/deci.py).
func loadDeci(f *files, v *Vocab, opt Options) error {
	if opt.VocabSize == deciVocab || opt.VocabSize == 0 {
		return loadGPT2(f, v, opt)
	}
	return loadLlamaHF(f, v, opt)
}

// loadXverse follows XverseModel (conversion/xverse.py): SentencePiece's tokens
// from tokenizer.json alone, without scores.
func loadXverse(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file; the architecture has no other tokenizer")
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	vocab, added := tok.Vocab(), tok.Added()
	n := opt.VocabSize
	switch {
	case n == 0:
		n = len(vocab)
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens, v.Types = make([]string, n), make([]TokenType, n)
	for text, id := range vocab {
		if id >= n {
			return badf(jsonFile, "token %q has id %d, but config.json says vocab_size %d", text, id, n)
		}
		if v.Types[id] == 0 || v.Tokens[id] < text {
			v.Tokens[id] = text
		}
		v.Types[id] = Normal
	}
	for id := range v.Tokens {
		t, isAdded := added[id]
		if isAdded {
			v.Tokens[id] = t.Content
		}
		switch {
		case v.Types[id] == 0:
			return badf(jsonFile, "no token has id %d, but config.json says vocab_size %d", id, n)
		case v.Tokens[id] == "\x00":
			v.Tokens[id], v.Types[id] = `<b'\x00'>`, Byte
		case hexPiece.MatchString(v.Tokens[id]):
			v.Types[id] = Byte
		case isAdded && t.Special:
			v.Types[id] = Control
		case isAdded:
			v.Types[id] = UserDefined
		}
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}
