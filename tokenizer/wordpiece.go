package tokenizer

import (
	"strings"
	"unicode"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// WordPiece is BERT's tokenizer.json or vocab.txt. Words get a ▁ in front, as in SentencePiece, and their continuations
// lose the ##. Source: BertModel (conversion/bert.py).
//
//	vocab.txt   the   ##s   [CLS]
//	written     ▁the  s     [CLS]
type WordPiece struct{}

func (WordPiece) load(f *files, v *Vocab, opt Options) error {
	words, err := f.withVocabText()
	if err != nil {
		return err
	}
	if err := words.base(v, opt); err != nil {
		return err
	}
	if err := f.writeTypeCount(v); err != nil {
		return err
	}
	for id, text := range v.Tokens {
		if v.Types[id] == Control {
			continue
		}
		if rest, ok := strings.CutPrefix(text, "##"); ok {
			v.Tokens[id] = rest
		} else {
			v.Tokens[id] = "▁" + text
		}
	}
	v.Model = "bert"
	v.writeRows()
	return f.writeSpecial(v, opt)
}

// writeTypeCount adds the number of token types of the model.
func (f *files) writeTypeCount(v *Vocab) error {
	n, err := f.integer("type_vocab_size", 1)
	if err == nil {
		v.kvs.Set(keyTokenTypeCount, gguf.Uint32(uint32(n)))
	}
	return err
}

// withVocabText returns f, if it has no tokenizer.json, with the one that
// BertTokenizer makes of vocab.txt: one token per line, in the order of the ids.
func (f *files) withVocabText() (*files, error) {
	if f.json != nil || !isFile(f.dir, vocabTextFile) {
		return f, nil
	}
	text, err := readText(f.dir, vocabTextFile)
	if err != nil {
		return nil, err
	}
	lines, err := textLines(vocabTextFile, text)
	if err != nil {
		return nil, err
	}
	vocab := object()
	for i, line := range lines {
		vocab.Set(strings.TrimRightFunc(line, unicode.IsSpace), pyNumber(i))
	}
	_, config, err := f.addedConfig()
	if err != nil {
		return nil, err
	}
	g := *f
	g.json, err = classOf("BertTokenizer").root(vocab, nil, nil, config)
	return &g, err
}

// object returns a JSON object of pairs of name and value.
func object(pairs ...any) *pyjson.Object {
	o := &pyjson.Object{Values: make(map[string]any, len(pairs)/2)}
	for i := 0; i < len(pairs); i += 2 {
		o.Set(pairs[i].(string), pairs[i+1])
	}
	return o
}
