package tokenizer

import (
	"strings"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// loadBert follows BertModel (conversion/bert.py). Words get a ▁ in front, as in
// SentencePiece, and their continuations lose the ##.
//
//	vocab.txt   the   ##s   [CLS]
//	written     ▁the  s     [CLS]
func loadBert(f *files, v *Vocab, opt Options) error {
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

// loadRoberta follows RobertaModel (conversion/bert.py).
func loadRoberta(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return loadBert(f, v, opt)
	}
	if err := loadGPT2(f, v, opt); err != nil {
		return err
	}
	return f.writeTypeCount(v)
}

// loadNomicBert follows NomicBertModel (conversion/bert.py): the kind of
// tokenizer.json decides.
func loadNomicBert(f *files, v *Vocab, opt Options) error {
	if f.json == nil {
		return missingf(jsonFile, "no such file")
	}
	model, _ := f.json.Get("model").(*pyjson.Object)
	switch typ := model.Get("type"); typ {
	case "Unigram":
		return f.xlmRoberta(v, opt, pyjson.Truthy(f.member("moe_every_n_layers")))
	case "WordPiece":
		return loadBert(f, v, opt)
	default:
		return unsupportedf("%s: model type %s, want Unigram or WordPiece for this architecture", jsonFile,
			kindName(typ))
	}
}

// loadJinaBertV2 follows JinaBertV2Model (conversion/bert.py): BERT's rules, or
// BPE on words, or byte-level BPE.
func loadJinaBertV2(f *files, v *Vocab, opt Options) error {
	if f.config == nil {
		return missingf(configFile, "no such file")
	}
	switch class := f.config.Get("tokenizer_class"); class {
	case "BertTokenizer":
		return loadBert(f, v, opt)
	case "RobertaTokenizer":
	default:
		return unsupportedf("%s: tokenizer_class %s, want BertTokenizer or RobertaTokenizer for this architecture",
			configFile, kindName(class))
	}
	pre, _ := f.json.Get("pre_tokenizer").(*pyjson.Object)
	if pre.Get("type") != "Whitespace" {
		if err := loadGPT2(f, v, opt); err != nil {
			return err
		}
	} else {
		opt.Pre = "whitespace"
		if err := f.base(v, opt); err != nil {
			return err
		}
		v.Model = "whitespace"
		if err := f.writeGPT2(v, opt, specialKinds, nil); err != nil {
			return err
		}
	}
	v.kvs.Set(keyTokenTypeCount, gguf.Uint32(2))
	return nil
}

// loadModernBert follows ModernBertModel (conversion/bert.py).
func loadModernBert(f *files, v *Vocab, opt Options) error {
	for _, kind := range []string{"bos", "eos", "sep"} {
		v.kvs.Set(specialKey(kind).add, gguf.Bool(true))
	}
	if err := f.base(v, opt); err != nil {
		return err
	}
	if v.Pre == "mmbert" { // its added tokens for runs of blanks never match
		for id, text := range v.Tokens {
			if v.Types[id] == UserDefined && text != "" && strings.Trim(text, " ") == "" {
				v.Tokens[id], v.Types[id] = strings.Repeat("▁", len(text)), Normal
			}
		}
	}
	v.Model = "gpt2"
	return f.writeGPT2(v, opt, specialKinds, nil)
}

// loadEuroBert follows EuroBertModel (conversion/bert.py).
func loadEuroBert(f *files, v *Vocab, opt Options) error {
	v.kvs.Set(keyAddBOS, gguf.Bool(false))
	return loadGPT2(f, v, opt)
}
