package vocab

import (
	"fmt"
	"math"
	"strings"

	"ggforge/fault"
	"ggforge/gguf"
)

// The keys that are read.
const (
	keyModel        = "tokenizer.ggml.model"
	keyPre          = "tokenizer.ggml.pre"
	keyTokens       = "tokenizer.ggml.tokens"
	keyScores       = "tokenizer.ggml.scores"
	keyTypes        = "tokenizer.ggml.token_type"
	keyMerges       = "tokenizer.ggml.merges"
	keyAddBOS       = "tokenizer.ggml.add_bos_token"
	keyAddEOS       = "tokenizer.ggml.add_eos_token"
	keyAddSep       = "tokenizer.ggml.add_sep_token"
	keySpacePrefix  = "tokenizer.ggml.add_space_prefix"
	keyExtraSpaces  = "tokenizer.ggml.remove_extra_whitespaces"
	keyCharsmap     = "tokenizer.ggml.precompiled_charsmap"
	keyLowercase    = "tokenizer.ggml.normalizer.lowercase"
	keyStripAccents = "tokenizer.ggml.normalizer.strip_accents"
	keyNFC          = "tokenizer.ggml.normalizer.nfc"
	keyName         = "general.name"
)

// attribute is a set of properties of a token.
type attribute uint8

const (
	unknown attribute = 1 << iota
	unused
	normal
	controlToken
	userDefined
	byteToken
	stripLeft  // the white space before it is dropped
	stripRight // the white space after it is dropped
)

// attributes maps the token types of a file to attributes; other types have none.
var attributes = map[int32]attribute{1: normal, 2: unknown, 3: controlToken, 4: userDefined, 5: unused, 6: byteToken}

// token is a row of the vocabulary.
type token struct {
	text  string
	score float32
	attr  attribute
}

// none is the id of a token that does not exist.
const none int32 = -1

// Vocab is the tokenizer of a file. Several goroutines may use it.
type Vocab struct {
	model  string
	tokens []token
	ids    map[string]int32 // by text

	bos, eos, unk, sep     int32
	addBOS, addEOS, addSep bool
	specials               []int32 // tokens to find in a text before it is encoded, longest first
	finder, userFinder     *trie   // of all specials, and of those that are found without Options.ParseSpecial
	spacePrefix            bool
	alwaysBOS              bool // BOS is added whatever the file says

	enc kind
}

// kind is the encoder of a kind of vocabulary.
type kind interface {
	// session returns an encoder for the fragments of one text.
	session() session
	// piece returns the bytes that a token with this text stands for, unless it is a special one or that of a byte.
	piece(text string) string
}

// session encodes the fragments of one text: it appends the ids of a fragment without special tokens. first is true
// if the fragment begins the text or comes after a special token.
type session interface {
	encode(ids []int32, fragment string, first bool) ([]int32, error)
}

// Options are the options of Encode.
type Options struct {
	// AddSpecial puts BOS and EOS around the text, if the file says so.
	AddSpecial bool
	// ParseSpecial recognises control tokens in the text. User-defined tokens are
	// recognised in any case.
	ParseSpecial bool
}

// maxToken bounds the bytes of a token. The longest published ones have less than a
// thousand.
const maxToken = 1 << 16

// maxText bounds the bytes of a text: positions in it have 32 bits.
const maxText = 1 << 30

func broken(key, format string, args ...any) error {
	return fault.Errorf(fault.Broken, "%s: %w", key, fmt.Errorf(format, args...))
}

