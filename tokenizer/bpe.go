package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
	"ggforge/tokenizer/internal/hf"
)

// openFiles reads the tokenizer files that all rule sets share.
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

// loadGPT2 follows TextModel._set_vocab_gpt2 (conversion/base.py).
func loadGPT2(f *files, v *Vocab, opt Options) error {
	if err := f.base(v, opt); err != nil {
		return err
	}
	v.Model = "gpt2"
	v.writeRows()
	sp := &special{files: f, kinds: []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"}, nVocab: -1,
		wantMerges: true}
	if err := sp.load(v); err != nil {
		return err
	}
	return sp.write(v)
}

// loadSPMOrGPT2 follows Qwen2Model (conversion/qwen.py) and others.
func loadSPMOrGPT2(f *files, v *Vocab, opt Options) error {
	if !isFile(f.dir, spmFile) {
		return loadGPT2(f, v, opt)
	}
	return loadSPM(f, v, opt)
}

// loadGPT2OrSPM follows MPTModel (conversion/mpt.py): byte-level BPE if its pre-tokenizer
// is known, otherwise tokenizer.model, as in SEA-LION.
func loadGPT2OrSPM(f *files, v *Vocab, opt Options) error {
	var bpe Vocab
	err := loadGPT2(f, &bpe, opt)
	if err == nil || !isFile(f.dir, spmFile) {
		*v = bpe
		return err
	}
	v.warnf("%s taken: %v", spmFile, err)
	if err := loadSPM(f, v, opt); err != nil {
		return err
	}
	v.kvs.Set(keyAddBOS, gguf.Bool(false))
	for _, e := range []struct {
		kind string
		id   uint32
	}{{"pad", 3}, {"eos", 1}, {"unk", 0}} {
		for _, k := range specialKeys {
			if k.kind == e.kind {
				v.kvs.Set(k.id, gguf.Uint32(e.id))
			}
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
