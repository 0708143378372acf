// Package uni holds the character data of the libraries that the tokenizers
// library (0.23.1) uses. Their Unicode versions differ: Oniguruma has 16 (regular
// expressions), Rust's standard library 17, and older crates provide accents,
// punctuation (Unicode 8) and normal forms (Unicode 9).
package uni

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// tables.txt has a line for each set of characters: its name, a tab, and its
// ranges from low to high. A range is its distance from the end of the last one
// and, after a "-" if it has several characters, their number less one, both in
// base 36.
//
// lower.txt has a line for each run of evenly spaced characters with lower-case
// forms: the first one (hexadecimal), their number, the distance between two, and
// the number to add for the lower-case form.
//
// Both are made by make_tables.py.
//
//go:embed tables.txt
var tablesText string

//go:embed lower.txt
var lowerText string

var lines = sync.OnceValue(func() map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(tablesText) {
		name, ranges, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		m[name] = ranges
	}
	return m
})

var (
	mu     sync.Mutex
	parsed = map[string]*Set{}
)

// Table returns a set of tables.txt and whether there is one of that name. The
// caller must not change it.
func Table(name string) (*Set, bool) {
	mu.Lock()
	defer mu.Unlock()
	if s := parsed[name]; s != nil {
		return s, true
	}
	text, ok := lines()[name]
	if !ok {
		return nil, false
	}
	s, next := &Set{}, rune(0)
	for field := range strings.FieldsSeq(text) {
		gap, length, _ := strings.Cut(field, "-")
		lo := next + number(gap)
		hi := lo
		if length != "" {
			hi += number(length)
		}
		s.Add(lo, hi)
		next = hi + 1
	}
	parsed[name] = s
	return s, true
}

// must is Table for a set that exists; it panics otherwise.
func must(name string) *Set {
	s, ok := Table(name)
	if !ok {
		panic("uni: no table " + name)
	}
	return s
}

// number reads a number in base 36.
func number(s string) rune {
	n, err := strconv.ParseUint(s, 36, 32)
	if err != nil {
		panic(fmt.Sprintf("uni: tables.txt: %v", err))
	}
	return rune(n)
}

// span is the characters from lo to hi.
type span struct{ lo, hi rune }

// Set is a set of characters.
type Set struct {
	ascii [2]uint64
	spans []span // sorted, with a gap between any two
}

// Add adds the characters from lo to hi.
func (s *Set) Add(lo, hi rune) {
	for c := lo; c <= min(hi, 127); c++ {
		s.ascii[c>>6] |= 1 << (c & 63)
	}
	if n := len(s.spans); n == 0 || s.spans[n-1].hi+1 < lo { // the usual case
		s.spans = append(s.spans, span{lo, hi})
		return
	}
	i, _ := slices.BinarySearchFunc(s.spans, lo, func(e span, lo rune) int { return int(e.hi + 1 - lo) })
	j := i
	for j < len(s.spans) && s.spans[j].lo <= hi+1 {
		lo, hi = min(lo, s.spans[j].lo), max(hi, s.spans[j].hi)
		j++
	}
	s.spans = slices.Replace(s.spans, i, j, span{lo, hi})
}

// Union adds the characters of t.
func (s *Set) Union(t *Set) {
	a, b := s.spans, t.spans
	s.spans = make([]span, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].lo <= b[0].lo {
			a, b = b, a
		}
		// b starts with the lower span
		s.append(b[0])
		b = b[1:]
	}
	for i := range s.ascii {
		s.ascii[i] |= t.ascii[i]
	}
}

// append adds a span that begins no lower than the last one.
func (s *Set) append(e span) {
	if n := len(s.spans); n > 0 && e.lo <= s.spans[n-1].hi+1 {
		s.spans[n-1].hi = max(s.spans[n-1].hi, e.hi)
		return
	}
	s.spans = append(s.spans, e)
}

