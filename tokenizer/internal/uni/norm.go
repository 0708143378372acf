package uni

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Form is a normal form.
type Form struct {
	compat, compose bool
	all             bool // with all the data there is
}

// The normal forms, with the data of Unicode 9: later characters are
// themselves and combine with nothing.
var (
	NFC  = Form{compose: true}
	NFD  = Form{}
	NFKC = Form{compat: true, compose: true}
	NFKD = Form{compat: true}
)

// LaterNFC is NFC with the data of Unicode 15.
var LaterNFC = Form{compose: true, all: true}

// Char is a character of a text and the place in the source that it comes from.
type Char struct {
	R  rune
	At int
}

// Normalize returns the normal form of a text. x/text serves for its data only:
// as a normalizer it breaks runs of more than 30 combining marks.
//
// A character that is decomposed gives its place to all its parts, one that is
// composed has that of the first.
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
	if f.compose {
		out = f.composed(out)
	}
	return out
}

func (f Form) sortMarks(marks []Char) {
	if len(marks) > 1 {
		slices.SortStableFunc(marks, func(a, b Char) int { return int(f.class(a.R)) - int(f.class(b.R)) })
	}
}

// Hangul syllables are made of parts by arithmetic (Unicode standard, 3.12).
const (
	hangulS, hangulL, hangulV, hangulT     = 0xAC00, 0x1100, 0x1161, 0x11A7
	hangulNL, hangulNV, hangulNT, hangulNS = 19, 21, 28, 19 * 21 * 28
)

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
	case f.unknown(r):
		return append(out, c)
	}
	form := norm.NFD
	if f.compat {
		form = norm.NFKD
	}
	var buf [utf8.UTFMax]byte
	parts := form.Properties(utf8.AppendRune(buf[:0], r)).Decomposition()
	if parts == nil {
		return append(out, c)
	}
	for len(parts) > 0 {
		part, n := utf8.DecodeRune(parts)
		out = append(out, Char{part, c.At})
		parts = parts[n:]
	}
	return out
}

// unknown reports whether a character is later than the form's data.
func (f Form) unknown(r rune) bool { return !f.all && later().Has(r) }

// class returns the canonical combining class.
func (f Form) class(r rune) uint8 {
	if r < 0x300 || f.unknown(r) {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(utf8.AppendRune(buf[:0], r)).CCC()
}

// composed composes in place: each character with the last starter before it,
// unless one of its own class or higher is between.
func (f Form) composed(text []Char) []Char {
	out := text[:0]
	starter, last := -1, uint8(0) // the class of the last character kept after the starter
	for _, c := range text {
		cl := f.class(c.R)
		if starter >= 0 && (len(out) == starter+1 || last != 0 && last < cl) {
			if r, ok := f.pair(out[starter].R, c.R); ok {
				out[starter].R = r
				continue
			}
		}
		if cl == 0 {
			starter = len(out)
		}
		last = cl
		out = append(out, c)
	}
	return out
}

// pair returns the character that two compose to.
func (f Form) pair(a, b rune) (rune, bool) {
	switch {
	case b < 0x300:
		return 0, false
	case hangulL <= a && a < hangulL+hangulNL && hangulV <= b && b < hangulV+hangulNV:
		return hangulS + ((a-hangulL)*hangulNV+b-hangulV)*hangulNT, true
	case hangulS <= a && a < hangulS+hangulNS && (a-hangulS)%hangulNT == 0 && hangulT < b && b < hangulT+hangulNT:
		return a + b - hangulT, true
	case f.unknown(a) || f.unknown(b):
		return 0, false
	}
	var buf [2 * utf8.UTFMax]byte
	in := utf8.AppendRune(utf8.AppendRune(buf[:0], a), b)
	if !norm.NFC.PropertiesString(string(b)).BoundaryBefore() || f.class(b) != 0 {
		out := norm.NFC.Bytes(in)
		if r, n := utf8.DecodeRune(out); n == len(out) {
			return r, true
		}
	}
	return 0, false
}
