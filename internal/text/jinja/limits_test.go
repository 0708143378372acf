package jinja

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ggforge/fault"
	"ggforge/internal/text/pyjson"
)

// hostile are templates that need more than a limit.
var hostile = map[string]string{
	"endless macro":      `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`,
	"macros in turn":     `{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}`,
	"endless caller":     `{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}`,
	"endless loop":       `{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`,
	"large range":        `{% for x in range(1000000000) %}x{% endfor %}`,
	"nested ranges":      `{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}`,
	"doubled text":       `{% set n = namespace(s="x") %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}`,
	"doubled list":       `{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}`,
	"long text":          `{{ "x" * 1000000000000 }}`,
	"long list":          `{{ [1] * 1000000000000 }}`,
	"long output":        `{% set s = "x" * 1000000 %}{% for i in range(999) %}{{ s }}{% endfor %}`,
	"wide format":        `{{ "%1000000000d" % 1 }}`,
	"wide format method": `{{ "{:>100000000000}".format(1) }}`,
	"precise format":     `{{ "%.100000000f" % 1 }}`,
	"wide center":        `{{ "x" | center(100000000000) }}`,
	"wide indent":        `{{ ("a\n" * 9999) | indent(1000000) }}`,
	"wide JSON":          `{{ [[[[[[1]]]]]] | tojson(indent=100000000) }}`,
	"replaced":           `{% set s = "x" * 99999 %}{{ s | replace("x", s) }}`,
	"replaced nothing":   `{% set s = "x" * 99999 %}{{ s.replace("", s) }}`,
	"joined":             `{% set s = "x" * 99999 %}{{ s.join(s) }}`,
	"nested list":        `{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l }}`,
	"nested list JSON":   `{% set n = namespace(l=[]) %}{% for i in range(99999) %}{% set n.l = [n.l] %}{% endfor %}{{ n.l | tojson }}`,
	"nested lists equal": `{% set n = namespace(l=[], m=[]) %}{% for i in range(99999) %}{% set n.l = [n.l] %}{% set n.m = [n.m] %}{% endfor %}{{ n.l == n.m }}`,
	"nested key": `{% set n = namespace(l=(1,)) %}{% for i in range(99999) %}{% set n.l = (n.l,) %}{% endfor %}` +
		`{{ {n.l: 1} }}`,
	"power":           `{{ 10 ** 1000000000 }}`,
	"product":         `{{ 9223372036854775807 * 2 }}`,
	"nested brackets": "{{ " + strings.Repeat("(", 100000) + strings.Repeat(")", 100000) + " }}",
	"nested not":      "{{ " + strings.Repeat("not ", 100000) + "x }}",
	"nested minus":    "{{ " + strings.Repeat("-", 100000) + "1 }}",
	"nested else":     "{{ " + strings.Repeat("1 if 0 else ", 50000) + "1 }}",
	"nested ifs":      strings.Repeat("{% if 1 %}", 50000),
	"nested targets":  "{% set " + strings.Repeat("(", 100000) + "a" + strings.Repeat(",)", 100000) + " = 1 %}",
	"long chain":      "{{ 1" + strings.Repeat(" + 1", 200000) + " }}",
	"long path":       "{{ x" + strings.Repeat(".x", 400000) + " }}",
	"many filters":    `{{ "x"` + strings.Repeat("|safe", 100000) + " }}",
	"long source":     strings.Repeat("x", MaxSource+1),
	"sorted":          `{% set l = range(99999) | list %}{% for i in l %}{% set m = l | sort %}{% endfor %}`,
	"sums":            `{% set l = range(99999) | list %}{% for i in l %}{% set m = l | sum %}{% endfor %}`,
	"copies":          `{% set l = range(99999) | list %}{% for i in l %}{% set m = l[1:] %}{% endfor %}`,
	"searches":        `{% set s = "x" * 9999999 %}{% for i in range(99999) %}{% set m = "y" in s %}{% endfor %}`,
	"lengths":         `{% set s = "x" * 9999999 %}{% for i in range(99999) %}{% set m = s | length %}{% endfor %}`,
	"strips":          `{% set s = " " * 9999999 %}{% for i in range(99999) %}{% set m = s.strip() %}{% endfor %}`,
	"items":           `{% set s = "ä" * 999999 %}{% for i in range(99999) %}{% set m = s[999998] %}{% endfor %}`,
	"dates":           `{% for i in range(99999) %}{{ strftime_now("%A" * 9999) }}{% endfor %}`,
}

