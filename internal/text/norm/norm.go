// Package norm brings text into the normal forms of Unicode 15.0.0 (UAX #15).
//
// golang.org/x/text/unicode/norm is not used: the Go toolchain decides which Unicode version its data has, and with it
// the bytes of a tokenizer; it breaks up runs of more than 30 combining marks; it finds pairs by their low 16 bits, so
// that U+10041 U+0300 becomes U+00C0; and it does not report where a character comes from.
package norm

import (
	"slices"
	"strings"
)

// Form is a normal form.
type Form struct {
	Compatibility bool // decompose compatibility characters, too: NFKC, NFKD
	Compose       bool // compose after decomposition: NFC, NFKC

	// Unassigned reports whether a character is later than the Unicode version of the form. Such a character has no
	// decomposition, no composition, and combining class 0. Nil: the data of Unicode 15.0.0 holds.
	Unassigned func(rune) bool
}

// The normal forms of Unicode 15.0.0.
var (
	NFC  = Form{Compose: true}
	NFD  = Form{}
	NFKC = Form{Compatibility: true, Compose: true}
	NFKD = Form{Compatibility: true}
)

// Char is a character and its origin.
type Char struct {
	R  rune
	At int // offset in the source text, kept by normalization
}

// String returns the normal form of s; invalid bytes become U+FFFD.
func (f Form) String(s string) string {
	chars := make([]Char, 0, len(s))
	for i, r := range s {
		chars = append(chars, Char{r, i})
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, c := range f.Normalize(chars) {
		b.WriteRune(c.R)
	}
	return b.String()
}

// Normalize returns the normal form of a text in a slice of its own. All parts of a decomposed character have its
// origin; a composed character has the origin of its first part.
func (f Form) Normalize(text []Char) []Char {
	out := make([]Char, 0, len(text))
	start := 0 // of the run of combining marks
	for _, c := range text {
		from := len(out)
		out = f.decompose(out, c)
		for i := from; i < len(out); i++ {
			if f.class(out[i].R) == 0 {
				f.sortMarks(out[start:i])
				start = i + 1
			}
		}
	}
	f.sortMarks(out[start:])
	if f.Compose {
		out = f.composed(out)
	}
	return out
}

// sortMarks brings a run of combining marks into canonical order.
func (f Form) sortMarks(marks []Char) {
	if len(marks) > 1 {
		slices.SortStableFunc(marks, func(a, b Char) int { return int(f.class(a.R)) - int(f.class(b.R)) })
	}
}

// Hangul syllables decompose by arithmetic (Unicode standard, 3.12).
const (
	hangulS, hangulL, hangulV, hangulT     = 0xAC00, 0x1100, 0x1161, 0x11A7
	hangulNL, hangulNV, hangulNT, hangulNS = 19, 21, 28, 19 * 21 * 28
)

// decompose appends the full decomposition of c.
func (f Form) decompose(out []Char, c Char) []Char {
	r := c.R
	switch {
	case r < 0xA0:
		return append(out, c)
	case hangulS <= r && r < hangulS+hangulNS:
		s := r - hangulS
		out = append(out, Char{hangulL + s/(hangulNV*hangulNT), c.At},
			Char{hangulV + s%(hangulNV*hangulNT)/hangulNT, c.At})
		if t := s % hangulNT; t > 0 {
			out = append(out, Char{hangulT + t, c.At})
		}
		return out
	}
	p := tables().lookup(r)
	parts := p.canonical
	if f.Compatibility {
		parts = p.compatibility
	}
	if parts == nil || f.unassigned(r) {
		return append(out, c)
	}
	for _, part := range parts {
		out = append(out, Char{part, c.At})
	}
	return out
}

func (f Form) unassigned(r rune) bool { return f.Unassigned != nil && f.Unassigned(r) }

// class returns the canonical combining class.
func (f Form) class(r rune) uint8 {
	if r < 0x300 {
		return 0
	}
	class := tables().lookup(r).class
	if class != 0 && f.unassigned(r) {
		return 0
	}
	return class
}

// composed composes in place: each character with the last starter before it, unless a character between them blocks
// it, which is one of the same or a higher class.
func (f Form) composed(text []Char) []Char {
	out := text[:0]
	starter, last := -1, uint8(0) // last: class of the last character kept after the starter
	for _, c := range text {
		class := f.class(c.R)
		if starter >= 0 && (len(out) == starter+1 || last != 0 && last < class) {
			if r, ok := f.pair(out[starter].R, c.R); ok {
				out[starter].R = r
				continue
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, c)
	}
	return out
}

// pair returns the primary composite of a and b.
func (f Form) pair(a, b rune) (rune, bool) {
	switch {
	case b < 0x300:
		return 0, false
	case hangulL <= a && a < hangulL+hangulNL && hangulV <= b && b < hangulV+hangulNV:
		return hangulS + ((a-hangulL)*hangulNV+b-hangulV)*hangulNT, true
	case hangulS <= a && a < hangulS+hangulNS && (a-hangulS)%hangulNT == 0 && hangulT < b && b < hangulT+hangulNT:
		return a + b - hangulT, true
	}
	t := tables()
	if !t.lookup(b).second {
		return 0, false
	}
	r, ok := t.pairs[[2]rune{a, b}]
	if !ok || f.unassigned(a) || f.unassigned(b) {
		return 0, false
	}
	return r, true
}
