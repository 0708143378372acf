package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The model types that the library knows (TrainerSpec.ModelType).
const (
	spmUnigram  = 1
	spmBytePair = 2
	spmChar     = 4
)

// Limits of Google's C++ parser, which the reference uses and which differs from package protowire.
const (
	maxTagBytes = 5   // of tags, of which 32 bits count, and of lengths
	maxNesting  = 100 // of messages and groups
)

// readModel reads a SentencePiece model of the directory.
func (f *files) readModel(name string) (*spmModel, error) {
	if !isFile(f.dir, name) {
		return nil, missingf(name, "no such file; the architecture has no other tokenizer")
	}
	data, err := f.dir.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return readSPM(name, data)
}

// spmRows builds one row per token id in v from the model and the two lists of
// added tokens.
func (f *files) spmRows(v *Vocab, opt Options) error {
	m, err := f.readModel(spmFile)
	if err != nil {
		return err
	}
	if err := m.rows(v, spmFile, opt); err != nil {
		return err
	}
	if n := len(v.Tokens); len(m.pieces) > n {
		v.warnf("%s: tokens from %d on ignored: the vocabulary has %d", spmFile, n, n)
	}
	if err := f.addedTokens(v); err != nil {
		return err
	}
	return f.addedTokensDecoder(v)
}

// rows builds opt.VocabSize rows of v from the pieces.
func (m *spmModel) rows(v *Vocab, file string, opt Options) error {
	n := opt.VocabSize
	switch {
	case n == 0:
		n = len(m.pieces)
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens = make([]string, n)
	v.Scores = make([]float32, n)
	v.Types = make([]TokenType, n)
	for id := range v.Tokens {
		if id >= len(m.pieces) {
			v.set(id, "[PAD"+strconv.Itoa(id)+"]", -10000, Unused)
			continue
		}
		p := m.pieces[id]
		if !utf8.ValidString(p.text) {
			return badf(file, "piece %d is not UTF-8 text: %q", id, p.text)
		}
		typ := p.typ
		if typ == UserDefined {
			typ = Normal // it is user-defined in the output only when a list of added tokens has it too
		}
		v.set(id, p.text, p.score, typ)
	}
	return nil
}

// row returns the row of an id in decimal, or -1 with a warning if the id is beyond the vocabulary. It also checks the
// row's new text.
func (v *Vocab) row(file, id, text string) (int, error) {
	if strings.HasPrefix(id, "-") {
		return 0, badf(file, "token %q: negative id %s", text, id)
	}
	row, err := strconv.Atoi(id)
	if err != nil || row >= len(v.Tokens) {
		v.warnf("%s: token %q ignored: id %s, but the vocabulary has %d", file, text, id, len(v.Tokens))
		return -1, nil
	}
	if !utf8.ValidString(text) {
		return 0, badf(file, "token %s: unpaired surrogate in %q", id, text)
	}
	return row, nil
}

// override sets the row of an added token.
func (v *Vocab) override(file string, row int, text string, typ TokenType) {
	if v.Types[row] != Unused && v.Tokens[row] != text {
		v.warnf("%s: token %d replaced: %q by %q", file, row, v.Tokens[row], text)
	}
	v.set(row, text, -1000, typ)
}

func (v *Vocab) set(row int, text string, score float32, typ TokenType) {
	v.Tokens[row], v.Scores[row], v.Types[row] = text, score, typ
}
