package jinja

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"ggforge/internal/text/pyjson"
)

// noon is the time of the goldens.
var noon = At(time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC))

// render parses and renders a template.
func render(t *testing.T, source string, vars *pyjson.Object) (string, error) {
	t.Helper()
	tm, err := Parse(source)
	if err != nil {
		return "", err
	}
	res, err := tm.Render(t.Context(), vars, noon)
	return res.Text, err
}

// goldens returns the variables and cases of testdata/golden.json.
func goldens(t testing.TB) (vars *pyjson.Object, cases []any) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := pyjson.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	list := v.([]any)
	return list[0].(*pyjson.Object), list[1:]
}

// TestGolden compares texts with those of transformers, and that errors are where Python has them.
func TestGolden(t *testing.T) {
	vars, cases := goldens(t)
	for _, c := range cases {
		c := c.(*pyjson.Object)
		source := c.Get("source").(string)
		got, err := render(t, source, vars)
		want, ok := c.Lookup("want")
		switch {
		case !ok && err == nil:
			t.Errorf("%s\ngot  %q\nwant the error %v", source, got, c.Get("error"))
		case ok && err != nil:
			t.Errorf("%s\ngot the error %v\nwant %q", source, err, want)
		case ok && got != want:
			t.Errorf("%s\ngot  %q\nwant %q", source, got, want)
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Line > 1+strings.Count(source, "\n")) {
			t.Errorf("%s\nerror %#v without a line", source, err)
		}
	}
}
