package vocab

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"ggforge/internal/text/norm"
)

// chars.txt has a line for each class of characters: its name, a tab and its ranges
// from low to high. A range is its distance from the end of the last one and, after a
// "-" if it has several characters, their number less one, both in base 36. Then come
// the runs of two maps, to lower case and to the character without its accents: first
// (hexadecimal), number, distance, first target (hexadecimal), distance of the targets.
//
// make_tables.py makes the file from the runtime's library.
//
//go:embed chars.txt
var charsText string

// class is the runtime's class of a character; unassigned characters have none.
type class uint16

const (
	number class = 1 << iota
	letter
	separator
	mark
	punct
	symbol
	control
	space
)

var classNames = map[string]class{"N": number, "L": letter, "Z": separator, "M": mark, "P": punct, "S": symbol,
	"C": control, "space": space}

// table holds the classes by pages of 256 characters.
type table struct {
	pages       [(utf8.MaxRune + 1) >> 8]*[256]class
	lower, base map[rune]rune
}

var chars = sync.OnceValue(func() *table {
	t := &table{lower: map[rune]rune{}, base: map[rune]rune{}}
	for i := range t.pages {
		t.pages[i] = new([256]class)
	}
	for line := range strings.Lines(charsText) {
		line = strings.TrimSuffix(line, "\n")
		if name, ranges, ok := strings.Cut(line, "\t"); ok {
			t.add(classNames[name], ranges)
			continue
		}
		var name string
		var first, n, step, target, distance rune
		if _, err := fmt.Sscanf(line, "%s %x %d %d %x %d", &name, &first, &n, &step, &target, &distance); err != nil {
			panic(fmt.Sprintf("vocab: chars.txt: %q: %v", line, err))
		}
		m := t.lower
		if name == "base" {
			m = t.base
		}
		for i := range n {
			m[first+i*step] = target + i*distance
		}
	}
	return t
})

func (t *table) add(c class, ranges string) {
	next := rune(0)
	for field := range strings.FieldsSeq(ranges) {
		gap, length, _ := strings.Cut(field, "-")
		lo := next + base36(gap)
		hi := lo
		if length != "" {
			hi += base36(length)
		}
		for r := lo; r <= hi; r++ {
			t.pages[r>>8][r&0xFF] |= c
		}
		next = hi + 1
	}
}

func base36(s string) rune {
	n, err := strconv.ParseUint(s, 36, 32)
	if err != nil {
		panic(fmt.Sprintf("vocab: chars.txt: %v", err))
	}
	return rune(n)
}

func (t *table) of(r rune) class { return t.pages[r>>8][r&0xFF] }

func (t *table) toLower(r rune) rune {
	if l, ok := t.lower[r]; ok {
		return l
	}
	return r
}

// next returns the first character of s and its length in bytes; s is not empty. A
// byte that does not begin a character is U+FFFD. Surrogates count as characters, as
// in the runtime.
func next(s string) (rune, int) {
	if s[0] < utf8.RuneSelf {
		return rune(s[0]), 1
	}
	r, n := utf8.DecodeRuneInString(s)
	if n == 1 && len(s) >= 3 && s[0] == 0xED && s[1]&0xE0 == 0xA0 && s[2]&0xC0 == 0x80 {
		return 0xD000 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, n
}

// appendRune is utf8.AppendRune, for surrogates too.
func appendRune(b []byte, r rune) []byte {
	if 0xD800 <= r && r < 0xE000 {
		return append(b, 0xED, 0x80|byte(r>>6&0x3F), 0x80|byte(r&0x3F))
	}
	return utf8.AppendRune(b, r)
}

// whole returns s with U+FFFD in place of bytes that do not begin a character.
func whole(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	b := make([]byte, 0, len(s)+len(s)/2)
	for len(s) > 0 {
		r, n := next(s)
		b = appendRune(b, r)
		s = s[n:]
	}
	return string(b)
}

// isHan reports whether the runtime treats r as a Han character.
func isHan(r rune) bool {
	return 0x4E00 <= r && r <= 0x9FFF || 0x3400 <= r && r <= 0x4DBF || 0x20000 <= r && r <= 0x2A6DF ||
		0x2A700 <= r && r <= 0x2EBEF || 0xF900 <= r && r <= 0xFAFF || 0x2F800 <= r && r <= 0x2FA1F
}

// composed returns the canonical composition of a text.
func composed(text string) string {
	ascii := true
	for i := range len(text) {
		ascii = ascii && text[i] < 0x80
	}
	if ascii {
		return text
	}
	list := make([]norm.Char, 0, len(text))
	for s := text; len(s) > 0; {
		r, n := next(s)
		list = append(list, norm.Char{R: r})
		s = s[n:]
	}
	b := make([]byte, 0, len(text))
	for _, c := range norm.NFC.Normalize(list) {
		b = appendRune(b, c.R)
	}
	return string(b)
}
