package hf

import (
	"strings"
	"unicode/utf8"

	"ggforge/internal/text/norm"
	"ggforge/tokenizer/internal/uni"
)

// Normalizer changes text before it is split.
type Normalizer interface {
	normalize(t text) (text, error)
}

// normalizer is a Normalizer that cannot fail.
type normalizer func(t text) text

func (n normalizer) normalize(t text) (text, error) { return n(t), nil }

// NormalizerSequence applies normalizers one after the other.
type NormalizerSequence []Normalizer

func (s NormalizerSequence) normalize(t text) (text, error) {
	var err error
	for _, n := range s {
		if t, err = n.normalize(t); err == nil {
			err = t.budget.check(len(t.s))
		}
		if err != nil {
			break
		}
	}
	return t, err
}

// FormNormalizer brings text into a Unicode normal form.
func FormNormalizer(f norm.Form) Normalizer {
	return normalizer(func(t text) text { return normalForm(t, f) })
}

// Replace replaces each match of a pattern by Content.
type Replace struct {
	Pattern Pattern
	Content string
}

func (n Replace) normalize(t text) (text, error) { return replace(t, n.Pattern, n.Content) }

// Prepend is put before every text that is not empty.
type Prepend string

func (n Prepend) normalize(t text) (text, error) {
	if t.s == "" {
		return t, nil
	}
	return prepend(t, string(n)), nil
}

// StripSpace removes white space at the ends.
type StripSpace struct{ Left, Right bool }

func (n StripSpace) normalize(t text) (text, error) {
	start, end := 0, len(t.s)
	if n.Left {
		start = end - len(strings.TrimLeftFunc(t.s, uni.IsSpace))
	}
	if n.Right {
		end = start + len(strings.TrimRightFunc(t.s[start:], uni.IsSpace))
	}
	if start == 0 && end == len(t.s) {
		return t, nil
	}
	b := build(t)
	b.keep(t, start, end)
	return b.text(t), nil
}

// BertNormalizer cleans text as BERT's first tokenizer did.
type BertNormalizer struct {
	CleanText, HandleChineseChars, StripAccents, Lowercase bool
}

func (n BertNormalizer) normalize(t text) (text, error) {
	if n.CleanText {
		t = mapRunes(t, func(b []byte, r rune) []byte {
			switch {
			case uni.IsSpace(r) && r != '\v' && r != '\f' && r != 0x85:
				return append(b, ' ')
			case r == 0 || r == utf8.RuneError || uni.IsOther(r):
				return b
			}
			return utf8.AppendRune(b, r)
		})
	}
	if n.HandleChineseChars {
		t = mapRunes(t, func(b []byte, r rune) []byte {
			if !isChinese(r) {
				return utf8.AppendRune(b, r)
			}
			return append(utf8.AppendRune(append(b, ' '), r), ' ')
		})
	}
	if n.StripAccents {
		t = filter(normalForm(t, uni.NFD), func(r rune) bool { return !uni.IsNonspacingMark(r) })
	}
	if n.Lowercase {
		t = mapRunes(t, uni.AppendLower)
	}
	return t, nil
}

// isChinese reports whether r is in one of the blocks of CJK ideographs that BERT lists.
func isChinese(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2B73F || 0x2B740 <= r && r <= 0x2B81F || 0x2B920 <= r && r <= 0x2CEAF ||
		0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// nmt appends what the Nmt normalizer, of Google's neural machine translation, makes of a character.
func nmt(b []byte, r rune) []byte {
	switch {
	case 1 <= r && r <= 8, r == 0x0B, 0x0E <= r && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
		return b
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, 0x200B <= r && r <= 0x200F,
		r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
		return append(b, ' ')
	}
	return utf8.AppendRune(b, r)
}

// byteLevel replaces each byte by its character in byte-level vocabularies.
func byteLevel(t text) text {
	b := build(t)
	for i := range len(t.s) {
		b.s = utf8.AppendRune(b.s, byteChars[t.s[i]])
		b.mark(t.origin(i))
	}
	return b.text(t)
}

func parseNormalizer(n node) Normalizer {
	switch typ := n.str("type"); typ {
	case "NFC":
		return FormNormalizer(uni.NFC)
	case "NFD":
		return FormNormalizer(uni.NFD)
	case "NFKC":
		return FormNormalizer(uni.NFKC)
	case "NFKD":
		return FormNormalizer(uni.NFKD)
	case "Lowercase":
		return normalizer(func(t text) text { return mapRunes(t, uni.AppendLower) })
	case "StripAccents":
		return normalizer(func(t text) text {
			return filter(t, func(r rune) bool { return !uni.IsCombiningMark(r) })
		})
	case "Nmt":
		return normalizer(func(t text) text { return mapRunes(t, nmt) })
	case "ByteLevel":
		return normalizer(byteLevel)
	case "Strip":
		return StripSpace{n.boolean("strip_left"), n.boolean("strip_right")}
	case "Prepend":
		return Prepend(n.str("prepend"))
	case "Replace":
		return Replace{parsePattern(n.child("pattern")), n.str("content")}
	case "Precompiled":
		return parsePrecompiled(n)
	case "BertNormalizer":
		b := BertNormalizer{CleanText: n.boolean("clean_text"), HandleChineseChars: n.boolean("handle_chinese_chars"),
			Lowercase: n.boolean("lowercase")}
		b.StripAccents = n.boolOr("strip_accents", b.Lowercase)
		return b
	case "Sequence":
		n.bounded("normalizers")
		seq := NormalizerSequence{}
		for _, e := range n.children("normalizers") {
			seq = append(seq, parseNormalizer(e))
		}
		return seq
	default:
		n.unknown("normalizer", typ)
	}
	return nil
}
