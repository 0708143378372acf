// Package toktest has texts and small tokenizers for tests of encoders: ours and the reference's library get the same
// ones.
package toktest

import (
	_ "embed"
	"strings"
	"unicode/utf8"
)

// random is splitmix64: each number is the mixed sum of the seed and a multiple
// of the golden ratio. Texts depend on nothing else.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// below returns a number from 0 to n-1.
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// pick returns a random character of a string.
func (r *random) pick(s []rune) rune { return s[r.below(len(s))] }

// source is a Go source file, tabs, quotes and all.
//
//go:embed testdata/source.txt
var source string

var sourceLines = strings.SplitAfter(source, "\n")

// alphabets are the kinds of characters; a run has characters of one kind.
var alphabets = func() (out [][]rune) {
	for _, s := range []string{
		"abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "etaoinshrdlu", "0123456789", " ", "  \t",
		"\n", "\r\n",
		"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", "’‘“”–—…«»¿¡§¶", "\u00A0\u2003\u3000\u2028\u1680\u200B", "éèüöñçåøßﬁıİſŉ",
		"нещонаБългарски", "ελληνικάΣς", "我想在工作日本語開発", "ひらがなカタカナー々〆", "한국어조선말", "កាន់តែពិសេស", "ภาษาไทยอากาศ",
		"हिन्दीमेंलिखना", "العربيةمرحبا", "עבריתשלום", "தமிழ்", "①Ⅷ½²٣४৫𝟘", "😀😁🚀🦙🏳🌈✅❤", "\u200D\uFE0F\U0001F3FB",
		"\u0301\u0308\u0323\u0327\u0345",
		"\x00\x01\x07\x1B\x7F\u0085\u00AD\uFEFF", "▁ĠĊ\uFFFD", "ᄀ가각ᅡᆨ", "ΩÅKﬀ㎏㍿", "𐍈𝒜𠀀\U000E0001",
	} {
		out = append(out, []rune(s))
	}
	return out
}()

// phrases are inserted unchanged.
var phrases = []string{
	"I've", "we'll", "don't", "THEY'RE", "it'S", " 'tis", "Hello, world!", " the quick brown fox", "3.14159",
	"1,234,567", "2024-01-31T12:00",
	"https://example.org/a?b=c#d", "user@example.org", "👨‍👩‍👧‍👦", "🏳️‍🌈", "e\u0301", "ﬃ", "----", "======", "......",
	"''''", "\t\tif (x) {", "  return 0;\n",
	"<|endoftext|>", "<|im_start|>", "<s>", "</s>", "<unk>", "[MASK]", "<tool>", "  <tool>  ", "x<tool>y", "MiXeD",
	"naïve café", "北京大学", "東京2020",
}

// Corpus returns n lines of text; the same seed gives the same lines.
func Corpus(seed uint64, n int) []string {
	r := random(seed)
	lines := make([]string, n)
	for i := range lines {
		switch r.below(8) {
		case 0:
			at := r.below(len(sourceLines))
			lines[i] = strings.Join(sourceLines[at:min(at+1+r.below(4), len(sourceLines))], "")
		case 1:
			lines[i] = r.anything(1 + r.below(60))
		default:
			lines[i] = r.mixed(1 + r.below(24))
		}
	}
	return lines
}

// anything returns characters from all of Unicode, unassigned ones included.
func (r *random) anything(n int) string {
	var b strings.Builder
	for range n {
		c := rune(r.below(0x3000))
		switch r.below(4) {
		case 0:
			c = rune(r.below(0x10000))
		case 1:
			c = rune(r.below(utf8.MaxRune + 1))
		}
		if utf8.ValidRune(c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// mixed returns runs of different kinds.
func (r *random) mixed(n int) string {
	var b strings.Builder
	for range n {
		if r.below(4) == 0 {
			b.WriteString(phrases[r.below(len(phrases))])
			continue
		}
		alphabet := alphabets[r.below(len(alphabets))]
		for range 1 + r.below(8) {
			b.WriteRune(r.pick(alphabet))
		}
	}
	return b.String()
}
