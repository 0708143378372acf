package jinja

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"ggforge/internal/text/pyjson"
)

func TestUses(t *testing.T) {
	for source, want := range map[string]string{
		"{{ ''.__class__.__mro__ }}":                                    "line 1: the attribute \"__mro__\"",
		"a\n{{ x['__globals__'] }}":                                     "line 2: the text \"__globals__\"",
		"{{ x | attr('__init__') }}":                                    "line 1: the text \"__init__\"",
		"{% if x %}{{ [y for] if false else 1 }}{% endif %}":            "error",
		"{% macro m(a=lipsum) %}{% endmacro %}":                         "line 1: the name \"lipsum\"",
		"{% for x in range(1000000000) %}{% endfor %}":                  "line 1: a range to 1000000000",
		"{% if false %}\n{% include '/etc/passwd' %}{% endif %}":        "line 2: {% include %}",
		"{% set x %}{{ self._TemplateReference__context }}{% endset %}": "line 1: the attribute",
		"{{ x['__sentinel__'] }}{{ __x__ }}":                            "",
		"{{ x | map(attribute='a.__class__') }}":                        "line 1: the text \"a.__class__\"",
		"{{ messages[0].role }}{{ '__' ~ x }}{{ range(10) }}":           "",
	} {
		tm, err := Parse(source)
		if err != nil {
			if want != "error" {
				t.Errorf("%q: %v", source, err)
			}
			continue
		}
		got := ""
		if list := tm.Uses().Suspicious; len(list) > 0 {
			got = list[0].Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
	_, cases := goldens(t)
	for _, c := range cases {
		source := c.(*pyjson.Object).Get("source").(string)
		tm, err := Parse(source)
		if err == nil && !strings.Contains(source, "_") && !strings.Contains(source, "self") && !strings.Contains(source, "range") &&
			!strings.Contains(source, "{% ") && len(tm.Uses().Suspicious) > 0 {
			t.Errorf("%q: %v", source, tm.Uses().Suspicious[0])
		}
	}
	const names = "{% macro m(a, b=c) %}{{ a }}{{ caller() }}{% endmacro %}\n{% for (x, y), z in items %}{{ x + y + z + loop.index }}" +
		"{% endfor %}{% set s, u = v %}{% set n = namespace(k=0) %}{% set n.k = 1 %}\n{{ s ~ u ~ m(1) ~ range(2) }}" +
		"{% with w = 1 %}{{ w }}{% endwith %}{% if f is defined and g is not undefined %}{{ f ~ g ~ (h | default(1)) ~ h }}" +
		"{% endif %}{% if false %}{{ e | from_json }}\n{{ x is sunny }}{% endif %}{{ v }}"
	tm, err := Parse(names)
	if err != nil {
		t.Fatal(err)
	}
	u := tm.Uses()
	if want := (map[string]int{"c": 1, "items": 2, "v": 2, "e": 3}); !maps.Equal(u.Names, want) {
		t.Errorf("names are %v, want %v", u.Names, want)
	}
	if got := fmt.Sprint(u.Unknown); got != `[line 3: no filter named "from_json" line 4: no test named "sunny"]` || len(u.Suspicious) > 0 {
		t.Errorf("got %s, %v", got, u.Suspicious)
	}
	if e := Words("a\n{{ x.__class__ | nope }}"); e == nil || e.Error() != `line 2: an attribute of Python's objects` {
		t.Errorf("got %v", e)
	}
	if e := Words("a __ b _x_ |"); e != nil {
		t.Errorf("got %v", e)
	}
}
