package uni

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func normalize(f Form, s string) string {
	var in []Char
	for i, r := range s {
		in = append(in, Char{r, i})
	}
	var b strings.Builder
	for _, c := range f.Normalize(in) {
		b.WriteRune(c.R)
	}
	return b.String()
}

// TestNormalize compares with x/text where that has the same data and is right: it
// breaks up long runs of marks, and composes across starters that compose
// backwards, such as U+0BBE.
func TestNormalize(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	forms := map[Form]norm.Form{NFC: norm.NFC, NFD: norm.NFD, NFKC: norm.NFKC, NFKD: norm.NFKD}
	check := func(s string) {
		for f, x := range forms {
			if got, want := normalize(f, s), x.String(s); got != want {
				t.Fatalf("%v of %+q: %+q, want %+q", f, s, got, want)
			}
		}
	}
	for c := rune(0); c <= unicode.MaxRune; c++ {
		if utf8.ValidRune(c) && !later().Has(c) {
			check(string(c))
		}
	}
	marks := []rune("\u0301\u0308\u0323\u0327\u0345\u0334\u093C\u3099")
	bases := []rune("aeiouAsdکか가각ᄀकணώệǖ한ﬃΩ")
	for range 20000 {
		var s []rune
		for range 1 + r.IntN(6) {
			s = append(s, bases[r.IntN(len(bases))])
			for range r.IntN(5) {
				s = append(s, marks[r.IntN(len(marks))])
			}
		}
		check(string(s))
	}
}

// TestStarters checks that what composes backwards ends the reach of the letter
// before it (from the tokenizers library).
func TestStarters(t *testing.T) {
	for in, want := range map[string]string{
		"\u03A9\u0BBE\u0345\u0301\u0334": "\u03A9\u0BBE\u0334\u0301\u0345",
		"\u0BC6\u0BBE\u0301":             "\u0BCA\u0301",
		"\u1100\u1161\u11A8\u11A8":       "\uAC01\u11A8",
	} {
		if got := normalize(NFC, in); got != want {
			t.Errorf("%+q: %+q, want %+q", in, got, want)
		}
	}
}

// TestLater checks that characters after Unicode 9 stand for themselves.
func TestLater(t *testing.T) {
	for _, s := range []string{"\u32FF", "\U00011935\U00011930", "\U00011938", "a\u08CA\u0323"} {
		for _, f := range []Form{NFC, NFD, NFKC, NFKD} {
			if got := normalize(f, s); got != s {
				t.Errorf("%v of %+q is %+q", f, s, got)
			}
		}
	}
	long := "a" + strings.Repeat("\u0301", 100)
	if got := normalize(NFD, long); got != long {
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
		t.Error("the complement of nothing")
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
