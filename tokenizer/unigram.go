package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// SentencePiece unigram models. llama.cpp runs them as its tokenizer "t5", with the
// model's own normalizer.

// Unigram is a SentencePiece unigram model, tokenizer.model or spiece.model. A BPE model in tokenizer.model, as Pile-T5
// has, is written as plain SentencePiece. Source: T5Model and T5EncoderModel (conversion/t5.py).
type Unigram struct{}

func (Unigram) load(f *files, v *Vocab, opt Options) error {
	name := spmFile
	if !isFile(f.dir, name) {
		name = spieceFile
	}
	m, err := f.readModel(name)
	if err != nil {
		return err
	}
	switch {
	case m.modelType == spmBytePair && name == spmFile:
		return SentencePiece{}.load(f, v, opt)
	case m.modelType != spmUnigram:
		return badf(name, "SentencePiece model of type %d, want %d (unigram), or %d (BPE) in %s", m.modelType,
			spmUnigram, spmBytePair, spmFile)
	}
	if err := m.allRows(v, name, opt); err != nil {
		return err
	}
	if err := f.addedTokens(v); err != nil {
		return err
	}
	v.Model, v.Pre = "t5", "default"
	v.writeRows()
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(m.addDummyPrefix))
	v.writeNormalizer(m.removeExtraWhitespaces, m.charsMap)
	return f.writeSpecial(v, opt)
}

// writeNormalizer adds the settings of a unigram normalizer.
func (v *Vocab) writeNormalizer(removeSpaces bool, charsMap []byte) {
	v.kvs.Set(keyRemoveSpaces, gguf.Bool(removeSpaces))
	if len(charsMap) > 0 {
		v.kvs.Set(keyCharsMap, gguf.Uint8s(charsMap))
	}
}

// FairseqUnigram is the sentencepiece.bpe.model of XLM-RoBERTa, a unigram model, or its tokenizer.json. The ids are those
// of the Python tokenizer, which differ from the model's: four tokens come first, in place of the first three pieces and
// the last one. Source: BertModel._xlmroberta_set_vocab (conversion/bert.py).
//
//	model   <unk> <s> </s>          piece 3 … piece n-2   piece n-1
//	ids     <s> <pad> </s> <unk>    piece 3 … piece n-2
type FairseqUnigram struct {
	// MaskKey is a key of config.json. If the model has it, row MaskRow is <mask>, which the model file lacks.
	MaskKey string
	MaskRow int
}

func (u FairseqUnigram) load(f *files, v *Vocab, opt Options) error {
	types, err := f.integer("type_vocab_size", 1)
	if err != nil {
		return err
	}
	if !isFile(f.dir, spmBPEFile) {
		return f.fairseqJSON(v, opt, types)
	}
	m, err := f.readModel(spmBPEFile)
	if err != nil {
		return err
	}
	if m.modelType != spmUnigram {
		return badf(spmBPEFile, "SentencePiece model of type %d, want %d (unigram)", m.modelType, spmUnigram)
	}
	opt.VocabSize = max(opt.VocabSize, len(m.pieces))
	if err := m.rows(v, spmBPEFile, opt); err != nil {
		return err
	}
	model := *v
	last := max(3, len(model.Tokens)-1)
	v.Tokens = append([]string{"<s>", "<pad>", "</s>", "<unk>"},
		model.Tokens[min(3, len(model.Tokens)):min(last, len(model.Tokens))]...)
	v.Scores = append(make([]float32, 4), model.Scores[min(3, len(model.Tokens)):min(last, len(model.Tokens))]...)
	v.Types = append([]TokenType{Control, Control, Control, Unknown},
		model.Types[min(3, len(model.Tokens)):min(last, len(model.Tokens))]...)
	if u.MaskKey != "" && pyjson.Truthy(f.member(u.MaskKey)) {
		if len(v.Tokens) <= u.MaskRow {
			return badf(spmBPEFile, "a vocabulary of %d tokens has no row %d for <mask>", len(v.Tokens), u.MaskRow)
		}
		v.set(u.MaskRow, "<mask>", 0, Control)
	}
	return f.writeUnigram(v, opt, types, m.addDummyPrefix, m.removeExtraWhitespaces, m.charsMap)
}

