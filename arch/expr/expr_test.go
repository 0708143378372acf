package expr_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ggforge/arch/expr"
)

// keys are the values of tests: one number, or a list with one for each layer.
var keys = map[string][]expr.Value{
	"embd": {expr.Int(64)}, "head": {expr.Int(4)}, "list": {expr.Int(3), expr.Int(9), expr.Int(5)},
	"big": {expr.Int(1 << 62)}, "zero": {expr.Int(0)}, "neg": {expr.Int(-7)}, "half": {expr.Float(0.5)},
	"flag": {expr.Bool(true)}, "off": {expr.Bool(false)},
}

// names are names of tests; "i" is the layer.
var names = map[string]string{"n_embd": "@embd", "n_head": "@head", "n_none": "@none", "max": "41", "?free": "77"}

// env returns the environment of layer 2.
func env() *expr.Env {
	const layer = 2
	env := new(expr.Env)
	env.Key = func(op byte, key string) (expr.Value, bool) {
		values, ok := keys[key]
		if !ok {
			return expr.Value{}, false
		}
		env.Use(key)
		switch {
		case op == '#':
			return expr.Int(int64(len(values))), true
		case len(values) == 1:
			return values[0], true
		case op == '^':
			return slices.MaxFunc(values, func(a, b expr.Value) int { return int(a.Float() - b.Float()) }), true
		}
		return values[layer], true
	}
	env.Name = func(name string) (expr.Value, bool) {
		if name == "i" {
			return expr.Int(layer), true
		}
		text, ok := names[name]
		if !ok {
			return expr.Value{}, false
		}
		return expr.Must(expr.Parse(text)).Eval(env)
	}
	return env
}

var most = expr.Int(math.MaxInt64)

