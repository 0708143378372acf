package pyjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParse(t *testing.T) {
	num := func(s string) any { return json.Number(s) }
	for text, want := range map[string]any{
		"null":                                 nil,
		" true\n":                              true,
		"-0.5e+3":                              num("-0.5e+3"),
		"NaN":                                  num("NaN"),
		"-Infinity":                            num("-Infinity"),
		"123456789012345678901":                num("123456789012345678901"),
		`"a\"\u00e9\n\ud83d\ude00"`:            "a\"é\n😀",
		`"\ud800x"`:                            "\xed\xa0\x80x", // an unpaired surrogate is not UTF-8
		`[1, [], {}]`:                          []any{num("1"), []any{}, &Object{Values: map[string]any{}}},
		strings.Repeat("9", MaxDigits):         num(strings.Repeat("9", MaxDigits)),
		strings.Repeat("9", MaxDigits) + "9.0": num(strings.Repeat("9", MaxDigits) + "9.0"),
		`{"b": 1, "a": 2, "b": "x"}`: &Object{Names: []string{"b", "a"},
			Values: map[string]any{"b": "x", "a": num("2")}},
	} {
		got, err := Parse([]byte(text))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v %v, want %#v", text, got, err, want)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for text, offset := range map[string]int64{
		"":                       0,
		"{":                      1,
		`{"a" 1}`:                5,
		`{"a": 1,}`:              8,
		"[1 2]":                  3,
		"01":                     1,
		"1.":                     1,
		"+1":                     0,
		"nul":                    0,
		`"a`:                     2,
		"\"a\nb\"":               2,
		`"\x"`:                   1,
		`"\u12"`:                 1,
		"{} {}":                  3,
		"\"\xff\"":               1,
		"\ufeff{}":               0,
		strings.Repeat("[", 901): 900,
		"[-" + strings.Repeat("1", MaxDigits+1) + "]": 1,
	} {
		v, err := Parse([]byte(text))
		var bad *SyntaxError
		if !errors.As(err, &bad) || bad.Offset != offset {
			t.Errorf("%.20q: %v %v, want an error at %d", text, v, err, offset)
		}
	}
}

func TestTooManyValues(t *testing.T) {
	for text, ok := range map[string]bool{"[0,0]": true, `{"a":0,"b":0}`: true, "[0,0,0]": false, "[[],[],{}]": false,
		"[[[0]]]": false} {
		if _, err := parse([]byte(text), 3); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestMap(t *testing.T) {
	v, err := Parse([]byte(`{"a": [{"b": 1}], "c": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": []any{map[string]any{"b": json.Number("1")}}, "c": map[string]any{}}
	if got := v.(*Object).Map(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

func TestTruthyAndInteger(t *testing.T) {
	for text, want := range map[string]bool{
		"null": false, "true": true, "0": false, "-0.0": false, "0.5": true, "NaN": true, `""`: false, `"0"`: true,
		"[]": false, "[0]": true, "{}": false, `{"a":0}`: true,
	} {
		v, err := Parse([]byte(text))
		if err != nil || Truthy(v) != want {
			t.Errorf("%s: %v %v", text, Truthy(v), err)
		}
	}
	for text, want := range map[string]string{"12": "12", "-3": "-3", "true": "1", "false": "0", "1.0": "", "1e2": "",
		`"1"`: "", "null": ""} {
		v, err := Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := Integer(v); ok != (want != "") || ok && n.String() != want {
			t.Errorf("%s: %v %v", text, n, ok)
		}
	}
}

// FuzzParse compares Parse with encoding/json, which accepts a subset: texts that it accepts are accepted here, and
// accepted values read back.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a": [1, 2.5, null, "x\ud800"]}`, `[NaN, -Infinity]`, `"\u0000"`, "1e5",
		`{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := Parse(data)
		var bad *SyntaxError
		if err != nil && (!errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > int64(len(data))) {
			t.Fatalf("error %v", err)
		}
		if json.Valid(data) && utf8.Valid(data) && err != nil && !strings.Contains(err.Error(), "nested") &&
			!strings.Contains(err.Error(), "digits") {
			t.Fatalf("encoding/json takes it: %v", err)
		}
		Truthy(v)
		Describe(v)
		if o, ok := v.(*Object); ok && len(o.Map()) != len(o.Names) {
			t.Fatal("members lost")
		}
	})
}
