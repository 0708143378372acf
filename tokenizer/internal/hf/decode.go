package hf

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Decoder turns the texts of tokens into parts of the decoded text.
type Decoder interface {
	decode(b budget, tokens []string) ([]string, error)
}

// decode joins the parts that d decodes tokens to; a nil d joins the tokens with blanks.
func decode(b budget, d Decoder, tokens []string) (string, error) {
	if d == nil {
		return strings.Join(tokens, " "), nil
	}
	parts, err := d.decode(b, tokens)
	return strings.Join(parts, ""), err
}

// ByteLevelDecoder turns characters of byte-level vocabularies back into bytes. A
// token with any other character stays as it is.
type ByteLevelDecoder struct{}

func (ByteLevelDecoder) decode(_ budget, tokens []string) ([]string, error) {
	var out []byte
	for _, token := range tokens {
		start := len(out)
		for _, r := range token {
			b, ok := charBytes[r]
			if !ok {
				out = append(out[:start], token...)
				break
			}
			out = append(out, b)
		}
	}
	return []string{lossy(out)}, nil
}

// lossy replaces invalid UTF-8 by U+FFFD, one for each maximal truncated character, as the Unicode standard recommends.
func lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out bytes.Buffer
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			n = brokenLength(b)
		}
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String()
}

// brokenLength returns the number of bytes of the truncated character at the start of b; at least 1.
func brokenLength(b []byte) int {
	low, high, want := byte(0x80), byte(0xBF), 0
	switch c := b[0]; {
	case 0xC2 <= c && c <= 0xDF:
		want = 1
	case 0xE0 <= c && c <= 0xEF:
		want = 2
		if c == 0xE0 {
			low = 0xA0
		} else if c == 0xED {
			high = 0x9F
		}
	case 0xF0 <= c && c <= 0xF4:
		want = 3
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= want && n < len(b) && low <= b[n] && b[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}

// WordPieceDecoder puts a blank before each token but the first, or removes its prefix if it has one: such a token
// continues a word.
type WordPieceDecoder struct {
	Prefix  string
	Cleanup bool // see cleanup
}

func (d WordPieceDecoder) decode(_ budget, tokens []string) ([]string, error) {
	out := slices.Clone(tokens)
	for i := range out {
		if i > 0 {
			if rest, ok := strings.CutPrefix(out[i], d.Prefix); ok {
				out[i] = rest
			} else {
				out[i] = " " + out[i]
			}
		}
		if d.Cleanup {
			out[i] = cleanup(out[i])
		}
	}
	return out, nil
}

// cleanup removes blanks before punctuation and English contractions; the replacements are the library's, in its order.
func cleanup(s string) string {
	for _, r := range [][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

// MetaspaceDecoder replaces the replacement character by a blank; in the first token it removes it, unless Prepend is
// PrependNever.
type MetaspaceDecoder struct {
	Replacement rune
	Prepend     PrependScheme
}

func (d MetaspaceDecoder) decode(_ budget, tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		to := " "
		if i == 0 && d.Prepend != PrependNever {
			to = ""
		}
		out[i] = strings.ReplaceAll(token, string(d.Replacement), to)
	}
	return out, nil
}

// BPEDecoder replaces the suffix of words by a blank; in the last token it removes it.
type BPEDecoder struct{ Suffix string }

func (d BPEDecoder) decode(_ budget, tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		to := " "
		if i == len(tokens)-1 {
			to = ""
		}
		out[i] = strings.ReplaceAll(token, d.Suffix, to)
	}
	return out, nil
}

// CTCDecoder drops repetitions of a token and padding.
type CTCDecoder struct {
	Pad, WordDelimiter string
	Cleanup            bool
}

func (d CTCDecoder) decode(_ budget, tokens []string) ([]string, error) {
	var out []string
	for _, token := range slices.Compact(slices.Clone(tokens)) {
		token = strings.ReplaceAll(token, d.Pad, "")
		if d.Cleanup {
			token = strings.ReplaceAll(cleanup(token), d.WordDelimiter, " ")
		}
		if token != "" {
			out = append(out, token)
		}
	}
	return out, nil
}

// ByteFallbackDecoder joins runs of tokens of the form <0x61> to text; a run
// that is not UTF-8 becomes one U+FFFD for each byte.
type ByteFallbackDecoder struct{}

func (ByteFallbackDecoder) decode(_ budget, tokens []string) ([]string, error) {
	var (
		out []string
		run []byte
	)
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			for range run {
				out = append(out, "\uFFFD")
			}
		}
		run = run[:0]
	}
	for _, token := range tokens {
		if b, ok := byteToken(token); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out, nil
}

// byteToken reads a token of the form <0x61>. Like the library's number parser it accepts a sign as a digit.
func byteToken(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(strings.TrimPrefix(token[3:5], "+"), 16, 8)
	return byte(b), err == nil
}

// FuseDecoder joins all tokens.
type FuseDecoder struct{}

func (FuseDecoder) decode(_ budget, tokens []string) ([]string, error) {
	return []string{strings.Join(tokens, "")}, nil
}

// StripDecoder removes a character from each token, up to Start times at its start
// and up to Stop times at its end.
type StripDecoder struct {
	Content     rune
	Start, Stop int
}

func (d StripDecoder) decode(_ budget, tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		c := string(d.Content)
		// The two cuts are independent: a token that consists of the character only may be cut twice.
		start, stop := 0, len(token)
		for n := 0; n < d.Start && strings.HasPrefix(token[start:], c); n++ {
			start += len(c)
		}
		for n := 0; n < d.Stop && strings.HasSuffix(token[:stop], c); n++ {
			stop -= len(c)
		}
		out[i] = token[min(start, stop):stop]
	}
	return out, nil
}

// ReplaceDecoder replaces each match of a pattern in each token.
type ReplaceDecoder struct {
	Pattern Pattern
	Content string
}

func (d ReplaceDecoder) decode(b budget, tokens []string) ([]string, error) {
	out := make([]string, len(tokens))
	for i, token := range tokens {
		t, err := replace(text{s: token, budget: b}, d.Pattern, d.Content)
		if err != nil {
			return nil, err
		}
		out[i] = t.s
	}
	return out, nil
}

// SequenceDecoder applies decoders one after the other.
type SequenceDecoder []Decoder

func (d SequenceDecoder) decode(b budget, tokens []string) ([]string, error) {
	var err error
	for _, e := range d {
		if tokens, err = e.decode(b, tokens); err != nil {
			break
		}
		size := 0
		for _, token := range tokens {
			size += len(token)
		}
		if err = b.check(size); err != nil {
			break
		}
	}
	return tokens, err
}
