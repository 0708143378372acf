package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// openFiles reads the tokenizer files that all rules share.
func openFiles(dir Files, opt Options) (*files, error) {
	f := newFiles(dir, opt)
	var err error
	if f.model, err = readObjectIfFile(dir, modelFile); err != nil {
		return nil, err
	}
	if f.config, err = readObjectIfFile(dir, configFile); err == nil {
		f.json, err = readObjectIfFile(dir, jsonFile)
	}
	return f, err
}

// BPE is byte-level BPE, from tokenizer.json or vocab.json and merges.txt as the transformers library makes it. Source:
// _set_vocab_gpt2 (conversion/base.py).
type BPE struct {
	// Named gives kinds of special tokens the ids of added tokens, which must be there. Kinds that have an id keep it.
	Named []Named
	// AsMarked: only added tokens that a file marks as special are control tokens; the others are user-defined.
	AsMarked bool
	// Words: a tokenizer.json whose pre-tokenizer is Whitespace is BPE on words: llama.cpp's tokenizer "whitespace".
	Words bool
	// PlainBlanks: with the pre-tokenizer mmbert, added tokens of blanks are normal tokens, as text they never match.
	PlainBlanks bool
	// NegativePad: a pad_token_id below 0 means that there is none; otherwise it is an error.
	NegativePad bool
	// Needs are files without which the reference refuses the checkpoint.
	Needs []string
	// Builtin is the vocabulary that the reference takes from its source tree without tokenizer.json; "" for none.
	Builtin string
	Before  Steps // keys that come first
	Then    Steps
}

// Named is a kind of special token and the text of its token.
type Named struct{ Kind, Text string }

func (b BPE) present(f *files) bool { return f.json != nil }

func (b BPE) load(f *files, v *Vocab, opt Options) error {
	if b.Builtin != "" && f.json == nil {
		return errBuiltin(b.Builtin)
	}
	for _, name := range b.Needs {
		if !isFile(f.dir, name) {
			return missingf(name, "no such file, and no %s", spmFile)
		}
	}
	if err := b.Before.apply(f, v, opt); err != nil {
		return err
	}
	model := "gpt2"
	if pre, _ := f.json.Get("pre_tokenizer").(*pyjson.Object); b.Words && pre.Get("type") == "Whitespace" {
		model, opt.Pre = "whitespace", "whitespace"
	}
	if err := f.base(v, opt); err != nil {
		return err
	}
	if b.AsMarked {
		if err := f.typesAsMarked(v, opt); err != nil {
			return err
		}
	}
	if b.PlainBlanks && v.Pre == "mmbert" {
		for id, text := range v.Tokens {
			if v.Types[id] == UserDefined && text != "" && strings.Trim(text, " ") == "" {
				v.Tokens[id], v.Types[id] = strings.Repeat("▁", len(text)), Normal
			}
		}
	}
	v.Model = model
	s := &special{kinds: specialKinds}
	if pad, ok := pyjson.Integer(f.member("pad_token_id")); b.NegativePad && ok && pad.Sign() < 0 {
		s.kinds = slices.DeleteFunc(slices.Clone(specialKinds), func(kind string) bool { return kind == "pad" })
	}
	if err := f.writeBPE(v, opt, s, b.Named); err != nil {
		return err
	}
	return b.Then.apply(f, v, opt)
}

// writeBPE writes rows that are complete, merges and the special tokens s.
func (f *files) writeBPE(v *Vocab, opt Options, s *special, named []Named) error {
	v.writeRows()
	s.files, s.nVocab, s.wantMerges = f, -1, true
	if err := s.load(v); err != nil {
		return err
	}
	if err := f.setNamed(v, opt, s, named); err != nil {
		return err
	}
	return s.write(v)
}

