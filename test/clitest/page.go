package clitest

import (
	"regexp"
	"strings"
	"testing"
)

// Section is a part of an HTML page of figures.
type Section struct {
	Scrolls bool
	Head    []string   // of a table
	Rows    [][]string // of a table
	Legend  []string   // of a plot or a grid
}

// Sections reads the parts of a page that a command has written, by their titles.
func Sections(t *testing.T, html string) map[string]Section {
	t.Helper()
	html = strings.ReplaceAll(html, "<wbr>", "")
	texts := func(text, element string) (list []string) {
		for _, m := range regexp.MustCompile(`(?s)<`+element+`[^>]*>(.*?)</`+element[:2]+`>`).FindAllStringSubmatch(
			text, -1) {
			list = append(list, tag.ReplaceAllString(m[1], ""))
		}
		return list
	}
	all := map[string]Section{}
	for _, part := range strings.Split(html, "<section")[1:] {
		_, part, _ = strings.Cut(part, "<h2>")
		title, part, ok := strings.Cut(part, "</h2>")
		if !ok {
			t.Fatalf("a part without a title: %.200s", part)
		}
		s := Section{Scrolls: strings.Contains(part, `class="scroll"`), Head: texts(part, `th scope="col"`),
			Legend: texts(part, "li")}
		_, body, _ := strings.Cut(part, "<tbody>")
		for _, row := range strings.Split(body, "<tr>")[1:] {
			s.Rows = append(s.Rows, append(texts(row, `th scope="row"`), texts(row, "td")...))
		}
		all[title] = s
	}
	return all
}

// Facts returns the names and values of all figures of a page.
func Facts(html string) (names, values []string) {
	head, _, _ := strings.Cut(strings.ReplaceAll(html, "<wbr>", ""), "<main>")
	for _, m := range fact.FindAllStringSubmatch(head, -1) {
		names, values = append(names, m[1]), append(values, m[2])
	}
	return names, values
}

var fact = regexp.MustCompile("<div><dt>(.*?)</dt><dd>(.*?)</dd></div>")

var tag = regexp.MustCompile(`<[^>]*>`)
