package modelfile

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const triple = `"""`

// Quote returns the form of a text that Ollama's parser reads as that text, every character of it. Its rules:
//
//   - A value ends at the first line break (LF or CR) before which it is complete. It is complete if it begins with
//     """, has at least 6 bytes and ends with """; or else begins with ", has at least 2 bytes and ends with "; or
//     begins with neither. White space around it does not count. There are no escapes: quotes in between are a part of
//     the text.
//   - Characters that are not printable by Go's strconv.IsPrint are dropped, except space, tab, LF and CR. So are,
//     among others, no-break spaces and the joiners of emoji.
//
// An error names the reason why a text cannot be written: it is not UTF-8, has a character that is dropped, or has
// several lines of which one but the last ends with """.
func Quote(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("%.60q: want UTF-8", s)
	}
	for i, r := range s {
		if !kept(r) {
			return "", fmt.Errorf("byte %d: Ollama drops the character %U: want a text without it", i, r)
		}
	}
	if !strings.ContainsAny(s, "\r\n") {
		if quoted := `"` + s + `"`; !strings.HasPrefix(quoted, triple) {
			return quoted, nil
		}
	} else if i, ok := completeLine(s); ok {
		return "", fmt.Errorf(`byte %d: a line that ends with """ would end the text for Ollama: want a text without it`, i)
	}
	return triple + s + triple, nil
}

// kept reports whether Ollama's parser keeps a character of a quoted text.
func kept(r rune) bool { return r == '\n' || r == '\r' || r == '\t' || strconv.IsPrint(r) }

// completeLine returns the offset of the first line break in s at which """ and the text before it are complete.
func completeLine(s string) (at int, ok bool) {
	// length and quotes are the number of bytes, and of quotes at the end, without white space at the end.
	length, quotes := len(triple), len(triple)
	space := 0
	for i, r := range s {
		switch {
		case r == '\n' || r == '\r':
			if quotes >= len(triple) && length >= 2*len(triple) {
				return i, true
			}
			space++
		case unicode.IsSpace(r):
			space += utf8.RuneLen(r)
		default:
			if length += space + utf8.RuneLen(r); r != '"' {
				quotes = 0
			} else if space > 0 {
				quotes = 1
			} else {
				quotes++
			}
			space = 0
		}
	}
	return 0, false
}

// clean returns a text without the characters that Ollama drops; spaces of all kinds are written as one.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case kept(r):
			return r
		case unicode.Is(unicode.Zs, r):
			return ' '
		case r == '\f' || r == '\v' || r == '\u0085' || r == '\u2028' || r == '\u2029':
			return '\n'
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
}
