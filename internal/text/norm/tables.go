package norm

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:generate sh -c "cd _generate && go run . -o .."

// classes.txt has a line for each combining class: the class (decimal), a tab, and the ranges of its characters
// (hexadecimal), for example "9\t94D 9CD 1B44 A806-A807".
//
//go:embed classes.txt
var classesText string

// mappings.txt has a line for each character with a decomposition, except Hangul syllables, in hexadecimal:
//
//	C5 = 41 30A        primary composite: the pair composes to it
//	212B > C5          canonical decomposition that is not composed again
//	AA ~ 61            compatibility decomposition
//
// Parts may have decompositions themselves.
//
//go:embed mappings.txt
var mappingsText string

// properties are the properties of a character for normal forms.
type properties struct {
	class                    uint8  // canonical combining class
	second                   bool   // the second part of a primary composite
	canonical, compatibility []rune // full decompositions; nil: none
}

const (
	pageBits = 7
	pageSize = 1 << pageBits
)

// data holds the properties in pages of neighbouring characters.
type data struct {
	pages [(utf8.MaxRune + 1) / pageSize]uint8 // index in rows; 0: characters without properties
	rows  [][pageSize]uint16                   // index in props; 0: none
	props []properties
	pairs map[[2]rune]rune // primary composites by their parts
}

var tables = sync.OnceValue(func() *data {
	d := &data{rows: make([][pageSize]uint16, 1), props: make([]properties, 1), pairs: map[[2]rune]rune{}}
	for line := range strings.Lines(classesText) {
		class, ranges, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.ParseUint(class, 10, 8)
		if err != nil {
			panic(fmt.Sprintf("norm: classes.txt: %v", err))
		}
		for r := range strings.FieldsSeq(ranges) {
			first, last, ok := strings.Cut(r, "-")
			if !ok {
				last = first
			}
			for c := char(first); c <= char(last); c++ {
				d.at(c).class = uint8(n)
			}
		}
	}
	type mapping struct {
		canonical bool
		parts     []rune
	}
	mappings := make(map[rune]mapping, 6000)
	for line := range strings.Lines(mappingsText) {
		f := strings.Fields(line)
		m := mapping{canonical: f[1] != "~"}
		for _, part := range f[2:] {
			m.parts = append(m.parts, char(part))
		}
		c := char(f[0])
		mappings[c] = m
		if f[1] == "=" {
			d.pairs[[2]rune(m.parts)] = c
			d.at(m.parts[1]).second = true
		}
	}
	var expand func(out []rune, c rune, compatibility bool) []rune
	expand = func(out []rune, c rune, compatibility bool) []rune {
		m, ok := mappings[c]
		if !ok || !m.canonical && !compatibility {
			return append(out, c)
		}
		for _, part := range m.parts {
			out = expand(out, part, compatibility)
		}
		return out
	}
	for c, m := range mappings {
		p := d.at(c)
		p.compatibility = expand(nil, c, true)
		if m.canonical {
			p.canonical = expand(nil, c, false)
		}
	}
	return d
})

// char parses a character in hexadecimal.
func char(s string) rune {
	n, err := strconv.ParseUint(s, 16, 21)
	if err != nil {
		panic(fmt.Sprintf("norm: tables: %v", err))
	}
	return rune(n)
}

// at returns the properties of c, to be set.
func (d *data) at(c rune) *properties {
	page := &d.pages[c>>pageBits]
	if *page == 0 {
		*page = uint8(len(d.rows))
		d.rows = append(d.rows, [pageSize]uint16{})
	}
	i := &d.rows[*page][c&(pageSize-1)]
	if *i == 0 {
		*i = uint16(len(d.props))
		d.props = append(d.props, properties{})
	}
	return &d.props[*i]
}

// lookup returns the properties of c, which may be a surrogate or above U+10FFFF.
func (d *data) lookup(c rune) *properties {
	if uint32(c) > utf8.MaxRune {
		return &d.props[0]
	}
	return &d.props[d.rows[d.pages[c>>pageBits]][c&(pageSize-1)]]
}