func TestEval(t *testing.T) {
	for text, want := range map[string]expr.Value{
		// precedence, from the left
		"7":                 expr.Int(7),
		"2 + 3 * 4":         expr.Int(14),
		"(2 + 3) * 4":       expr.Int(20),
		"2 * 3 + 4":         expr.Int(10),
		"10 - 2 - 3":        expr.Int(5),
		"10 - (2 - 3)":      expr.Int(11),
		"48 / 4 / 3":        expr.Int(4),
		"3 * 10 mod 4":      expr.Int(2),
		"10 mod 4 * 3":      expr.Int(6),
		"1 or 2 + 3":        expr.Int(1),
		"@none or 2 + 3":    expr.Int(5),
		"1 + (@none or 2)":  expr.Int(3),
		"@none + 1 or 7":    expr.Int(7),
		"@none or @no or 9": expr.Int(9),

		// integers and floats
		"7 / 2":           expr.Int(3),
		"7 / 2 * 2":       expr.Int(6),
		"7 / 2.0":         expr.Float(3.5),
		"7.0 / 2 * 2":     expr.Float(7),
		"@neg / 2":        expr.Int(-3),
		"@neg mod 4":      expr.Int(-3),
		"7.5 mod 2":       expr.Float(1.5),
		"@head * 1.0":     expr.Float(4),
		"@head + @half":   expr.Float(4.5),
		"@head - @half":   expr.Float(3.5),
		"0.25":            expr.Float(0.25),
		"max(2, 3 * 4)":   expr.Int(12),
		"max(1, @half)":   expr.Float(1),
		"sqrt(@embd)":     expr.Float(8),
		"1 / sqrt(@embd)": expr.Float(0.125),
		"f32(0.1)":        expr.Float(float64(float32(0.1))),
		"f32(3)":          expr.Float(3),

		// saturation, division by zero
		"@big + @big":             most,
		"@big * 2":                most,
		"@big * @big":             most,
		"9223372036854775807 + 1": most,
		"@neg * 3":                expr.Int(-21),
		"@neg * @big":             expr.Int(math.MinInt64),
		"@neg * @big - 1":         expr.Int(math.MinInt64),
		"0 - @neg * @big":         most,
		"@embd / 0":               expr.Int(0),
		"@embd mod 0":             expr.Int(0),
		"1.5 / 0":                 expr.Float(0),
		"1.5 mod 0":               expr.Float(0),
		"1 / @zero * @big":        expr.Int(0),

		// keys and names
		"@embd":           expr.Int(64),
		"@list":           expr.Int(5),
		"^list":           expr.Int(9),
		"#list":           expr.Int(3),
		"@flag":           expr.Int(1),
		"@off":            expr.Int(0),
		"n_embd / n_head": expr.Int(16),
		"n_none or i":     expr.Int(2),
		"max + 1":         expr.Int(42),
		"?free":           expr.Int(77),

		// conditions
		"if(i = 2, 3, 4)":                         expr.Int(3),
		"if(i != 2, 3, 4)":                        expr.Int(4),
		"if(@flag, 3, 4)":                         expr.Int(3),
		"if(@off, 3, 4)":                          expr.Int(4),
		"if(@none, 3, 4)":                         expr.Int(4),
		"if(@none = 1, 3, 4)":                     expr.Int(4),
		"if(@embd = 64.0, 3, 4)":                  expr.Int(3),
		"if(2 <= i and i < 3, 3, 4)":              expr.Int(3),
		"if(i < 2 and i <= 3, 3, 4)":              expr.Int(4),
		"if(i = 1, @none, 4)":                     expr.Int(4),
		"if(@flag, if(@off, 1, 2), 3) + 1":        expr.Int(3),
		"@none or if(i mod 4 = 2, @head, @embd)":  expr.Int(4),
		"(@none or 0) + (@off or 5) + (@half)":    expr.Float(0.5),
		"if((@none or 1) != 0, @head, @embd) * 2": expr.Int(8),
	} {
		e, err := expr.Parse(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, ok := e.Eval(env()); !ok || got != want {
			t.Errorf("%s: %v, %v, want %v", text, got, ok, want)
		}
	}
}

// An expression without a value has a missing key that decides it.
func TestMissing(t *testing.T) {
	for _, text := range []string{"@none", "^none", "#none", "n_none", "unknown", "@embd + @none", "@none * 0",
		"sqrt(@none)", "f32(@none)", "max(1, @none)", "@none or n_none", "if(i = 2, @none, 4)", "(@none)"} {
		if v, ok := expr.Must(expr.Parse(text)).Eval(env()); ok {
			t.Errorf("%s: %v, want no value", text, v)
		}
	}
}

func TestHolds(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "0": false, "0.0": false, "@half": true, "@off": false, "@none": false, "@none or 1": true,
		"@none = 0": false, "@none != 0": false, "0 < @none": false, "@none <= @none": false,
		"i = 2": true, "i != 2": false, "i < 2": false, "i <= 2": true, "2 < i": false, "2 = 2.0": true,
		"@half < 1": true, "1 <= @half": false, "@neg < 0": true,
		"9223372036854775806 < 9223372036854775807": true, // equal as float64
		"i mod 4 = 2 and @embd != 0":                true,
		"i mod 4 = 2 and @embd = 0":                 false,
		"@none = 1 and i = 2":                       false,
		"1 and 1 and 0":                             false,
		"1 + 1 = 4 / 2":                             true,
	} {
		e, err := expr.ParseCond(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := e.Holds(env()); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// Used has each key once, and none of alternatives without a value.
func TestUsed(t *testing.T) {
	for text, want := range map[string]string{
		"7": "", "@embd * @embd": "embd", "@embd + @head": "embd head", "n_head / n_embd": "head embd",
		"@none or @embd": "embd", "@embd + @none or @head": "head", "@embd or @head": "embd",
		"if(@flag, @embd, @head)": "flag embd", "if(@off, @embd, ^list)": "off list", "#list": "list",
		"@head + (@embd + @none or @zero)": "head zero",
	} {
		env := env()
		expr.Must(expr.Parse(text)).Eval(env)
		if got := strings.Join(env.Used, " "); got != want {
			t.Errorf("%s: used %q, want %q", text, got, want)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"": "at the end", "1 +": "at the end", "@": `want a name, found ""`, "@ + 1": `want a name, found "+"`,
		"?": "want a name", "^(1)": "want a name", "(1": `want ")", found ""`, "1)": `want "", found ")"`,
		"1 2": `found "2"`, "1.2.3": `"1.2.3" is not a number`, "1x": `"1x" is not a number`,
		"1e5": "is not a number", "9223372036854775808": "is not a number", "1 & 2": `found "&"`, "&": `found "&"`,
		"max(1)": `want ",", found ")"`, "max(1, 2, 3)": `want ")", found ","`, "sqrt()": `found ")"`,
		"if(1, 2)": `want ",", found ")"`, "a and b": `found "and"`, "1 = 2": `found "="`, "1 < 2": `found "<"`,
		"or 1": `found "1"`, "1 or": "at the end", "2 ! 3": `found "!"`, "größe": `want "", found`,
	} {
		_, err := expr.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: %v, want one with %q", text, err, want)
		}
	}
	for _, text := range []string{"", "1 = 2 = 3", "1 and", "i =", "i = 1 or", "(1 = 2)", "1 =< 2"} {
		if _, err := expr.ParseCond(text); err == nil {
			t.Errorf("condition %q: no error", text)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("Must returns an expression that does not parse")
		}
	}()
	expr.Must(expr.Parse("("))
}

func TestRefs(t *testing.T) {
	const text = "if(@a = 1 and b, ^c * #d, max(e, ?f)) or sqrt(g) + f32(@h)"
	var got []string
	expr.Must(expr.Parse(text)).Refs(func(op byte, text string) {
		if op != 0 {
			text = string(op) + text
		}
		got = append(got, text)
	})
	if want := "@a b ^c #d e ?f g @h"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	for text, want := range map[string]string{"n_embd": "n_embd", "?mid": "?mid", "(n_ff)": "n_ff"} {
		if name, ok := expr.Must(expr.Parse(text)).Name(); !ok || name != want {
			t.Errorf("%s: name %q, %v", text, name, ok)
		}
	}
	for _, text := range []string{"1", "@n_embd", "n_embd + 1"} {
		if name, ok := expr.Must(expr.Parse(text)).Name(); ok {
			t.Errorf("%s: name %q", text, name)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		v    expr.Value
		n    int64
		fits bool
		zero bool
	}{
		{expr.Int(-3), -3, true, false}, {expr.Int(0), 0, true, true}, {expr.Value{}, 0, true, true},
		{expr.Float(2.9), 2, true, false}, {expr.Float(-2.9), -2, true, false}, {expr.Float(0), 0, true, true},
		{expr.Float(1e19), 0, false, false}, {expr.Float(-1 << 63), math.MinInt64, true, false},
		{expr.Float(math.NaN()), 0, false, false}, {expr.Float(math.Inf(1)), 0, false, false},
		{expr.Bool(true), 1, true, false}, {expr.Bool(false), 0, true, true},
	} {
		if n, fits := c.v.Int(); n != c.n || fits != c.fits || c.v.IsZero() != c.zero {
			t.Errorf("%v: %d, %v, zero %v, want %d, %v, %v", c.v, n, fits, c.v.IsZero(), c.n, c.fits, c.zero)
		}
	}
}

// FuzzParse parses any text and evaluates what it finds: an expression is also a condition, with the same value.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"@attention.key_length or n_embd / n_head", "if(i mod 4 = 3 and @flag, ^list, #list)",
		"f32(1.4) / f32(sqrt(n_embd))", "max(?free, @big * @big) - 9223372036854775807", "((((1", "1 = 2", "@ or"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 { // texts are those of the program: nesting has no limit
			return
		}
		c, err := expr.ParseCond(text)
		if err == nil {
			c.Holds(env())
			c.Refs(func(byte, string) {})
		}
		e, errExpr := expr.Parse(text)
		if errExpr != nil {
			return
		}
		if err != nil {
			t.Fatalf("%q is an expression, but no condition: %v", text, err)
		}
		v, ok := e.Eval(env())
		w, okCond := c.Eval(env())
		if fmt.Sprint(v, ok) != fmt.Sprint(w, okCond) {
			t.Errorf("%q is %v, %v, and as a condition %v, %v", text, v, ok, w, okCond)
		}
		if n, fits := v.Int(); ok && fits && math.Abs(float64(n)-v.Float()) >= 1 {
			t.Errorf("%q is %v and %d", text, v.Float(), n)
		}
	})
}
