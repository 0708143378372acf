package hf

import (
	"slices"
	"strings"

	"ggforge/tokenizer/internal/uni"
)

// PreTokenizer cuts a text into the pieces for the model.
type PreTokenizer interface {
	// split appends the pieces of one text.
	split(out []text, t text) ([]text, error)
}

// preTokenize applies p to pieces and drops empty ones.
func preTokenize(p PreTokenizer, pieces []text) ([]text, error) {
	if seq, ok := p.(PreTokenizerSequence); ok { // each splits the pieces of the one before
		var err error
		for _, e := range seq {
			if pieces, err = preTokenize(e, pieces); err != nil {
				break
			}
		}
		return pieces, err
	}
	out := make([]text, 0, len(pieces))
	for _, t := range pieces {
		from, grown := len(out), 0
		var err error
		if out, err = p.split(out, t); err != nil {
			return nil, err
		}
		kept := out[:from]
		for _, piece := range out[from:] {
			if piece.s != "" {
				kept = append(kept, piece)
				grown += len(piece.s)
			}
		}
		out = kept
		if err := t.budget.check(grown); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// PreTokenizerSequence applies pre-tokenizers one after the other.
type PreTokenizerSequence []PreTokenizer

func (s PreTokenizerSequence) split(out []text, t text) ([]text, error) {
	pieces, err := preTokenize(s, []text{t})
	return append(out, pieces...), err
}

// cutAt appends the parts of t with the given starts and ends.
func cutAt(out []text, t text, parts [][2]int) []text {
	for _, p := range parts {
		out = append(out, t.slice(p[0], p[1]))
	}
	return out
}

// ByteLevel splits by the expression of GPT-2, unless NoRegex, and replaces bytes by their characters in byte-level
// vocabularies.
type ByteLevel struct{ AddPrefixSpace, NoRegex bool }

// gpt2Words matches the pieces of GPT-2's pre-tokenizer.
var gpt2Words, _ = Regex(`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`)

func (p ByteLevel) split(out []text, t text) ([]text, error) {
	if p.AddPrefixSpace && !strings.HasPrefix(t.s, " ") {
		t = prepend(t, " ")
	}
	if p.NoRegex {
		return append(out, byteLevel(t)), nil
	}
	spans, err := gpt2Words.spans(t)
	if err != nil {
		return nil, err
	}
	for _, s := range spans {
		out = append(out, byteLevel(t.slice(s.start, s.end)))
	}
	return out, nil
}

// Split splits at the matches of a pattern, or with Invert at the text between them.
type Split struct {
	Pattern  Pattern
	Behavior Behavior
	Invert   bool
}

func (p Split) split(out []text, t text) ([]text, error) {
	spans, err := p.Pattern.spans(t)
	if err != nil {
		return nil, err
	}
	if p.Invert {
		for i := range spans {
			spans[i].match = !spans[i].match
		}
	}
	return cutAt(out, t, p.Behavior.cut(spans)), nil
}

// CharSplit splits at single characters.
type CharSplit struct {
	Is       func(rune) bool
	Behavior Behavior
}

func (p CharSplit) split(out []text, t text) ([]text, error) {
	return cutAt(out, t, p.Behavior.cut(charSpans(t.s, p.Is))), nil
}

// words splits a text into runs of word characters and runs of other characters, without white space: \w+|[^\w\s]+.
type words struct{}

func (words) split(out []text, t text) ([]text, error) {
	kind := func(r rune) int {
		switch {
		case uni.IsWord(r):
			return 1
		case uni.IsSpace(r):
			return 0
		}
		return 2
	}
	start, last := 0, 0
	flush := func(end int) {
		if last != 0 {
			out = append(out, t.slice(start, end))
		}
	}
	for i, r := range t.s {
		if k := kind(r); k != last {
			flush(i)
			start, last = i, k
		}
	}
	flush(len(t.s))
	return out, nil
}

func (p Metaspace) split(out []text, t text) ([]text, error) {
	r := string(p.Replacement)
	t, err := replace(t, Text(" "), r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(t.s, r) && (p.Prepend == PrependAlways || p.Prepend == PrependFirst && t.first == 0) {
		t = prepend(t, r)
	}
	if !p.Split {
		return append(out, t), nil
	}
	spans, err := Text(r).spans(t)
	return cutAt(out, t, MergedWithNext.cut(spans)), err
}

// FixedLength splits a text into pieces of a fixed number of characters; the last may be shorter.
type FixedLength int

func (p FixedLength) split(out []text, t text) ([]text, error) {
	start, n := 0, 0
	for i := range t.s {
		if n == int(p) {
			out = append(out, t.slice(start, i))
			start, n = i, 0
		}
		n++
	}
	return append(out, t.slice(start, len(t.s))), nil
}

// needsPlaces reports whether a pre-tokenizer needs the positions of pieces in the input (text.traced).
func needsPlaces(p PreTokenizer) bool {
	switch p := p.(type) {
	case Metaspace:
		return p.Prepend == PrependFirst
	case PreTokenizerSequence:
		return slices.ContainsFunc(p, needsPlaces)
	}
	return false
}

func parseBehavior(n node, def Behavior) Behavior {
	switch b := Behavior(n.strOr("behavior", string(def))); b {
	case Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous:
		return b
	default:
		n.unknown("behavior", string(b))
		return b
	}
}

func parsePreTokenizer(n node) PreTokenizer {
	switch typ := n.str("type"); typ {
	case "ByteLevel":
		n.boolean("trim_offsets") // must exist; changes only offsets
		return ByteLevel{n.boolean("add_prefix_space"), !n.boolOr("use_regex", true)}
	case "Split":
		if !n.has("behavior") {
			n.wrong("behavior", "a name")
		}
		return Split{parsePattern(n.child("pattern")), parseBehavior(n, Isolated), n.boolean("invert")}
	case "Digits":
		if n.boolean("individual_digits") {
			return CharSplit{uni.IsNumeric, Isolated}
		}
		return CharSplit{uni.IsNumeric, Contiguous}
	case "Punctuation":
		return CharSplit{uni.IsPunctuation, parseBehavior(n, Isolated)}
	case "Whitespace":
		return words{}
	case "WhitespaceSplit":
		return CharSplit{uni.IsSpace, Removed}
	case "BertPreTokenizer":
		return PreTokenizerSequence{CharSplit{uni.IsSpace, Removed}, CharSplit{uni.IsPunctuation, Isolated}}
	case "Metaspace":
		return parseMetaspace(n)
	case "CharDelimiterSplit", "Delimiter":
		delimiter := n.char("delimiter")
		return CharSplit{func(r rune) bool { return r == delimiter }, Removed}
	case "FixedLength":
		length := 5
		if n.has("length") {
			length = n.count("length")
		}
		if length == 0 {
			n.failf("length: want at least 1, got 0")
		}
		return FixedLength(length)
	case "Sequence":
		n.bounded("pretokenizers")
		seq := PreTokenizerSequence{}
		for _, e := range n.children("pretokenizers") {
			seq = append(seq, parsePreTokenizer(e))
		}
		return seq
	default:
		n.unknown("pre_tokenizer", typ)
	}
	return nil
}
