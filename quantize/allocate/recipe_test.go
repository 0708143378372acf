package allocate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

func TestRecipe(t *testing.T) {
	tensors := []TensorType{{"token_embd.weight", gguf.TypeQ5_K}, {"blk.1.attn_k.weight", gguf.TypeIQ4_XS},
		{"blk.11.attn_k.weight", gguf.TypeQ2_K}, {"output.weight", gguf.TypeQ6_K}, {"v.A (x).weight", gguf.TypeQ8_0}}
	var names []string
	for _, x := range tensors {
		names = append(names, x.Name)
	}
	text := FormatRecipe(tensors)
	r, err := ParseRecipe("r.txt", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(r.Rules) != len(tensors) {
		t.Fatalf("%d rules of\n%s", len(r.Rules), text)
	}
	if err := r.Check(append(names, "blk.0.attn_output.weight")); err != nil {
		t.Error(err)
	}
	for i, x := range tensors {
		for k, name := range names {
			if lower := strings.ToLower(name); name == lower && r.Rules[i].Match(name) != (i == k) {
				t.Errorf("%s and %s", r.Rules[i], name)
			}
		}
		if r.Rules[i].Type != x.Type {
			t.Errorf("%s, want %v", r.Rules[i], x.Type)
		}
	}
	for _, c := range []struct {
		text string
		kind error
		want string
	}{
		{"", fault.Usage, "r.txt: no rules"},
		{"# a\n\n", fault.Usage, "no rules"},
		{"a=q4_k\n\nattn=q9\n", fault.Usage, `r.txt, line 3: tensor rule "attn=q9": unknown type "q9"`},
		{"a=q4_k\r\nattn", fault.Usage, "line 2: tensor rule \"attn\": want pattern=type"},
		{"(=q4_k", fault.Usage, "line 1:"},
		{"a=q4_k b=q5_k", fault.Usage, `line 1: " b=q5_k" after the rule "a=q4_k"`},
		{"attn=q4_k\nffn=q4_k\n", fault.Refused, `r.txt, line 2: "ffn" matches no tensor`},
		{"attn=q4_k\nattn_k=q4_k\n", fault.Refused,
			`line 2: earlier lines give types to all tensors that "attn_k" matches, as line 1 does`},
		{"x=q4_k\ny=q4_k\nattn=f16", fault.Refused, `line 1: "x" matches no tensor (and 1 more lines without effect)`},
		{"attn_k=q4_k\n# c\nattn=q5_k", nil, ""},
	} {
		r, err := ParseRecipe("r.txt", []byte(c.text))
		if err == nil {
			err = r.Check([]string{"blk.0.attn_k.weight", "blk.0.attn_q.weight"})
		}
		if c.kind == nil && err != nil || c.kind != nil &&
			(!errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// FuzzRecipe reads any text as a recipe: an accepted recipe that is written and read again is the same.
func FuzzRecipe(f *testing.F) {
	f.Add([]byte("# target: 4.2GB\n^token_embd\\.weight$=q4_k\n\nblk\\.[0-3]\\.ffn_down=q8_0\r\n"))
	f.Add(FormatRecipe([]TensorType{{"blk.0.x", gguf.TypeF16}}))
	for _, text := range []string{"a=", "=q4_k", "a=q4_k b", "[=f16", "\x00=f16", "a\vb=f16"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseRecipe("r", data)
		if err != nil {
			if !errors.Is(err, fault.Usage) {
				t.Errorf("%v is no usage error", err)
			}
			return
		}
		var lines []string
		for _, rule := range r.Rules {
			lines = append(lines, rule.String())
		}
		again, err := ParseRecipe("r", []byte(strings.Join(lines, "\n")))
		if err != nil || len(again.Rules) != len(r.Rules) {
			t.Fatalf("%q: %v", lines, err)
		}
		for i := range r.Rules {
			if again.Rules[i].String() != r.Rules[i].String() {
				t.Errorf("%s became %s", r.Rules[i], again.Rules[i])
			}
		}
		r.Check([]string{"blk.0.ffn_down.weight", "token_embd.weight"})
	})
}

// FuzzPattern checks that the pattern of a name is a rule that matches it.
func FuzzPattern(f *testing.F) {
	f.Add("blk.0.attn_k.weight")
	f.Add("a\nB=(\xff*")
	f.Fuzz(func(t *testing.T, name string) {
		text := FormatRecipe([]TensorType{{name, gguf.TypeQ4_K}})
		r, err := ParseRecipe("r", text)
		if err != nil || len(r.Rules) != 1 {
			t.Fatalf("%q: %v", text, err)
		}
		if s := strings.ToLower(name); s == name &&
			!strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) &&
			!slices.Contains([]string{""}, name) && !r.Rules[0].Match(name) {
			t.Errorf("%q does not match %q", r.Rules[0].Pattern, name)
		}
	})
}
