package tokenizer

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/text/pyjson"
)

// The rules of this file are SpecialVocab's in gguf-py's vocab.py.

// specialKeys has for each kind of special token the keys of its id and of its
// add_*_token flag. A key that GGUF lacks is empty and is not written.
var specialKeys = []struct{ kind, id, add string }{
	{"bos", "tokenizer.ggml.bos_token_id", keyAddBOS},
	{"eos", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token"},
	{"unk", keyUnkID, ""},
	{"sep", "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.add_sep_token"},
	{"pad", keyPadID, ""},
	{"cls", "", ""},
	{"mask", "tokenizer.ggml.mask_token_id", ""},
	{"eot", "tokenizer.ggml.eot_token_id", ""},
	{"eom", "tokenizer.ggml.eom_token_id", ""},
	{"prefix", "", ""},
	{"suffix", "", ""},
	{"middle", "", ""},
}

// special collects the special tokens of one tokenizer. The ids and flags are
// written in the order in which they were found.
type special struct {
	files  *files
	kinds  []string // the kinds to find; post-processors may append eot and eom
	nVocab int      // ids from nVocab on are dropped; -1 for no limit

	wantMerges bool
	merges     []string // "left right"

	tokens map[string]any // members of tokenizer_config.json that a rule replaced
	ids    []kindOf[int64]
	flags  []kindOf[bool]

	template                     any // nil, string or []any
	nfc, lowercase, stripAccents any // nil when not set
}

type kindOf[T any] struct {
	kind  string
	value T
}

func find[T any](list []kindOf[T], kind string) int {
	return slices.IndexFunc(list, func(e kindOf[T]) bool { return e.kind == kind })
}

// setFlag sets an add_*_token flag; an existing flag keeps its place.
func (s *special) setFlag(kind string, on bool) {
	if i := find(s.flags, kind); i >= 0 {
		s.flags[i].value = on
		return
	}
	s.flags = append(s.flags, kindOf[bool]{kind, on})
}

// config returns a member of tokenizer_config.json, or its replacement by a rule.
func (s *special) config(name string) any {
	if v, ok := s.tokens[name]; ok {
		return v
	}
	return s.files.config.Get(name)
}

func (s *special) setConfig(name string, v any) {
	if s.tokens == nil {
		s.tokens = make(map[string]any)
	}
	s.tokens[name] = v
}

// setID sets the id of a kind unless it has one. Values other than integers are ignored; file is for errors.
func (s *special) setID(v *Vocab, file, kind string, value any) error {
	var id *big.Int
	if n, ok := value.(int64); ok {
		id = big.NewInt(n)
	} else if id, ok = pyjson.Integer(value); !ok {
		return nil
	}
	if id.Sign() < 0 {
		return badf(file, "%s token: negative id %v", kind, id)
	}
	if s.nVocab >= 0 && id.Cmp(big.NewInt(int64(s.nVocab))) >= 0 {
		v.warnf("%s: %s token ignored: id %v, but the vocabulary has %d", file, kind, id, s.nVocab)
		return nil
	}
	if find(s.ids, kind) >= 0 {
		return nil
	}
	if !id.IsInt64() || id.Int64() > math.MaxUint32 {
		return badf(file, "%s token: id %v beyond 32 bits", kind, id)
	}
	s.ids = append(s.ids, kindOf[int64]{kind, id.Int64()})
	return nil
}

// load fills s from tokenizer.json, tokenizer_config.json, the chat template
// files and the model's own configuration, in this order.
func (s *special) load(v *Vocab) error {
	if s.wantMerges {
		if err := s.loadMerges(v); err != nil {
			return err
		}
	}
	if err := s.loadJSON(v); err != nil {
		return err
	}
	if !s.files.config.Empty() {
		if err := s.loadTemplate(v); err != nil {
			return err
		}
		if err := s.loadConfig(v); err != nil {
			return err
		}
	}
	return s.loadModel(v)
}

// loadModel reads config.json: bos_token_id and so on, from the root or, if it has
// none, from text_config.
func (s *special) loadModel(v *Vocab) error {
	model := s.files.model
	for _, kind := range s.kinds {
		id := model.Get(kind + "_token_id")
		if text, ok := model.Lookup("text_config"); ok && id == nil {
			text, ok := text.(*pyjson.Object)
			if !ok {
				return badf(modelFile, "text_config: want an object")
			}
			id = text.Get(kind + "_token_id")
		}
		if list, ok := id.([]any); ok && len(list) > 0 && kind != "eos" { // see checkEnds
			found := "there is none"
			if i := find(s.ids, kind); i >= 0 {
				found = fmt.Sprintf("it is %d", s.ids[i].value)
			}
			v.warnf("config.json: %s_token_id is a list, %s, and none of its tokens is written: GGUF has one such "+
				"token, and %s", kind, idList(list), found)
		}
		if err := s.setID(v, modelFile, kind, id); err != nil {
			return err
		}
	}
	return nil
}

// loadConfig reads tokenizer_config.json: flags, and texts of tokens. Their ids are
// those of the added_tokens of tokenizer.json with the same text; without
// tokenizer.json they have none.
func (s *special) loadConfig(v *Vocab) error {
	for _, kind := range s.kinds {
		if on, ok := s.config("add_" + kind + "_token").(bool); ok {
			if i := find(s.flags, kind); i < 0 {
				s.setFlag(kind, on)
			} else if s.flags[i].value != on {
				v.warnf("%s: add_%s_token %t ignored: the post-processor of %s says %t", configFile, kind, on,
					jsonFile, !on)
			}
		}
		token := s.config(kind + "_token")
		if o, ok := token.(*pyjson.Object); ok {
			token = o.Get("content")
		}
		text, ok := token.(string)
		if !ok {
			continue
		}
		id, err := s.files.addedID(text)
		if err != nil {
			return err
		}
		if err := s.setID(v, jsonFile, kind, id); err != nil {
			return err
		}
	}
	return nil
}

// addedID returns the id of the first added token of tokenizer.json with the given text.
func (f *files) addedID(text string) (any, error) {
	value, ok := f.json.Lookup("added_tokens")
	if !ok {
		return nil, nil
	}
	list, ok := value.([]any)
	if o, isObject := value.(*pyjson.Object); !ok && !(isObject && o.Empty()) {
		return nil, badf(jsonFile, "added_tokens: want a list, got %s", pyjson.Describe(value))
	}
	for i, e := range list {
		token, ok := e.(*pyjson.Object)
		if !ok {
			return nil, badf(jsonFile, "added_tokens[%d]: want an object, got %s", i, pyjson.Describe(e))
		}
		if token.Get("content") == text {
			return token.Get("id"), nil
		}
	}
	return nil, nil
}

// loadJSON reads the normalizer and the post-processor of tokenizer.json.
func (s *special) loadJSON(v *Vocab) error {
	tok := s.files.json
	if n := tok.Get("normalizer"); pyjson.Truthy(n) {
		if err := s.normalizer(n); err != nil {
			return err
		}
	}
	if tok.Empty() {
		return nil
	}
	p := &postProcessor{s: s, vocab: v, hasConfig: !s.files.config.Empty(),

		bos: s.config("bos_token"), eos: s.config("eos_token"), cls: s.config("cls_token"), sep: s.config("sep_token")}
	return p.load(tok.Get("post_processor"))
}

// normalizer reads flags from a normalizer or, in order, from the normalizers of a sequence.
func (s *special) normalizer(value any) error {
	n, ok := value.(*pyjson.Object)
	if !ok {
		return badf(jsonFile, "normalizer: want an object, got %s", pyjson.Describe(value))
	}
	switch n.Get("type") {
	case "Lowercase":
		s.lowercase = true
	case "NFC":
		s.nfc = true
	case "StripAccents":
		s.stripAccents = true
	case "BertNormalizer":
		if v, ok := n.Lookup("lowercase"); ok {
			s.lowercase = v
		}
		if v, ok := n.Lookup("strip_accents"); ok {
			s.stripAccents = v
		}
	case "Sequence":
		list, err := listOf(n, "normalizers", "normalizer")
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := s.normalizer(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// listOf returns the list that is member name of o, nil when there is no such
// member. what names o in an error.
func listOf(o *pyjson.Object, name, what string) ([]any, error) {
	value, ok := o.Lookup(name)
	if !ok {
		return nil, nil
	}
	list, ok := value.([]any)
	if !ok {
		return nil, badf(jsonFile, "%s: %s: want a list, got %s", what, name, pyjson.Describe(value))
	}
	return list, nil
}

// write adds merges, ids, flags, chat templates and normalizer flags to v's pairs.
func (s *special) write(v *Vocab) error {
	if len(s.merges) > 0 {
		v.kvs.Set(keyMerges, gguf.Strings(s.merges))
	}
	for _, e := range s.ids {
		for _, k := range specialKeys {
			if k.kind == e.kind && k.id != "" {
				v.kvs.Set(k.id, gguf.Uint32(uint32(e.value)))
			}
		}
	}
	for _, e := range s.flags {
		for _, k := range specialKeys {
			if k.kind == e.kind && k.add != "" {
				v.kvs.Set(k.add, gguf.Bool(e.value))
			}
		}
	}
	if err := writeTemplate(v, s.template); err != nil {
		return err
	}
	for _, n := range []struct {
		key   string
		value any
	}{{keyNFC, s.nfc}, {keyLowercase, s.lowercase}, {keyStripAccents, s.stripAccents}} {
		if n.value != nil {
			v.kvs.Set(n.key, gguf.Bool(pyjson.Truthy(n.value)))
		}
	}
	return nil
}

// replaceID sets the id of a kind, also of one that has an id.
func (s *special) replaceID(kind string, id int64) {
	if i := find(s.ids, kind); i >= 0 {
		s.ids[i].value = id
		return
	}
	s.ids = append(s.ids, kindOf[int64]{kind, id})
}

// specialKey returns the keys of a kind.
func specialKey(kind string) (k struct{ kind, id, add string }) {
	for _, k := range specialKeys {
		if k.kind == kind {
			return k
		}
	}
	return k
}

// specialKinds are the kinds of special token that most rules look for.
var specialKinds = []string{"bos", "eos", "unk", "sep", "pad", "cls", "mask"}

// loadSpecial collects the special tokens of the given kinds. Ids from nVocab
// on are dropped; -1 for no limit.
func (f *files) loadSpecial(v *Vocab, opt Options, kinds []string, nVocab int) (*special, error) {
	s := &special{files: f, kinds: kinds, nVocab: nVocab}
	return s, s.load(v)
}

// writeSpecial writes the special tokens of the usual kinds, ids below the
// size of the vocabulary only.
func (f *files) writeSpecial(v *Vocab, opt Options) error {
	s, err := f.loadSpecial(v, opt, specialKinds, len(v.Tokens))
	if err != nil {
		return err
	}
	return s.write(v)
}
