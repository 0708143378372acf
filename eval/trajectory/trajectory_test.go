package trajectory

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"ggforge/eval/likelihood"
	"ggforge/fault"
)

func TestPrompts(t *testing.T) {
	got, err := ReadPrompts("f", strings.NewReader("{\"prompt\": \"a b\"}\n\n{\"prompt\": [1, 2]}\n"))
	want := []likelihood.Input{{Text: "a b"}, {Tokens: []int32{1, 2}, IsTokens: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{"": "f: no prompts", "[1]": "f: line 1: ", "{}\n": `want ["prompt"]`,
		"{\"prompt\": \"a\"}\n{\"prompt\": 1}": "f: line 2: ", `{"prompt": "a", "x": 1}`: `["prompt" "x"]`} {
		if _, err := ReadPrompts("f", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFile(t *testing.T) {
	p := &Paths{Base: "a<b", Vocabulary: "00", N: 2, Prompts: [][]int32{{1}, {2, 3}}, Paths: [][]int32{{4, 5}, {6, 7}}}
	b, err := p.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read("f", bytes.NewReader(b))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("%+v, %v of\n%s", got, err, b)
	}
	for text, want := range map[string]string{
		"":                                "no paths",
		"{\"prompt\": \"a\"}":             "f: line 1: ",
		strings.Split(string(b), "\n")[0]: "no paths",
		strings.Replace(string(b), "[4,5]", "[4]", 1):                 "f: line 2: a path of 1 tokens, want 2",
		strings.Replace(string(b), "[1]", "[]", 1):                    "want a list of token ids",
		strings.Replace(string(b), "\"tokens\":2", "\"tokens\":0", 1): "want 1 to 4096",
	} {
		if _, err := Read("f", strings.NewReader(text)); !errors.Is(err, fault.Broken) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFigures(t *testing.T) {
	f := FiguresOf([]int{4, 4, 0, 2}, 4)
	if f.Whole.Mean != 0.5 || f.Length.Mean != 2.5 || math.Abs(f.Length.Error-math.Sqrt(11.0/3/4)) > 1e-12 {
		t.Errorf("%+v", f)
	}
	if d := Difference([]int{3, 4}, []int{1, 4}); d.Mean != 1 || d.Error != 1 {
		t.Errorf("%+v", d)
	}
	if d := Difference([]int{3}, []int{1}); d.Mean != 2 || !math.IsNaN(d.Error) {
		t.Errorf("%+v", d)
	}
}

// FuzzRead checks that any bytes give an error of a kind, or paths of the announced length.
func FuzzRead(f *testing.F) {
	p := &Paths{Base: "b", Vocabulary: "00", N: 1, Prompts: [][]int32{{1}}, Paths: [][]int32{{2}}}
	b, err := p.Bytes()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}\n[]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Read("f", bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Errorf("an error without a kind: %v", err)
			}
			return
		}
		for i := range p.Prompts {
			if len(p.Prompts[i]) == 0 || len(p.Paths[i]) != p.N {
				t.Fatalf("%+v", p)
			}
		}
	})
}
