package tokenizer

import (
	"strings"
	"unicode"

	"ggforge/internal/text/pyjson"
)

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
