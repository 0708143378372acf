package tokenizer

import (
	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// The rule sets built on SentencePiece's tokenizer.model.

// loadSPM follows _set_vocab_sentencepiece (conversion/base.py).
func loadSPM(f *files, v *Vocab, opt Options) error {
	if err := f.spmRows(v, opt); err != nil {
		return err
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}

// loadErnie follows Ernie4_5Model (conversion/ernie.py).
func loadErnie(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	if prefix, ok := f.config.Lookup("add_prefix_space"); ok {
		v.kvs.Set(keyAddSpacePrefix, gguf.Bool(pyjson.Truthy(prefix)))
	}
	return nil
}

// loadGemma follows GemmaModel (conversion/gemma.py): the infill tokens of
// CodeGemma are written for every Gemma.
func loadGemma(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	s, err := f.loadSpecial(v, opt, []string{"prefix", "suffix", "middle", "fsep", "eot"}, -1)
	if err != nil {
		return err
	}
	for _, e := range []struct {
		kind string
		id   int64
	}{{"prefix", 67}, {"suffix", 69}, {"middle", 68}, {"fsep", 70}, {"eot", 107}} {
		if err := s.setID(v, "", e.kind, e.id); err != nil {
			return err
		}
	}
	s.template = nil // written already
	if err := s.write(v); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// loadGemma2 follows Gemma2Model (conversion/gemma.py).
func loadGemma2(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(false))
	return nil
}

// loadGemma3 follows Gemma3Model (conversion/gemma.py).
func loadGemma3(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadGemma2(f, v, opt)
	}
	return loadGPT2(f, v, opt)
}

// loadNemotron follows NemotronModel (conversion/nemotron.py).
func loadNemotron(f *files, v *Vocab, opt Options) error {
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyPadID, gguf.Uint32(0))
	v.kvs.Set(keyUnkID, gguf.Uint32(1))
	return nil
}

// loadPhi3 follows Phi3MiniModel (conversion/phi.py): as for SentencePiece, but
// the added tokens of tokenizer.json count, too, a token is a control token
// only if its file marks it as special, and every token must have its row.
func loadPhi3(f *files, v *Vocab, opt Options) error {
	if f.config != nil {
		class, ok := f.config.Lookup("tokenizer_class")
		if !ok {
			return badf(configFile, "no tokenizer_class")
		}
		if class == "GPT2Tokenizer" { // Phi-4
			return loadGPT2(f, v, opt)
		}
	}
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.allRows(v, spmFile, opt); err != nil {
		return err
	}
	if err := f.addedTokens(v); err != nil {
		return err
	}
	if err := f.overrideAll(v, nil); err != nil {
		return err
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}

// overrideAll merges the added tokens of tokenizer_config.json, then of tokenizer.json, into the rows; see is called
// with each one's row.
func (f *files) overrideAll(v *Vocab, see func(row int, t addedToken)) error {
	for _, list := range []func() ([]addedToken, error){f.decoderTokens, f.jsonTokens} {
		tokens, err := list()
		if err != nil {
			return err
		}
		for _, t := range tokens {
			row, err := v.rowOf(t)
			if err != nil {
				return err
			}
			typ := UserDefined
			if t.special {
				typ = Control
			}
			v.override(t.file, row, t.text, typ)
			if see != nil {
				see(row, t)
			}
		}
	}
	return nil
}

// rowOf is row for a token that must have one.
func (v *Vocab) rowOf(t addedToken) (int, error) {
	row, err := v.row(t.file, t.id, t.text)
	if err == nil && row < 0 {
		err = badf(t.file, "token %q: id %s, but the vocabulary has %d", t.text, t.id, len(v.Tokens))
	}
	return row, err
}

// loadGrok follows GrokModel (conversion/grok.py).
func loadGrok(f *files, v *Vocab, opt Options) error {
	if isFile(f.dir, spmFile) {
		return loadSPM(f, v, opt)
	}
	for _, name := range []string{jsonFile, chatJinjaFile} {
		if !isFile(f.dir, name) {
			return missingf(name, "no such file, and no %s", spmFile)
		}
	}
	return loadGPT2(f, v, opt)
}

// loadArctic follows ArcticModel (conversion/arctic.py): the added tokens of
// tokenizer_config.json redefine pieces of the model, and keep the type unknown
// and the score 0 that special tokens have there.
func loadArctic(f *files, v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.allRows(v, spmFile, opt); err != nil {
		return err
	}
	tokens, err := f.decoderTokens()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		row, err := v.row(t.file, t.id, t.text)
		if err != nil {
			return err
		}
		if row < 0 {
			continue
		}
		if v.Types[row] != Unused && v.Tokens[row] != t.text {
			v.warnf("%s: token %d replaced: %q by %q", t.file, row, v.Tokens[row], t.text)
		}
		if !t.special {
			v.set(row, t.text, -10000, UserDefined)
			continue
		}
		unk, ok := f.config.Lookup("unk_token")
		if !ok {
			return badf(configFile, "special tokens, but no unk_token")
		}
		v.set(row, t.text, 0, Control)
		if unk == t.text {
			v.Types[row] = Unknown
		}
	}
	v.writeSPM()
	return f.writeSpecial(v, opt)
}

// allRows is rows for a vocabulary that must have room for every piece.
func (m *spmModel) allRows(v *Vocab, file string, opt Options) error {
	if err := m.rows(v, file, opt); err != nil {
		return err
	}
	if len(m.pieces) > len(v.Tokens) {
		return badf(file, "%d pieces, but the vocabulary has %d", len(m.pieces), len(v.Tokens))
	}
	return nil
}
