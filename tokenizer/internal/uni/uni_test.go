package uni

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"ggforge/internal/text/norm"
)

// TestLater checks that no form changes characters that are newer than Unicode 9.
func TestLater(t *testing.T) {
	for _, s := range []string{"\u32FF", "\U00011935\U00011930", "\U00011938", "a\u08CA\u0323"} {
		for _, f := range []norm.Form{NFC, NFD, NFKC, NFKD} {
			if got := f.String(s); got != s {
				t.Errorf("%+v of %+q is %+q", f, s, got)
			}
		}
	}
	long := "a" + strings.Repeat("\u0301", 100)
	if got := NFD.String(long); got != long {
		t.Errorf("a run of 100 marks became %+q", got)
	}
}

// TestSet compares operations on sets with those on single characters.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func() *Set {
		s := &Set{}
		for range r.IntN(20) {
			lo := rune(r.IntN(300))
			s.Add(lo, lo+rune(r.IntN(10)))
		}
		return s
	}
	for range 300 {
		a, b := random(), random()
		union, both, not := Of(), a.Intersect(b), a.Complement()
		union.Union(a)
		union.Union(b)
		for c := rune(0); c < 400; c++ {
			if union.Has(c) != (a.Has(c) || b.Has(c)) || both.Has(c) != (a.Has(c) && b.Has(c)) ||
				not.Has(c) == a.Has(c) {
				t.Fatalf("%d: %v %v", c, a.spans, b.spans)
			}
		}
	}
	if all := Of().Complement(); all.Has(0xD800) || !all.Has(unicode.MaxRune) || !all.Has(0) {
		t.Error("the complement of the empty set is wrong")
	}
}

// TestTables checks that all tables can be read, and a few of their members.
func TestTables(t *testing.T) {
	n := 0
	for _, name := range Names("") {
		s, ok := Table(name)
		if !ok || len(s.spans) == 0 {
			t.Errorf("table %q is empty", name)
		}
		n++
	}
	if n < 200 {
		t.Errorf("%d tables", n)
	}
	for _, tt := range []struct {
		what string
		got  bool
		want bool
	}{
		{"½ numeric", IsNumeric('½'), true}, {"a numeric", IsNumeric('a'), false},
		{"$ punctuation", IsPunctuation('$'), true},
		{"€ punctuation", IsPunctuation('€'), false}, {"_ word", IsWord('_'), true}, {"ZWJ word", IsWord(0x200D), true},
		{"NBSP space", IsSpace(0xA0), true}, {"ZWSP space", IsSpace(0x200B), false},
		{"U+0301 mark", IsCombiningMark(0x301), true},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %t", tt.what, tt.got)
		}
	}
	if got := string(AppendLower(AppendLower(AppendLower(nil, 'É'), 'İ'), 'Σ')); got != "éi\u0307σ" {
		t.Errorf("lower case %q", got)
	}
}
