package general

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The string functions of Python that the reference uses, where Go's differ.

func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1C <= r && r <= 0x1F }

// strip is str.strip.
func strip(s string) string { return strings.TrimFunc(s, isSpace) }

// words is str.split.
func words(s string) []string { return strings.FieldsFunc(s, isSpace) }

// cutLine splits off the first line, as str.splitlines does for a text that is read
// with universal newlines. found is false when no line end follows it.
func cutLine(s string) (line, rest string, found bool) {
	i := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
	if i < 0 {
		return s, "", false
	}
	_, n := utf8.DecodeRuneInString(s[i:])
	if strings.HasPrefix(s[i:], "\r\n") {
		n = 2
	}
	return s[:i], s[i+n:], true
}

func isLowerRune(r rune) bool { return unicode.In(r, unicode.Lower, unicode.Other_Lowercase) }
func isUpperRune(r rune) bool {
	return unicode.In(r, unicode.Upper, unicode.Other_Uppercase, unicode.Title)
}

// isLower is str.islower: s has a small letter and no capital.
func isLower(s string) bool {
	return strings.ContainsFunc(s, isLowerRune) && !strings.ContainsFunc(s, isUpperRune)
}

// capitals is str.title for text without capitals: each letter after a character
// that is not a letter becomes a capital.
func capitals(s string) string {
	var b strings.Builder
	inWord := false
	for _, r := range s {
		if long, ok := longTitles[r]; ok && !inWord {
			b.WriteString(long)
		} else if !inWord {
			b.WriteRune(unicode.ToTitle(r))
		} else {
			b.WriteRune(r)
		}
		inWord = isLowerRune(r)
	}
	return b.String()
}

// longTitles are the letters whose title case is more than one letter. Source:
// Unicode 16.0, SpecialCasing.txt.
var longTitles = map[rune]string{
	0x00df: "Ss", 0x0149: "\u02bcN", 0x01f0: "J\u030c", 0x0390: "\u0399\u0308\u0301",
	0x03b0: "\u03a5\u0308\u0301", 0x0587: "\u0535\u0582", 0x1e96: "H\u0331", 0x1e97: "T\u0308",
	0x1e98: "W\u030a", 0x1e99: "Y\u030a", 0x1e9a: "A\u02be", 0x1f50: "\u03a5\u0313",
	0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301", 0x1f56: "\u03a5\u0313\u0342", 0x1fb2: "\u1fba\u0345",
	0x1fb4: "\u0386\u0345", 0x1fb6: "\u0391\u0342", 0x1fb7: "\u0391\u0342\u0345", 0x1fc2: "\u1fca\u0345",
	0x1fc4: "\u0389\u0345", 0x1fc6: "\u0397\u0342", 0x1fc7: "\u0397\u0342\u0345", 0x1fd2: "\u0399\u0308\u0300",
	0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342", 0x1fd7: "\u0399\u0308\u0342", 0x1fe2: "\u03a5\u0308\u0300",
	0x1fe3: "\u03a5\u0308\u0301", 0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342", 0x1fe7: "\u03a5\u0308\u0342",
	0x1ff2: "\u1ffa\u0345", 0x1ff4: "\u038f\u0345", 0x1ff6: "\u03a9\u0342", 0x1ff7: "\u03a9\u0342\u0345",
	0xfb00: "Ff", 0xfb01: "Fi", 0xfb02: "Fl", 0xfb03: "Ffi",
	0xfb04: "Ffl", 0xfb05: "St", 0xfb06: "St", 0xfb13: "\u0544\u0576",
	0xfb14: "\u0544\u0565", 0xfb15: "\u0544\u056b", 0xfb16: "\u054e\u0576", 0xfb17: "\u0544\u056d",
}
