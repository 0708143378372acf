// Package page writes figures as one HTML page: tables, and plots that are drawn as SVG in the page itself. The page
// loads nothing from outside and has no script; its policy forbids both to the browser. A table may link to other
// pages. All text is escaped, and controls and marks of direction in it are shown as escapes: names and metadata are
// untrusted text.
//
//	page    title, what the figures are of, parts one after the other
//	part    a table, a plot, a grid of coloured cells, or bars: grid.go
//	plot    axes, and series as lines, steps or dots: plot.go
//
// A plot is as wide as its column. Only lines are stretched: labels are text of the page,
// placed by percentages, so that they can be read on a telephone and on a wide screen.
//
// A table has room on a wide screen, and only one with many columns scrolls; where there is no room, each row becomes
// a name with its figures below it. So figures to compare belong in a table of few columns. Lines break between the
// words of a name, never within a word.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Page is the content of a page.
type Page struct {
	Title string
	About []Fact
	Parts []Part
}

// Fact is something that all figures of a page have in common.
type Fact struct{ Name, Value string }

// Part is a *Table, *Plot, *Grid or *Bars.
type Part interface{ part() }

// Table is rows of figures, with a cell for each of Head; the first one names the row.
// Others may be empty.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
	// Links are addresses of other pages, relative to this one, for the names of rows; "" for none. Nil for none at all.
	Links []string
	// Words is set if cells are text, which may be long, instead of figures.
	Words bool
}

// screenColumns is the number of columns that fit on a screen of 1000 pixels.
const screenColumns = 7

// Scrolls reports whether the table has more columns than a screen has room for.
func (t *Table) Scrolls() bool { return len(t.Head) > screenColumns }

// Link returns the address for the name of a row, "" for none.
func (t *Table) Link(row int) string {
	if row >= len(t.Links) {
		return ""
	}
	return t.Links[row]
}

func (*Table) part() {}
func (*Plot) part()  {}

//go:embed page.css
var style string

//go:embed page.gohtml
var text string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"shown": shown,
	"words": words,
	"style": func() template.CSS { return template.CSS(style) },
	"table": func(p Part) *Table { t, _ := p.(*Table); return t },
	"grid":  func(p Part) *Grid { g, _ := p.(*Grid); return g },
	"bars":  func(p Part) *Bars { b, _ := p.(*Bars); return b },
	"drawn": func(p Part) *drawing {
		if p, ok := p.(*Plot); ok {
			return p.draw()
		}
		return nil
	},
}).Parse(text))

// Write writes the page. A Plot without points has a line of text instead.
func Write(w io.Writer, p *Page) error { return page.Execute(w, p) }

// lineWord is the largest number of characters of a name that stay on one line.
const lineWord = 32

// words returns text whose lines may break between the words of a name: before a word that follows a dot, a slash or
// an underscore, but not in a version or a type such as Q4_K_M. Browsers break after hyphens and spaces themselves.
func words(text string) template.HTML {
	var b strings.Builder
	text = shown(text)
	from, long := 0, 0
	before := ' '
	for i, r := range text {
		long++
		between := strings.ContainsRune("/._", before) && unicode.IsLower(r)
		switch {
		case strings.ContainsRune(" \n-", r):
			long = 0
		case between || long > lineWord:
			b.WriteString(template.HTMLEscapeString(text[from:i]) + "<wbr>")
			from, long = i, 1
		}
		before = r
	}
	b.WriteString(template.HTMLEscapeString(text[from:]))
	return template.HTML(b.String())
}

// Names returns short names of models by their paths or addresses: the last element, with as
// many of those before it as distinguish paths that differ.
func Names(paths ...string) []string {
	elements := make([][]string, len(paths))
	for i, path := range paths {
		elements[i] = strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	}
	names := make([]string, len(paths))
	for i, own := range elements {
		names[i] = paths[i]
		for n := 1; n <= len(own); n++ {
			end := func(path []string) string { return strings.Join(path[max(0, len(path)-n):], "/") }
			names[i] = end(own)
			if !slices.ContainsFunc(elements, func(other []string) bool {
				return end(other) == names[i] &&
					!slices.Equal(other, own)
			}) {
				break
			}
		}
	}
	return names
}

// hidden are invisible characters, and those that change the display of others: controls, marks of direction,
// separators of lines.
var hidden = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp}

// shown returns text with escapes for hidden characters and for bytes that are not UTF-8.
func shown(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case unicode.In(r, hidden...):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}
	return b.String()
}
