package tokenizer

import (
	"regexp"
	"slices"

	"ggforge/internal/text/pyjson"
)

// llamaStyle reports whether tokenizer.json is SentencePiece's BPE: merges with a
// fallback to bytes (gguf-py's LlamaHfVocab).
func (f *files) llamaStyle() bool {
	model, _ := f.json.Get("model").(*pyjson.Object)
	decoder, _ := f.json.Get("decoder").(*pyjson.Object)
	return model.Get("type") == "BPE" && pyjson.Truthy(model.Get("byte_fallback")) && decoder.Get("type") == "Sequence"
}

// hexPiece matches the text of a token for one byte.
var hexPiece = regexp.MustCompile(`^<0x[0-9A-Fa-f]{2}>$`)

// ByteFallbackBPE is SentencePiece's BPE in a tokenizer.json, with tokens for bytes: the base vocabulary by id, then the
// added tokens beyond it. All scores are -1000. Source: _set_vocab_llama_hf (conversion/base.py).
type ByteFallbackBPE struct{ Then Steps }

func (b ByteFallbackBPE) load(f *files, v *Vocab, opt Options) error {
	if err := f.byteFallbackRows(v, opt); err != nil {
		return err
	}
	v.Model, v.Pre = "llama", "default"
	v.writeRows()
	if err := f.writeSpecial(v, opt); err != nil {
		return err
	}
	return b.Then.apply(f, v, opt)
}

// byteFallbackRows builds one row per token id in v.
func (f *files) byteFallbackRows(v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file")
	}
	if !f.llamaStyle() {
		return unsupportedf("%s: want BPE with byte_fallback and a decoder of type Sequence", jsonFile)
	}
	tok, err := f.auto(v, opt)
	if err != nil {
		return err
	}
	n := tok.Model.Size()
	specials := map[int]bool{}
	for _, text := range tok.special {
		if id, ok := tok.ID(text); ok {
			specials[id] = true
		}
	}
	add := func(text string, typ TokenType) {
		v.Tokens = append(v.Tokens, text)
		v.Scores = append(v.Scores, -1000)
		v.Types = append(v.Types, typ)
	}
	typ := func(id int, text string) TokenType {
		switch {
		case hexPiece.MatchString(text):
			return Byte
		case specials[id]:
			return Control
		}
		return Normal
	}
	added := tok.Added()
	for id := range n {
		text, ok := tok.Model.Token(id)
		if t, isAdded := added[id]; isAdded {
			text, ok = t.Content, true
		}
		if !ok {
			return badf(jsonFile, "no token has id %d, but there are %d tokens", id, n)
		}
		add(text, typ(id, text))
	}
	var beyond []int
	for id := range added {
		if id >= n {
			beyond = append(beyond, id)
		}
	}
	slices.Sort(beyond)
	for _, id := range beyond {
		if specials[id] {
			add(added[id].Content, Control)
		} else {
			add(added[id].Content, UserDefined)
		}
	}
	return nil
}
