package torch

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/checkpoint/torch/torchfiletest"
)

func nestedValues() map[string]any {
	vector := torchfiletest.Tensor{DType: safetensors.F32, Shape: []int64{2}, Data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	return map[string]any{"head": map[string]any{"q.weight": vector, "k.weight": vector, "tied": true},
		"head_dim": int64(256), "temperature": 1.25,
		"base": nil, "holdout": []any{"a", int64(-1), []any{}}, "mask": vector}
}

// record has a tensor and values of every plain kind.
func record() *torchfiletest.Pickle {
	p := start().Op('}').Op('(').Str("id").Int(7).Str("name").Str("n").Str("none").Op('N').Str("yes").Op(0x88)
	p.Str("half").Op('G', 0x3f, 0xe0, 0, 0, 0, 0, 0, 0)
	return tensorOf(p.Str("w"), 0, []int64{4}, []int64{1}).Op('u').Op('.')
}

func TestRecord(t *testing.T) {
	data := torchfiletest.Zip(record().Bytes(), []string{"0"}, map[string][]byte{"0": make([]byte, 16)})
	f, err := ParseNested("x", data)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]any{"id": int64(7), "name": "n", "none": nil, "yes": true,
		"half": 0.5}; !reflect.DeepEqual(f.Values(), want) || len(f.Tensors()) != 1 || f.Tensors()[0].Name != "w" {
		t.Errorf("%v, %d tensors; want %v and one", f.Values(), len(f.Tensors()), want)
	}
	if _, err := Parse("x", data); !errors.Is(err, ErrUnsupported) ||
		!strings.Contains(err.Error(), `"id" is an integer, want a tensor`) {
		t.Errorf("as a dict of tensors: %v", err)
	}
}

// TestNested checks the names of nested tensors, and the other values.
func TestNested(t *testing.T) {
	data := torchfiletest.EncodeNested(nestedValues())
	f, err := ParseNested("x", data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range f.Tensors() {
		s := &f.Tensors()[i]
		names = append(names, s.Name)
		if !bytes.Equal(s.Data(), []byte{1, 2, 3, 4, 5, 6, 7, 8}) {
			t.Errorf("%s: % x", s.Name, s.Data())
		}
	}
	if got, want := strings.Join(names, " "), "head/k.weight head/q.weight mask"; got != want {
		t.Errorf("tensors %s, want %s", got, want)
	}
	want := map[string]any{"head": map[string]any{"tied": true}, "head_dim": int64(256), "temperature": 1.25,
		"base": nil, "holdout": []any{"a", int64(-1), []any{}}}
	if !reflect.DeepEqual(f.Values(), want) {
		t.Errorf("values %v, want %v", f.Values(), want)
	}
	if _, err := Parse("x", data); !errors.Is(err, ErrUnsupported) {
		t.Errorf("as a dict of tensors: %v, want unsupported", err)
	}
}

// TestHostileNested checks that ParseNested refuses the pickles that Parse refuses, except those that only
// have other values, and also dicts that become large or hold unsupported values.
func TestHostileNested(t *testing.T) {
	parse := func(p *asm) error {
		_, err := ParseNested("x", torchfiletest.Zip(p.Bytes(), []string{"0"},
			map[string][]byte{"0": make([]byte, 16)}))
		return err
	}
	plain := map[string]bool{"a state inside a dict": true, "a number among tensors": true,
		"a key that is a number": true}
	for _, h := range hostile {
		if err := parse(h.pickle); !plain[h.name] &&
			(err == nil || errors.Is(h.kind, ErrRefused) != errors.Is(err, ErrRefused)) {
			t.Errorf("%s: %v, want %v", h.name, err, h.kind)
		}
	}
	doubled := start().Op('}').Op('q', 0).Op('0') // every dict holds the one before it twice
	for range 14 {
		doubled.Op('}').Str("a").Op('h', 0).Op('s').Str("b").Op('h', 0).Op('s').Op('q', 0).Op('0')
	}
	wide := start().Op('}').Str("l").Op(']').Op('q', 0).Op('(')
	for range 300 {
		wide.Op('N')
	}
	wide.Op('e').Op('s').Str("m").Op(']').Op('(')
	for range 300 {
		wide.Op('h', 0)
	}
	for _, h := range []struct {
		name   string
		pickle *asm
		kind   error
		text   string
	}{
		{"a name of Python in a value", start().Op('}').Str("a").Op('}').Str("b").Global("os",
			"system").Op('s').Op('s').Op('.'), ErrRefused, `names "os.system"`},
		{"a call in a list", start().Op('}').Str("a").Op(']').Global("builtins",
			"eval").Op('(').Str("1").Op('t').Op('R').Op('a').Op('s').Op('.'), ErrRefused, `names "builtins.eval"`},
		{"a type among values", start().Op('}').Str("t").Global("torch", "float32").Op('s').Op('.'), ErrUnsupported,
			`"t" is a type`},
		{"a tensor in a list", tensorOf(start().Op('}').Str("t").Op(']'), 0, []int64{4},
			[]int64{1}).Op('a').Op('s').Op('.'), ErrUnsupported, `"t/0" is a tensor`},
		{"a long integer", start().Op('}').Str("n").Op(0x8a, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9).Op('s').Op('.'),
			ErrUnsupported, `"n" is an integer`},
		{"one name for two tensors", tensorOf(tensorOf(start().Op('}').Str("a/b"), 0, []int64{4},
			[]int64{1}).Op('s').Str("a").Op('}').Str("b"), 0, []int64{4}, []int64{1}).Op('s').Op('s').Op('.'),
			ErrBroken, `tensor "a/b": is in the dict twice`},
		{"a number twice", start().Op('}').Str("n").Int(1).Op('s').Str("n").Int(2).Op('s').Op('.'), ErrBroken,
			`"n": is in the dict twice`},
		{"a key that is a float", start().Op('}').Op('G', make([]byte, 8)...).Int(1).Op('s').Op('.'), ErrBroken,
			"a float among its keys"},
		{"a dict in itself", start().Op('}').Op('q', 0).Str("w").Op('h', 0).Op('s').Op('.'), ErrUnsupported,
			"deep, want at most 16"},
		{"a list in itself", start().Op('}').Str("w").Op(']').Op('q', 0).Op('h', 0).Op('a').Op('s').Op('.'),
			ErrUnsupported, "deep, want at most 16"},
		{"dicts that double", doubled.Op('h', 0).Op('.'), nil, ""},
		{"lists that multiply", wide.Op('e').Op('s').Op('.'), ErrUnsupported, "more than 65536 values"},
		{"no dict", start().Op(']').Op('.'), ErrUnsupported, "holds a list"},
	} {
		if err := parse(h.pickle); h.kind == nil && err != nil ||
			h.kind != nil && (!errors.Is(err, h.kind) || !strings.Contains(err.Error(), h.text)) {
			t.Errorf("%s: %v, want %v with %q", h.name, err, h.kind, h.text)
		}
	}
}
