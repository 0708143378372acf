// Package hf reads tokenizer.json and encodes and decodes text as the tokenizers
// library of Hugging Face (0.23.1) does, ids only:
//
//	text ─► added tokens ─► normalizer ─► added tokens ─► pre-tokenizer ─► model ─► post-processor ─► ids
//	        found in the                  found in the
//	        raw text                      normalized text
//
// Every part of the library is supported, except the pre-tokenizer UnicodeScripts; a part of an unknown type is an
// ErrUnsupported, a part without one of its members an ErrBroken. BPE dropout is ignored: it is for training.
package hf

import "ggforge/fault"

// Kinds of error, for errors.Is.
var (
	ErrBroken      = fault.Broken      // the file is not what its format demands
	ErrUnsupported = fault.Unsupported // a part of an unknown type
)

func badf(format string, args ...any) error { return fault.Errorf(ErrBroken, format, args...) }

func unsupportedf(format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, format, args...)
}

// A Tokenizer encodes and decodes. It may be used by several goroutines once it
// is complete.
type Tokenizer struct {
	Normalizer    Normalizer    // nil: none
	PreTokenizer  PreTokenizer  // nil: none
	Model         Model         // always there
	PostProcessor PostProcessor // nil: none
	Decoder       Decoder       // nil joins tokens with blanks

	// Work is the remaining work for all texts together (LoadWork); nil for a limit per text (baseWork, byteWork).
	Work *int

	// SplitSpecial encodes the texts of special tokens as any other text.
	SplitSpecial bool

	added addedVocabulary
}

// Model is the last step of encoding, from pieces of text to ids, and holds the
// base vocabulary.
type Model interface {
	Type() string
	Size() int // number of tokens
	ID(token string) (int, bool)
	Token(id int) (string, bool)
	each(func(token string, id int))               // calls f for every token, in any order
	encode(ids []int, piece string) ([]int, error) // appends; piece is not empty
	cost(n int) int                                // estimated work of encoding n bytes
}

// New returns a tokenizer that has only a model.
func New(m Model) *Tokenizer { return &Tokenizer{Model: m} }

// ID returns the id of a token's text, added tokens first.
func (t *Tokenizer) ID(token string) (int, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	return t.Model.ID(token)
}

// Vocab returns all tokens by text, added ones included.
func (t *Tokenizer) Vocab() map[string]int {
	v := make(map[string]int, t.Model.Size()+len(t.added.ids))
	t.Model.each(func(token string, id int) { v[token] = id })
	for token, id := range t.added.ids {
		v[token] = id
	}
	return v
}

// Decode returns the text of ids; unknown ids are left out.
func (t *Tokenizer) Decode(ids []int) (string, error) {
	tokens, size := make([]string, 0, len(ids)), 0
	for _, id := range ids {
		token, ok := t.added.text(id)
		if !ok {
			token, ok = t.Model.Token(id)
		}
		if ok {
			tokens = append(tokens, token)
			size += len(token)
		}
	}
	return decode(t.budget(size), t.Decoder, tokens)
}

// Encode returns the ids of a text, with those of the post-processor if special
// is set.
func (t *Tokenizer) Encode(s string, special bool) ([]int, error) {
	var ids []int
	err := t.added.extract(t.input(s, needsPlaces(t.PreTokenizer)), false, t.SplitSpecial,
		func(id int, part text) error {
			if id >= 0 {
				ids = append(ids, id)
				return nil
			}
			if t.Normalizer != nil {
				var err error
				if part, err = t.Normalizer.normalize(part); err != nil {
					return err
				}
			}
			return t.added.extract(part, true, t.SplitSpecial, func(id int, part text) error {
				if id >= 0 {
					ids = append(ids, id)
					return nil
				}
				var err error
				ids, err = t.encode(ids, part)
				return err
			})
		})
	if err == nil && special && t.PostProcessor != nil {
		ids = t.PostProcessor.process(ids)
	}
	return ids, err
}

// encode appends the ids of a normalized text without added tokens.
func (t *Tokenizer) encode(ids []int, part text) ([]int, error) {
	pieces := []text{part}
	var err error
	if t.PreTokenizer != nil {
		if pieces, err = preTokenize(t.PreTokenizer, pieces); err != nil {
			return nil, err
		}
	}
	for _, p := range pieces {
		if p.s == "" {
			continue
		}
		if err := p.budget.spend(t.Model.cost(len(p.s))); err != nil {
			return nil, err
		}
		if ids, err = t.Model.encode(ids, p.s); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// input returns a text before normalization.
func (t *Tokenizer) input(s string, traced bool) text {
	return text{s: s, budget: t.budget(len(s)), traced: traced}
}