// setNamed sets the ids of BPE.Named.
func (f *files) setNamed(v *Vocab, opt Options, s *special, named []Named) error {
	if len(named) == 0 {
		return nil
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	added := tok.Added()
	for _, n := range named {
		id := -1
		for i, t := range added {
			if t.Content == n.Text {
				id = i
			}
		}
		if id < 0 {
			return badf(f.vocabFile(), "no added token %q, which is the %s token of this architecture", n.Text, n.Kind)
		}
		if err := s.setID(v, f.vocabFile(), n.Kind, int64(id)); err != nil {
			return err
		}
	}
	return nil
}

// typesAsMarked gives added tokens the types of BPE.AsMarked.
func (f *files) typesAsMarked(v *Vocab, opt Options) error {
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	for id, t := range tok.Added() {
		if id >= len(v.Tokens) {
			continue
		}
		v.Tokens[id], v.Types[id] = t.Content, UserDefined
		if t.Special {
			v.Types[id] = Control
		}
	}
	return nil
}

// base sets tokens, types and pre-tokenizer (TextModel.get_vocab_base); there are
// no scores.
func (f *files) base(v *Vocab, opt Options) error {
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	if v.Pre = opt.Pre; v.Pre == "" {
		if tok, v.Pre, err = f.preTokenizer(v, tok, opt); err != nil {
			return err
		}
	}
	vocab := tok.Vocab()
	v.Own = tok.Model.Size()
	n := opt.VocabSize
	switch {
	case n == 0:
		n = len(vocab)
	case n < 0 || n > maxVocab:
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	v.Tokens, v.Types = make([]string, n), make([]TokenType, n)
	used := make([]bool, n)
	added := tok.Added()
	for text, id := range vocab {
		if id >= n {
			return badf(f.vocabFile(), "token %q has id %d, but config.json says vocab_size %d", text, id, n)
		}
		if !used[id] || v.Tokens[id] < text { // of two tokens with one id always the same: the last in order
			v.Tokens[id] = text
		}
		used[id] = true
	}
	for id, t := range added {
		v.Tokens[id] = t.Content
	}
	for id := range v.Tokens {
		t, isAdded := added[id]
		switch {
		case !used[id]:
			v.Tokens[id], v.Types[id] = fmt.Sprintf("[PAD%d]", id), Unused
		case isAdded:
			if v.Tokens[id], v.Types[id], err = f.addedRow(tok, t); err != nil {
				return err
			}
		default:
			v.Types[id] = Normal
		}
	}
	return nil
}

// addedRow returns text and type of an added token. If its text is not in normalized
// form, it is encoded and decoded: loaders expect control and user-defined tokens in
// normalized form.
func (f *files) addedRow(tok *autoTokenizer, t hf.AddedToken) (string, TokenType, error) {
	text := t.Content
	if !t.Normalized {
		ids, err := tok.Encode(text, false)
		if err == nil {
			text, err = tok.Decode(ids)
		}
		if err != nil {
			return "", 0, inFile(f.vocabFile(), err)
		}
	}
	if t.Special || looksSpecial(text) {
		return text, Control, nil
	}
	return strings.ReplaceAll(text, "▁", " "), UserDefined, nil
}

// vocabFile names the file that the vocabulary comes from.
func (f *files) vocabFile() string {
	if f.json != nil {
		return jsonFile
	}
	return vocabJSONFile
}

// loadMerges reads the merges of tokenizer.json or, if it has none, of merges.txt. A
// blank inside a part is written as its character in byte-level vocabularies.
func (s *special) loadMerges(v *Vocab) error {
	model, _ := s.files.json.Get("model").(*pyjson.Object)
	list, _ := model.Get("merges").([]any)
	if len(list) == 0 {
		return s.loadMergesText(v)
	}
	s.merges = make([]string, len(list))
	for i, e := range list {
		var parts []string
		switch e := e.(type) {
		case string:
			parts = []string{e}
		case []any:
			for _, p := range e {
				part, ok := p.(string)
				if !ok {
					return badf(jsonFile, "model.merges[%d]: want strings, got %s", i, pyjson.Describe(p))
				}
				parts = append(parts, strings.ReplaceAll(part, " ", "Ġ"))
			}
		}
		if s.merges[i] = strings.Join(parts, " "); !utf8.ValidString(s.merges[i]) || len(parts) == 0 {
			return badf(jsonFile, "model.merges[%d]: want text, got %s", i, pyjson.Describe(e))
		}
	}
	return nil
}

// loadMergesText reads merges.txt: two parts on each line, after a first line that
// may be a comment. Other lines are skipped.
func (s *special) loadMergesText(v *Vocab) error {
	if !isFile(s.files.dir, mergesFile) {
		v.warnf("no merges found in %s, and no %s", jsonFile, mergesFile)
		return nil
	}
	text, err := readText(s.files.dir, mergesFile)
	if err != nil {
		return err
	}
	lines, err := textLines(mergesFile, text)
	if err != nil {
		return err
	}
	for i, line := range lines {
		parts := strings.FieldsFunc(line, pythonSpace)
		switch {
		case len(parts) == 0, i == 0 && strings.HasPrefix(parts[0], "#"):
		case len(parts) != 2:
			v.warnf("%s: line %d ignored: want two parts, got %d", mergesFile, i+1, len(parts))
		default:
			s.merges = append(s.merges, parts[0]+" "+parts[1])
		}
	}
	return nil
}

// pythonSpace reports whether Python's str.split takes r for white space.
func pythonSpace(r rune) bool {
	return 0x09 <= r && r <= 0x0D || 0x1C <= r && r <= 0x20 || r == 0x85 || r == 0xA0 || r == 0x1680 ||
		0x2000 <= r && r <= 0x200A || r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000
}