// New reads the tokenizer of a file. Errors are fault.Unsupported for models and
// pre-tokenizers that are not known, and for a file without a tokenizer; otherwise
// fault.Broken, and they name the key.
func New(m gguf.Metadata) (*Vocab, error) {
	r := &reader{m: m}
	model, ok := r.str(keyModel)
	if r.err != nil {
		return nil, r.err
	}
	if !ok || model == "none" || model == "no_vocab" {
		return nil, fault.Errorf(fault.Unsupported, "%s: the file has no tokenizer", keyModel)
	}
	k, ok := models[model]
	if !ok {
		return nil, fault.Errorf(fault.Unsupported, "%s: tokenizer %q is not known", keyModel, model)
	}
	v := &Vocab{model: model, bos: k.bos, eos: k.eos, unk: k.unk, sep: k.sep, addBOS: k.addBOS, addEOS: k.addEOS,
		addSep: k.addSep, spacePrefix: k.spacePrefix}
	v.spacePrefix = r.flag(keySpacePrefix, v.spacePrefix)
	v.read(r)
	if r.err != nil {
		return nil, r.err
	}
	made, err := k.make(v, r)
	if err != nil {
		return nil, err
	}
	v.enc = made
	v.special(r)
	if r.err != nil {
		return nil, r.err
	}
	return v, nil
}

// read reads the rows of the vocabulary.
func (v *Vocab) read(r *reader) {
	list, ok := r.array(keyTokens, gguf.StringType)
	if !ok && r.err == nil {
		r.err = broken(keyTokens, "is missing")
	}
	if r.err != nil {
		return
	}
	v.ids = make(map[string]int32, list.Len())
	for e := range list.Elems() {
		text, _ := e.Str()
		id := int32(len(v.tokens))
		if text == "" {
			text = fmt.Sprintf("[EMPTY_%d]", id)
		}
		if len(text) > maxToken {
			r.err = broken(keyTokens, "token %d has %d bytes, want at most %d", id, len(text), maxToken)
			return
		}
		if other, twice := v.ids[text]; twice {
			r.err = broken(keyTokens, "%q is token %d and token %d", text, other, id)
			return
		}
		v.ids[text] = id
		v.tokens = append(v.tokens, token{text: text, attr: normal})
	}
	r.each(keyScores, len(v.tokens), []gguf.ValueType{gguf.Float32Type, gguf.Int32Type}, func(i int, e gguf.Value) {
		if f, ok := e.Float(); ok {
			v.tokens[i].score = float32(f)
		} else if n, ok := e.Int(); ok {
			v.tokens[i].score = float32(n)
		}
	})
	r.each(keyTypes, len(v.tokens), []gguf.ValueType{gguf.Int32Type}, func(i int, e gguf.Value) {
		n, _ := e.Int()
		v.tokens[i].attr = attributes[int32(n)]
	})
}

// reader reads metadata. It keeps the first error; later reads return zero values.
type reader struct {
	m   gguf.Metadata
	err error
}

func (r *reader) get(key string) (gguf.Value, bool) {
	if r.err != nil {
		return gguf.Value{}, false
	}
	return r.m.Get(key)
}

func (r *reader) str(key string) (string, bool) {
	value, ok := r.get(key)
	if !ok {
		return "", false
	}
	s, ok := value.Str()
	if !ok {
		r.err = broken(key, "want a string, got %v", value.Type())
	}
	return s, ok
}

func (r *reader) flag(key string, otherwise bool) bool {
	value, ok := r.get(key)
	if !ok {
		return otherwise
	}
	b, ok := value.Bool()
	if !ok {
		r.err = broken(key, "want a bool, got %v", value.Type())
	}
	return b
}

// id reads the id of one of n tokens.
func (r *reader) id(key string, n int, otherwise int32) int32 {
	value, ok := r.get(key)
	if !ok {
		return otherwise
	}
	id, ok := value.Int()
	switch {
	case !ok:
		r.err = broken(key, "want an integer, got %v", value.Type())
	case id < 0 || id >= int64(n):
		r.err = broken(key, "id %d, but there are %d tokens", id, n)
	}
	return int32(id)
}

// array reads an array whose elements have one of some types.
func (r *reader) array(key string, types ...gguf.ValueType) (gguf.Value, bool) {
	value, ok := r.get(key)
	if !ok {
		return value, false
	}
	if value.Type() == gguf.ArrayType {
		for _, t := range types {
			if value.ElemType() == t {
				return value, true
			}
		}
		r.err = broken(key, "want an array of %v, got one of %v", types[0], value.ElemType())
		return value, false
	}
	r.err = broken(key, "want an array of %v, got %v", types[0], value.Type())
	return value, false
}

