package tokenizer

// SentencePiece is a tokenizer.model, with the tokens of added_tokens.json and of added_tokens_decoder in
// tokenizer_config.json. Source: _set_vocab_sentencepiece (conversion/base.py).
type SentencePiece struct {
	// AllAdded: the added tokens of tokenizer.json count, too, a token is a control token only if its file marks it as
	// special, and the vocabulary must have a row for every piece and token.
	AllAdded bool
	// RefuseV3: a tokenizer.model.v3 alone is not supported under its name; otherwise it does not count.
	RefuseV3 bool
	// Builtin is the vocabulary that the reference takes from its source tree without the file; "" for none.
	Builtin string
	Then    Steps
}

func (p SentencePiece) present(f *files) bool {
	return isFile(f.dir, spmFile) || p.RefuseV3 && isFile(f.dir, spmV3File)
}

func (p SentencePiece) load(f *files, v *Vocab, opt Options) error {
	if !isFile(f.dir, spmFile) {
		switch {
		case p.RefuseV3 && isFile(f.dir, spmV3File):
			return unsupportedf("%s: rename it to %s", spmV3File, spmFile)
		case p.Builtin != "":
			return errBuiltin(p.Builtin)
		}
	}
	rows := f.spmRows
	if p.AllAdded {
		rows = f.spmAllRows
	}
	if err := rows(v, opt); err != nil {
		return err
	}
	v.writeSPM()
	if err := f.writeSpecial(v, opt); err != nil {
		return err
	}
	return p.Then.apply(f, v, opt)
}

// errBuiltin refuses a directory without a tokenizer, for which the reference takes one from its source tree.
func errBuiltin(name string) error {
	return unsupportedf(
		"neither %s nor %s: the vocabulary that replaces them (models/ggml-vocab-%s.gguf of llama.cpp's sources) is "+
			"not part of this program; "+
			"put the tokenizer files of the model next to the weights", jsonFile, spmFile, name)
}

// spmAllRows is spmRows with SentencePiece.AllAdded.
func (f *files) spmAllRows(v *Vocab, opt Options) error {
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
	return f.overrideAll(v, nil)
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

// writeSPM adds the keys of a SentencePiece vocabulary.
func (v *Vocab) writeSPM() {
	v.Model, v.Pre = "llama", "default"
	v.writeRows()
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
