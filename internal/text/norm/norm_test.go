package norm

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

var forms = []struct {
	name string
	form Form
	sum  string // sha256 of the forms of all characters from U+0000 on, each before a newline
}{
	{"NFC", NFC, "9cc65524a9d8082bf10840c616cd199bd2ac12ee49a3381bd6fb7957711f342b"},
	{"NFD", NFD, "b505598a484ab04ad1f0d3e9d772f4a536b012c63ec82132e4a7fba25a8d94f2"},
	{"NFKC", NFKC, "a9773a8b96f0a3693a609ec0f8efc94f49c35ea03330b1029e186a25183a0bfc"},
	{"NFKD", NFKD, "4f1276f64ad2915e28c8507ac0f1f56a3d0935e7369b926f9efb0d0cea66a913"},
}

// TestAll compares the forms of all characters with those of golang.org/x/text v0.32.0, by their sums
// (_generate/main_test.go). Pairs need no sums: a pair comes from the composite that decomposes into it.
func TestAll(t *testing.T) {
	for _, f := range forms {
		h, b := sha256.New(), strings.Builder{}
		for c := rune(0); c <= utf8.MaxRune; c++ {
			if utf8.ValidRune(c) {
				b.WriteRune(c)
				b.WriteByte('\n') // a starter: characters stay apart
			}
			if c&0xFFFF == 0xFFFF {
				io.WriteString(h, f.form.String(b.String()))
				b.Reset()
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != f.sum {
			t.Errorf("%s: sha256 %s, want %s", f.name, got, f.sum)
		}
	}
}

// check checks the rules of the Unicode standard's NormalizationTest.txt on one text.
func check(t *testing.T, s string) {
	t.Helper()
	c, d, kc, kd := NFC.String(s), NFD.String(s), NFKC.String(s), NFKD.String(s)
	for _, in := range []string{s, c, d} {
		if gc, gd := NFC.String(in), NFD.String(in); gc != c || gd != d {
			t.Fatalf("%+q: NFC %+q, NFD %+q; want %+q, %+q", in, gc, gd, c, d)
		}
	}
	for _, in := range []string{c, d, kc, kd} {
		if gc, gd := NFKC.String(in), NFKD.String(in); gc != kc || gd != kd {
			t.Fatalf("%+q: NFKC %+q, NFKD %+q; want %+q, %+q", in, gc, gd, kc, kd)
		}
	}
	for _, in := range []string{kc, kd} {
		if gc, gd := NFC.String(in), NFD.String(in); gc != kc || gd != kd {
			t.Fatalf("%+q: NFC %+q, NFD %+q; want %+q, %+q", in, gc, gd, kc, kd)
		}
	}
	for _, form := range []string{d, kd} {
		last := uint8(0)
		for _, r := range form {
			class := NFD.class(r)
			if class != 0 && class < last {
				t.Fatalf("%+q: marks of %+q are not in canonical order", s, form)
			}
			last = class
		}
	}
}

func TestRules(t *testing.T) {
	for c := rune(0); c <= utf8.MaxRune; c++ {
		if p := tables().lookup(c); p.class != 0 || p.compatibility != nil || c%61 == 0 {
			check(t, string(c))
			check(t, "a"+string(c)+"\u0334\u0301\u0323")
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	marks := []rune("\u0301\u0308\u0323\u0327\u0345\u0334\u093C\u3099\u0BBE")
	bases := []rune("aeiouAsdkか가각ᄀคนôệǖ한ﬃΩ\u0BC6")
	for range 20000 {
		var s []rune
		for range 1 + r.IntN(6) {
			s = append(s, bases[r.IntN(len(bases))])
			for range r.IntN(5) {
				s = append(s, marks[r.IntN(len(marks))])
			}
		}
		check(t, string(s))
	}
}

func FuzzRules(f *testing.F) {
	f.Add("e\u0301\u0323 \u1100\u1161\u11A8 \u3000\uFB03")
	f.Fuzz(check)
}

// TestForms checks texts whose forms are known: from the standard, and from the tokenizers library.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		name     string
		form     Form
		in, want string
	}{
		{"reordered", NFD, "\u1E0B\u0323", "d\u0323\u0307"},
		{"composed past a lower class", NFC, "d\u0307\u0323", "\u1E0D\u0307"},
		{"singleton", NFC, "\u212B", "\u00C5"},
		{"excluded", NFC, "\u0958", "\u0915\u093C"},
		{"compatibility", NFKC, "\uFB03\u00B2", "ffi2"},
		{"a starter that composes backwards", NFC, "\u03A9\u0BBE\u0345\u0301\u0334",
			"\u03A9\u0BBE\u0334\u0301\u0345"},
		{"second part of a vowel", NFC, "\u0BC6\u0BBE\u0301", "\u0BCA\u0301"},
		{"Hangul", NFC, "\u1100\u1161\u11A8\u11A8", "\uAC01\u11A8"},
		{"low 16 bits of A", NFC, "\U00010041\u0300", "\U00010041\u0300"}, // x/text: U+00C0
		{"a hundred marks", NFD, "a" + strings.Repeat("\u0301", 100), "a" + strings.Repeat("\u0301", 100)},
	} {
		if got := tt.form.String(tt.in); got != tt.want {
			t.Errorf("%s: %+q: %+q, want %+q", tt.name, tt.in, got, tt.want)
		}
	}
	if got := NFC.Normalize([]Char{{0xD800, 0}, {0x110000, 1}}); got[0].R != 0xD800 || got[1].R != 0x110000 {
		t.Errorf("no characters: %v", got)
	}
}

func TestOrigins(t *testing.T) {
	got := NFKC.Normalize([]Char{{'e', 3}, {0x301, 4}, {0xFB03, 6}})
	want := []Char{{0xE9, 3}, {'f', 6}, {'f', 6}, {'i', 6}}
	for i, c := range want {
		if len(got) != len(want) || got[i] != c {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}

func BenchmarkNFC(b *testing.B) {
	s := strings.Repeat("Größe của hệ thống 한국어 テキスト ", 100)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		NFC.String(s)
	}
}