// each reads an array with an element for each of n tokens, if it is there.
func (r *reader) each(key string, n int, types []gguf.ValueType, f func(i int, e gguf.Value)) {
	list, ok := r.array(key, types...)
	if !ok {
		return
	}
	if list.Len() != n {
		r.err = broken(key, "%d elements, but there are %d tokens", list.Len(), n)
		return
	}
	i := 0
	for e := range list.Elems() {
		f(i, e)
		i++
	}
}

// Len returns the number of tokens.
func (v *Vocab) Len() int { return len(v.tokens) }

// Token returns the text of a token as it is in the file; a placeholder if it is empty.
// id is below Len.
func (v *Vocab) Token(id int32) string { return v.tokens[id].text }

// Control reports whether a token is a control token: it stands for none of a text's characters.
func (v *Vocab) Control(id int32) bool { return v.tokens[id].attr&controlToken != 0 }

// Bos returns the BOS token, if there is one, whether Encode adds it or not.
func (v *Vocab) Bos() (int32, bool) { return v.bos, v.bos != none }

// Eos returns the token for the end of a text; ok is false without one.
func (v *Vocab) Eos() (id int32, ok bool) { return v.eos, v.eos >= 0 && int(v.eos) < len(v.tokens) }

// Unknown returns the unknown token, if there is one.
func (v *Vocab) Unknown() (int32, bool) { return v.unk, v.unk >= 0 && int(v.unk) < len(v.tokens) }

// AddBos reports whether BOS comes before a text.
func (v *Vocab) AddBos() bool { return v.addBOS }

// Encode returns the ids of a text. Bytes that are not UTF-8 are encoded as the
// runtime does: as bytes, or as U+FFFD.
func (v *Vocab) Encode(text string, opt Options) ([]int32, error) {
	if len(text) > maxText {
		return nil, fault.Errorf(fault.Unsupported, "a text of %d bytes, want at most %d", len(text), maxText)
	}
	k := models[v.model]
	var ids []int32
	if opt.AddSpecial && (v.addBOS && k.wraps || k.frames) {
		ids = append(ids, v.bos)
	}
	s, first := v.enc.session(), true
	for _, f := range v.partition(text, opt.ParseSpecial) {
		if f.id != none {
			ids, first = append(ids, f.id), true
			continue
		}
		var err error
		if ids, err = s.encode(ids, f.text, first); err != nil {
			return nil, err
		}
		first = false
	}
	switch {
	case !opt.AddSpecial:
	case k.frames:
		ids = append(ids, v.sep)
	case v.addEOS && k.wraps:
		ids = append(ids, v.eos)
	}
	return ids, nil
}

// byteIDs returns the ids of the tokens <0x00> to <0xFF>, none for a missing token.
func (v *Vocab) byteIDs() (ids [256]int32) {
	for b := range ids {
		ids[b] = none
		if id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]; ok {
			ids[b] = id
		}
	}
	return ids
}

const blank = "▁" // the character for a blank in tokens

// spans reports whether text has ▁ after another character: pieces that end before
// each such ▁ cannot be encoded one by one when tokens span them.
func spans(text string) bool {
	for i := strings.Index(text, blank); i >= 0; {
		if i > 0 && !strings.HasSuffix(text[:i], blank) {
			return true
		}
		j := strings.Index(text[i+len(blank):], blank)
		if j < 0 {
			return false
		}
		i += len(blank) + j
	}
	return false
}

// beforeBlanks returns the length of the first piece of s: up to the first ▁ after
// another character.
func beforeBlanks(s string) int {
	at := 0
	for strings.HasPrefix(s[at:], blank) {
		at += len(blank)
	}
	if i := strings.Index(s[at:], blank); i >= 0 {
		return at + i
	}
	return len(s)
}

// finite returns the score, or a number in place of NaN, which has no place in an order.
func finite(score float32) float64 {
	if f := float64(score); !math.IsNaN(f) {
		return f
	}
	return math.Inf(-1)
}
