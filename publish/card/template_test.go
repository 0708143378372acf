package card

import (
	"errors"
	"strings"
	"testing"

	"ggforge/fault"
)

// TestNestedTemplate executes a template with as many nested conditions as its size permits.
func TestNestedTemplate(t *testing.T) {
	n := maxTemplate / len("{{if 1}}{{end}}")
	c := &Card{template: strings.Repeat("{{if 1}}", n) + strings.Repeat("{{end}}", n)}
	if _, err := c.filled(); err != nil {
		t.Error(err)
	}
}

// FuzzTemplate executes templates of cards: each ends, with a text of bounded size or an error.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{ours, `{{range .Files}}{{.Name}}{{end}}`, `{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		`{{range $i, $x := .Files}}{{range $.Files}}{{printf "%9999d" $i}}{{end}}{{end}}`, `{{mark "x"}}{{unmark "x"}}`,
		`{{$x := "a"}}{{range .Files}}{{$x = print $x $x}}{{end}}`, `{{with .Prompt}}{{html . | js | urlquery}}{{end}}`, `{{`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := &Card{template: text, Files: make([]File, 3)}
		got, err := c.filled()
		if err != nil && !errors.Is(err, fault.Usage) {
			t.Errorf("an error of no kind: %v", err)
		}
		if len(got) > maxCard {
			t.Errorf("%d bytes", len(got))
		}
	})
}
