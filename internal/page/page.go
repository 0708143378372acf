// Package page writes figures as one HTML page: tables, and plots that are drawn as SVG
// in the page itself. The page refers to nothing outside of it and has no script; its
// policy forbids both to the browser. Whatever text it shows is escaped, and controls and
// marks of direction in it are spelled out: names and metadata are strangers' text.
//
//	page    title, what the figures are of, parts one after the other
//	part    a table, a plot, a grid of coloured cells, or bars: grid.go
//	plot    axes, and series as lines, steps or dots: plot.go
//
// A plot is as wide as its column. Only lines are stretched: labels are text of the page,
// placed by percentages, so that they can be read on a telephone and on a wide screen.
package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Page is what a page shows.
type Page struct {
	Title string
	About []Fact
	Parts []Part
}

// Fact is something that all figures of a page have in common.
type Fact struct{ Name, Value string }

// Part is a Table, a Plot, a Grid or Bars.
type Part interface{ part() }

// Table is rows of figures; the first cell of each names it.
type Table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
	// Words says that cells are text, which may be long, and not figures.
	Words bool
}

func (*Table) part() {}
func (*Plot) part()  {}

//go:embed page.css
var style string

//go:embed page.gohtml
var text string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"shown": shown,
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

// Write writes the page. A Plot without a point that could be shown says so.
func Write(w io.Writer, p *Page) error { return page.Execute(w, p) }

// hidden are characters that are not seen, or change how others are: controls, marks
// of direction, separators of lines.
var hidden = []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp}

// shown returns text with the characters in it that are not seen spelled out, and bytes
// that are none.
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
