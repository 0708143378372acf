package hf

import (
	"unicode/utf8"

	"ggforge/internal/text/norm"
)

// text is a part of the input on its way through the normalizer and the pre-tokenizer. If traced, the position in the
// input is known for each byte: it is at[i], or first+i if at is nil. Only a Metaspace with the scheme "first" needs
// positions.
type text struct {
	s      string
	budget budget
	traced bool
	at     []int
	first  int
}

// origin returns the position of byte i in the input, 0 if the text is not traced.
func (t text) origin(i int) int {
	switch {
	case !t.traced:
		return 0
	case t.at == nil:
		return t.first + i
	case i < len(t.at):
		return t.at[i]
	}
	return t.first
}

// slice returns the bytes from i to j.
func (t text) slice(i, j int) text {
	out := text{s: t.s[i:j], budget: t.budget, traced: t.traced, first: t.origin(i)}
	if t.at != nil {
		out.at = t.at[i:j]
	}
	return out
}

// builder collects the bytes of a changed text and, if traced, their positions in the input.
type builder struct {
	s      []byte
	traced bool
	at     []int
}

// build returns an empty builder for a text made from t.
func build(t text) *builder {
	b := &builder{s: make([]byte, 0, len(t.s)+8), traced: t.traced}
	if t.traced {
		b.at = make([]int, 0, len(t.s)+8)
	}
	return b
}

// add appends s, with the position at for all of its bytes.
func (b *builder) add(s string, at int) {
	b.s = append(b.s, s...)
	b.mark(at)
}

// mark sets the position of the bytes that have none yet.
func (b *builder) mark(at int) {
	for b.traced && len(b.at) < len(b.s) {
		b.at = append(b.at, at)
	}
}

// keep appends the bytes from i to j of t.
func (b *builder) keep(t text, i, j int) {
	b.s = append(b.s, t.s[i:j]...)
	for ; b.traced && i < j; i++ {
		b.at = append(b.at, t.origin(i))
	}
}

// text returns the collected text; t is the one it was made from.
func (b *builder) text(t text) text { return text{string(b.s), t.budget, b.traced, b.at, t.origin(0)} }

// mapRunes replaces each character by the bytes that f appends for it.
func mapRunes(t text, f func(b []byte, r rune) []byte) text {
	b := build(t)
	for i, r := range t.s {
		b.s = f(b.s, r)
		b.mark(t.origin(i))
	}
	return b.text(t)
}

// filter keeps the characters for which keep is true.
func filter(t text, keep func(rune) bool) text {
	return mapRunes(t, func(b []byte, r rune) []byte {
		if keep(r) {
			b = utf8.AppendRune(b, r)
		}
		return b
	})
}

// prepend puts s before t.
func prepend(t text, s string) text {
	b := build(t)
	b.add(s, t.origin(0))
	b.keep(t, 0, len(t.s))
	return b.text(t)
}

// replace replaces each match by content.
func replace(t text, p Pattern, content string) (text, error) {
	matches, err := p.matches(t)
	if err != nil || len(matches) == 0 {
		return t, err
	}
	if err := t.budget.check(len(t.s) + len(matches)*len(content)); err != nil {
		return t, err
	}
	b, pos := build(t), 0
	for _, m := range matches {
		b.keep(t, pos, m[0])
		at := 0
		if m[1] > 0 { // content has the position of the last replaced byte
			at = t.origin(m[1] - 1)
		}
		b.add(content, at)
		pos = m[1]
	}
	b.keep(t, pos, len(t.s))
	return b.text(t), nil
}

// normalForm brings t into a Unicode normal form.
func normalForm(t text, f norm.Form) text {
	ascii := true
	for i := range len(t.s) {
		ascii = ascii && t.s[i] < utf8.RuneSelf
	}
	if ascii {
		return t
	}
	chars := make([]norm.Char, 0, len(t.s))
	for i, r := range t.s {
		chars = append(chars, norm.Char{R: r, At: t.origin(i)})
	}
	b := build(t)
	for _, c := range f.Normalize(chars) {
		b.s = utf8.AppendRune(b.s, c.R)
		b.mark(c.At)
	}
	return b.text(t)
}