// TestLimits renders templates that need too much: they end with an error that is a limit, soon.
func TestLimits(t *testing.T) {
	for name, source := range hostile {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := render(t, source, pyjson.NewObject())
			var e *Error
			if !errors.As(err, &e) || e.Kind != Limit && name != "long path" {
				t.Fatalf("got %v, want a limit", err)
			}
			if e.Kind == Limit && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%v is not unsupported", err)
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestContext ends a rendering by its context.
func TestContext(t *testing.T) {
	tm, err := Parse(hostile["nested ranges"])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tm.Render(ctx, nil, noon); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// TestErrors looks at the texts of errors.
func TestErrors(t *testing.T) {
	for source, want := range map[string]string{
		"a\nb\n{{ x.y.z }}":            `line 3: "x" is undefined`,
		"{% if x %}\n\n":               "line 2: the end of the template, want {% endif %} for {% if %}",
		"{% for x in y %}{% endif %}":  `line 1: unknown tag "endif", want {% endfor %} for {% for %}`,
		"\n{{ 1 | nope }}":             `line 2: no filter named "nope"`,
		"{{ raise_exception('a b') }}": "line 1: a b",
		"{{ 'x' + 1 }}":                `line 1: the text "x" + the int 1, want two numbers or two texts`,
		"{{ (1 }}":                     `line 1: unexpected "}", want ")"`,
	} {
		_, err := render(t, source, pyjson.NewObject())
		if err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", source, err, want)
		}
	}
}

// TestLongNames looks at errors about names of any length: they show the beginning.
func TestLongNames(t *testing.T) {
	name := strings.Repeat("n", 5000)
	for _, source := range []string{
		"{{ 1 | NAME }}", "{{ 1 is NAME }}", "{% NAME %}", "{% if x %}{% NAME %}{% endif %}", "{{ NAME.x }}", "{{ 'a'.NAME.x }}",
		"{{ (1 NAME }}", "{{ 'a'.__NAME }}{{ 'a'.__NAME.x }}", "{% set true.NAME = 1 %}", "{% set NAME.x = 1 %}", "{% set 1NAME = 1 %}",
		"{% macro NAME(a, a) %}{% endmacro %}", "{% macro m(NAME, NAME) %}{% endmacro %}", "{% macro m(a=1, NAME) %}{% endmacro %}",
		"{% macro NAME() %}{% endmacro %}{{ NAME(1) }}", "{% macro m() %}{% endmacro %}{{ m(NAME=1) }}",
		"{% macro m(NAME) %}{{ NAME.x }}{% endmacro %}{{ m() }}", "{% macro NAME() %}{{ NAME() }}{% endmacro %}{{ NAME() }}",
		"{{ range(NAME=1) }}", "{{ range(1, NAME=1, NAME=2) }}", "{{ raise_exception(NAME=1) }}", "{{ 'a'.upper(NAME=1) }}",
		"{{ [1] | join(NAME=1) }}", "{{ 1 | tojson(NAME=1) }}", "{{ dict(NAME=1, **{'NAME': 1}) }}", "{{ 1 | dictsort(by='NAME') }}",
		"{{ {}['NAME'].x }}", "{{ 1 + 'NAME' }}", "{{ '%(NAME)s' | format }}", "{{ '{NAME}'.format() }}", "{{ 'a'.NAME() }}",
		"{{ '%" + strings.Repeat("9", 5000) + "d' | format(1) }}", "{{ " + strings.Repeat("9", 5000) + " }}",
	} {
		source := strings.ReplaceAll(source, "NAME", name)
		if _, err := render(t, source, pyjson.NewObject()); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.80s…: %.600v", source, err)
		}
	}
}

// TestGenerated looks at the ranges of generation tags.
func TestGenerated(t *testing.T) {
	tm, err := Parse("a{% generation %}bc{% endgeneration %}d{% generation %}é{% endgeneration %}")
	if err != nil {
		t.Fatal(err)
	}
	res, err := tm.Render(t.Context(), nil, noon)
	if err != nil || len(res.Generated) != 2 || res.Generated[0] != [2]int{1, 3} || res.Generated[1] != [2]int{4, 6} {
		t.Errorf("got %v, %v", res, err)
	}
}

// FuzzRender parses and renders templates: no panic, and errors with a line, of bounded length.
func FuzzRender(f *testing.F) {
	vars, cases := goldens(f)
	for _, c := range cases {
		f.Add(c.(*pyjson.Object).Get("source").(string))
	}
	for _, name := range []string{"endless macro", "endless loop", "doubled text", "long text", "wide format"} {
		f.Add(hostile[name])
	}
	f.Fuzz(func(t *testing.T, source string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		tm, err := Parse(source)
		if err == nil {
			_, err = tm.Render(ctx, vars, noon)
			u := tm.Uses()
			for _, e := range append(u.Suspicious, u.Unknown...) {
				if e.Line < 1 || len(e.Text) > 1000 {
					t.Errorf("%#v", e)
				}
			}
		}
		var e *Error
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && (!errors.As(err, &e) || e.Line < 1 || e.Kind == 0) {
			t.Errorf("error %#v without a line", err)
		}
		if err != nil && len(err.Error()) > 2*maxRaised {
			t.Errorf("an error of %d bytes: %.200s", len(err.Error()), err)
		}
	})
}