// Complement returns the characters that are not in s; surrogates are in no set.
func (s *Set) Complement() *Set {
	out, next := &Set{}, rune(0)
	add := func(lo, hi rune) {
		if lo <= hi {
			out.Add(lo, hi)
		}
	}
	gap := func(lo, hi rune) {
		add(lo, min(hi, 0xD7FF))
		add(max(lo, 0xE000), hi)
	}
	for _, e := range s.spans {
		gap(next, e.lo-1)
		next = e.hi + 1
	}
	gap(next, utf8.MaxRune)
	return out
}

// Intersect returns the characters that are in both.
func (s *Set) Intersect(t *Set) *Set {
	u := s.Complement()
	u.Union(t.Complement())
	return u.Complement()
}

// Has reports whether r is in the set.
func (s *Set) Has(r rune) bool {
	if r < 128 {
		return r >= 0 && s.ascii[r>>6]>>(r&63)&1 != 0
	}
	lo, hi := 0, len(s.spans)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if s.spans[m].hi < r {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo < len(s.spans) && s.spans[lo].lo <= r
}

// Of returns the set of the given characters.
func Of(runes ...rune) *Set {
	s := &Set{}
	for _, r := range runes {
		s.Add(r, r)
	}
	return s
}

// The sets of Rust's standard library and of the crates; each is read when it is
// first used.
var (
	numeric    = sync.OnceValue(func() *Set { return must("numeric") })
	word       = sync.OnceValue(func() *Set { return must("rust_w") })
	punct      = sync.OnceValue(func() *Set { return must("punct") })
	combining  = sync.OnceValue(func() *Set { return must("combining") })
	nonspacing = sync.OnceValue(func() *Set { return must("nonspacing") })
	other      = sync.OnceValue(func() *Set { return must("other") })
	later      = sync.OnceValue(func() *Set { return must("later") })
)

// IsNumeric is Rust's char::is_numeric.
func IsNumeric(r rune) bool { return numeric().Has(r) }

// IsWord is \w of Rust's regex crate.
func IsWord(r rune) bool { return word().Has(r) }

// IsPunctuation reports whether the library's pre-tokenizers take r for punctuation: ASCII
// punctuation and symbols, and the categories of punctuation of Unicode 8.
func IsPunctuation(r rune) bool { return punct().Has(r) }

// IsCombiningMark reports whether the normalizer StripAccents removes r.
func IsCombiningMark(r rune) bool { return combining().Has(r) }

// IsNonspacingMark reports whether BertNormalizer removes r with strip_accents.
func IsNonspacingMark(r rune) bool { return nonspacing().Has(r) }

// IsOther reports whether BertNormalizer removes r with clean_text, as a control character.
func IsOther(r rune) bool { return other().Has(r) }

// IsSpace is the property White_Space: of Rust, and \s of regular expressions.
func IsSpace(r rune) bool {
	switch {
	case r < 0x80:
		return '\t' <= r && r <= '\r' || r == ' '
	case r < 0x2000:
		return r == 0x85 || r == 0xA0 || r == 0x1680
	}
	return r <= 0x200A || r == 0x2028 || r == 0x2029 || r == 0x202F || r == 0x205F || r == 0x3000
}

var lower = sync.OnceValue(func() map[rune]rune {
	m := make(map[rune]rune)
	for line := range strings.Lines(lowerText) {
		var first, n, step, delta rune
		if _, err := fmt.Sscanf(line, "%x %d %d %d", &first, &n, &step, &delta); err != nil {
			panic(fmt.Sprintf("uni: lower.txt: %v", err))
		}
		for i := range n {
			m[first+i*step] = first + i*step + delta
		}
	}
	return m
})

// AppendLower appends the lower-case form of one character, as Rust's
// char::to_lowercase has it.
func AppendLower(b []byte, r rune) []byte {
	switch {
	case r < 0x80:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	case r == 0x130: // the only character whose lower-case form has two
		return append(b, "i\u0307"...)
	}
	if l, ok := lower()[r]; ok {
		r = l
	}
	return utf8.AppendRune(b, r)
}

// Names returns the names of the tables that begin with prefix, without it, sorted.
func Names(prefix string) []string {
	var names []string
	for name := range lines() {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	return names
}
