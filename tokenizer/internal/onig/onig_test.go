package onig

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAll compares matches with those of Oniguruma (from the tokenizers library).
func TestAll(t *testing.T) {
	for _, tt := range []struct{ expr, text, want string }{
		{`a|ab`, "abab", "a|a"},
		{`(?:a|ab)(?:c|bcd)`, "abcd", "abcd"},
		{`a*`, "baac", "|aa|"},
		{`(?:a?b??)*`, "abab", "a|a|"},
		{`a+?b`, "aaab", "aaab"},
		{`a++a`, "aaa", ""},
		{`(?>a|ab)c`, "abc", ""},
		{`a{2,3}?`, "aaaaa", "aa|aa"},
		{`a{2}?`, "aaa", "aa|"},
		{`a{,2}`, "aaa", "aa|a"},
		{`a{x}`, "a{x}", "a{x}"},
		{`(?i:s)`, "sSſ", "s|S|ſ"},
		{`(?i)'RE`, "'re'Re", "'re|'Re"},
		{`a(?i)b|c`, "aBaCabac", "aB|aC|ab|ac"},
		{`\s+(?!\S)|\s+`, "  a \n", " | | \n"},
		{`(?<=a|bc)x`, "axbcxcx", "x|x"},
		{`(?<!a)x`, "axbx", "x"},
		{`[^a-c\d]+`, "abcd1ef", "d|ef"},
		{`[a-z&&[^aeiou]]+`, "hello", "h|ll"},
		{`[[:alpha:]_]+`, "a_é 1", "a_é"},
		{`\p{^L}+|\P{N}`, "a1", "a|1"},
		{`\p{Han}+`, "日本x語", "日本|語"},
		{`\bfoo\b`, "foo foofoo", "foo"},
		{`^.|.$`, "ab\ncd", "a|b|c|d"},
		{`(?m:.)+`, "a\nb", "a\nb"},
		{`\R`, "a\r\nb\n", "\r\n|\n"},
		{`\x41|\x{1F600}|\u00e9|\101`, "A😀é", ""},
		{`[]a]+`, "]a", "]a"},
		{`[a\-z]+`, "a-zb", "a-z"},
		{`\h+`, "fFg9", "fF|9"},
	} {
		re, err := Compile(tt.expr)
		if err != nil {
			if tt.want != "" || !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", tt.expr, err)
			}
			continue
		}
		var got []string
		all, err := re.All(tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
		}
		for _, m := range all {
			got = append(got, tt.text[m[0]:m[1]])
		}
		if s := strings.Join(got, "|"); s != tt.want {
			t.Errorf("%s in %q: %q, want %q", tt.expr, tt.text, s, tt.want)
		}
	}
}

// TestRefused checks the kinds of errors.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		expr string
		kind error
	}{
		{"(", ErrBroken}, {"a)", ErrBroken}, {"[a", ErrBroken}, {"*", ErrBroken}, {`\p{L`, ErrBroken},
		{"[z-a]", ErrBroken}, {`\x{110000}`, ErrBroken},
		{`(a)\1`, ErrUnsupported}, {`\K`, ErrUnsupported}, {`\p{Klingon}`, ErrUnsupported},
		{"(?i:straße)", ErrUnsupported},
		{"(?i:ss)", ErrUnsupported}, {`(?i:[\p{L}])`, ErrUnsupported}, {"(?s:.)", ErrUnsupported},
		{"a{5000}", ErrUnsupported},
		{strings.Repeat("(", 1000) + strings.Repeat(")", 1000), ErrUnsupported},
		{"(?:(?:ab){1000}){1000}", ErrUnsupported}, {`[a-\d]`, ErrBroken},
	} {
		if _, err := Compile(tt.expr); !errors.Is(err, tt.kind) {
			t.Errorf("%.40s: %v, want an error of kind %q", tt.expr, err, tt.kind)
		}
	}
}

// TestHostile checks that expressions of exponential cost end soon.
func TestHostile(t *testing.T) {
	text := strings.Repeat("a", 2000)
	for _, expr := range []string{`(?:a|a)*b`, `(?:a*)*b`, `(?:a+)+$x`, `(?=(?:a|aa)+$)b`, `(?<=(?:a|a)*)b`} {
		re, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = re.All(text)
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%s took %v", expr, d)
		}
		if err != nil && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

func FuzzRegexp(f *testing.F) {
	for _, expr := range []string{`(?i:'s|'t)|[^\r\n\p{L}]?\p{L}+|\s+(?!\S)`, `(?:a?|b*)+?(?<=x)|[a&&[^b]]{2,3}+`,
		`\b\R|^$|(?>ab)*`} {
		f.Add(expr, "ab 'S  \r\nxé")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 200 || len(text) > 500 {
			return
		}
		text = strings.ToValidUTF8(text, "")
		re, err := Compile(expr)
		if err != nil {
			return
		}
		all, err := re.All(text)
		if err != nil {
			return
		}
		last := 0
		for _, m := range all {
			if m[0] < last || m[1] < m[0] || m[1] > len(text) {
				t.Fatal(fmt.Sprint("matches out of order: ", all))
			}
			last = m[1]
		}
		if !slices.IsSortedFunc(all, func(a, b [2]int) int { return a[0] - b[0] }) {
			t.Fatal(all)
		}
	})
}