// writeUnigram adds the pairs of a complete vocabulary.
func (f *files) writeUnigram(v *Vocab, opt Options, types int, prefix, removeSpaces bool, charsMap []byte) error {
	v.Model, v.Pre = "t5", "default"
	v.writeRows()
	v.kvs.Set(keyAddSpacePrefix, gguf.Bool(prefix))
	v.kvs.Set(keyTokenTypeCount, gguf.Uint32(uint32(types)))
	v.writeNormalizer(removeSpaces, charsMap)
	return f.writeSpecial(v, opt)
}

// fairseqJSON is FairseqUnigram from tokenizer.json alone, which has the ids of the Python tokenizer.
func (f *files) fairseqJSON(v *Vocab, opt Options, types int) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file, and no %s", spmBPEFile)
	}
	vocabulary := *f // only for ids: nothing is encoded
	vocabulary.json = withoutMembers(f.json, "normalizer", "pre_tokenizer", "post_processor")
	tok, err := vocabulary.auto(v, opt)
	if err != nil {
		return err
	}
	model, _ := f.json.Get("model").(*pyjson.Object)
	pieces, _ := model.Get("vocab").([]any)
	if tok.Model.Type() != "Unigram" || len(pieces) != tok.Model.Size() {
		return badf(jsonFile, "model type %s, want Unigram", kindName(model.Get("type")))
	}
	normalizer, _ := f.json.Get("normalizer").(*pyjson.Object)
	text, ok := normalizer.Get("precompiled_charsmap").(string)
	charsMap, err := pythonBase64(text)
	if !ok || err != nil {
		return badf(jsonFile, "normalizer: want a precompiled_charsmap in base64")
	}
	n := max(opt.VocabSize, len(pieces))
	if opt.VocabSize < 0 || n > maxVocab {
		return badf(modelFile, "vocab_size %d, want 1 to %d", n, maxVocab)
	}
	added := tok.Added()
	unkID, err := unigramUnk(f.config.Get("unk_token"), model, tok)
	if err != nil {
		return err
	}
	specials := map[string]bool{}
	for _, text := range tok.special {
		specials[text] = true
	}
	for id, e := range pieces {
		text, _ := tok.Model.Token(id)
		t, isAdded := added[id]
		if isAdded {
			text = t.Content
		}
		number, _ := e.([]any)[1].(json.Number)
		score, ok := pyjson.Float32(number)
		// of integers the reference makes an array of another type
		if !ok || !strings.ContainsAny(string(number), ".eEIN") {
			return badf(jsonFile, "model.vocab[%d]: want a score with a decimal point within float32, found %s", id,
				pyjson.Describe(e.([]any)[1]))
		}
		typ := Normal
		switch {
		case id == unkID:
			typ = Unknown
		case specials[text]:
			typ = Control
		case isAdded:
			typ = UserDefined
		}
		v.append(text, score, typ)
	}
	for id := len(v.Tokens); id < n; id++ {
		v.append("[PAD"+pyInt(id)+"]", -10000, Unused)
	}
	prefix := pyjson.Truthy(f.config.Get("add_prefix_space"))
	if _, given := f.config.Lookup("add_prefix_space"); !given {
		prefix = tok.class != nil && tok.class.prefixSpace
	}
	return f.writeUnigram(v, opt, types, prefix, pyjson.Truthy(f.config.Get("clean_up_tokenization_spaces")),
		charsMap)
}

// unigramUnk returns the id of the unknown token: that of the added token with
// the configuration's text, else the model's, else 3.
func unigramUnk(token any, model *pyjson.Object, tok *autoTokenizer) (int, error) {
	switch token.(type) {
	case nil, string:
	default:
		return 0, badf(configFile, "unk_token: want a string, got %s", pyjson.Describe(token))
	}
	for id, t := range tok.Added() {
		if t.Content == token {
			return id, nil
		}
	}
	value, given := model.Lookup("unk_id")
	if !given {
		return 3, nil
	}
	if id, ok := count(value); ok {
		return id, nil
	}
	return -1, nil // no token has this id
}

// withoutMembers returns o without the members names.
func withoutMembers(o *pyjson.Object, names ...string) *pyjson.Object {
	rest := object()
	for _, name := range o.Names {
		if !slices.Contains(names, name) {
			rest.Set(name, o.Values[name])
		}
	}
	return rest
}
