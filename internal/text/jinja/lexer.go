package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokPrint    // {{
	tokPrintEnd // }}
	tokTag      // {%
	tokTagEnd   // %}
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind tokenKind
	text string // the name, the operator, the value of a string, the text between tags
	line int
	i    int64
	f    float64
}

// String names a token in an error.
func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "the end of the template"
	case tokData:
		return "text"
	case tokPrint:
		return `"{{"`
	case tokPrintEnd:
		return `"}}"`
	case tokTag:
		return `"{%"`
	case tokTagEnd:
		return `"%}"`
	case tokString:
		return "the string " + short(t.text)
	case tokInt:
		return strconv.FormatInt(t.i, 10)
	case tokFloat:
		return strconv.FormatFloat(t.f, 'g', -1, 64)
	}
	return short(t.text)
}

// short quotes a text for an error, cut where it is long.
func short(s string) string {
	if len(s) > 60 {
		s = strings.ToValidUTF8(s[:60], "") + "…"
	}
	return strconv.Quote(s)
}

// lexer cuts a template into tokens as Jinja does with trim_blocks and lstrip_blocks:
//
//	{%- {{- {#-   the white space before is dropped
//	-%} -}} -#}   the white space after is dropped
//	{% {#         spaces before are dropped if the line begins with them, unless a + follows
//	%} #}         one newline after is dropped, unless a + precedes
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the last tag ended with a newline, or nothing precedes
	tokens    []token
}

// tokenize returns the tokens of a template; the last one is tokEOF.
func tokenize(src string) []token {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	}
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.text()
	}
	l.add(tokEOF, "")
	return l.tokens
}

func (l *lexer) failf(format string, args ...any) {
	panic(&Error{Syntax, l.line, fmt.Sprintf(format, args...)})
}

func (l *lexer) add(k tokenKind, text string) *token {
	l.tokens = append(l.tokens, token{kind: k, text: text, line: l.line})
	return &l.tokens[len(l.tokens)-1]
}

// advance moves to a later position and counts lines.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.src[l.pos:to], "\n")
	l.pos = to
}

func (l *lexer) data(s string) {
	if s != "" {
		l.add(tokData, s)
	}
}

// text reads the text up to the next tag, and the tag.
func (l *lexer) text() {
	at, rest := -1, l.src[l.pos:]
	for i := 0; i+1 < len(rest); i++ {
		j := strings.IndexByte(rest[i:], '{')
		if j < 0 {
			break
		}
		i += j
		if i+1 < len(rest) && (rest[i+1] == '%' || rest[i+1] == '{' || rest[i+1] == '#') {
			at = i
			break
		}
	}
	if at < 0 {
		l.data(rest)
		l.advance(len(l.src))
		return
	}
	before, kind := rest[:at], rest[at+1]
	start, sign := l.pos+at+2, byte(0)
	if start < len(l.src) && (l.src[start] == '-' || l.src[start] == '+') {
		sign = l.src[start]
		start++
	}
	l.data(l.strip(before, sign, kind == '{'))
	l.lineStart = false
	switch kind {
	case '#':
		l.advance(start)
		l.comment()
	case '{':
		l.advance(start)
		l.add(tokPrint, "")
		l.inside(true)
	default:
		if end, trim, ok := rawTag(l.src, start); ok {
			l.advance(end)
			l.raw(trim)
			return
		}
		l.advance(start)
		l.add(tokTag, "")
		l.inside(false)
	}
}

// strip returns the text before a tag without the white space that the tag drops.
func (l *lexer) strip(text string, sign byte, print bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || print {
		return text
	}
	n := strings.LastIndexByte(text, '\n') + 1
	if (n > 0 || l.lineStart) && strings.TrimLeftFunc(text[n:], isSpace) == "" {
		return text[:n]
	}
	return text
}

// rawTag reads the rest of a tag {% raw %} after its sign: where it ends, and whether with -%}.
func rawTag(src string, at int) (end int, trim, ok bool) {
	rest := strings.TrimLeftFunc(src[at:], isSpace)
	if rest, ok = strings.CutPrefix(rest, "raw"); !ok {
		return 0, false, false
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	rest, trim = strings.CutPrefix(rest, "-")
	rest, ok = strings.CutPrefix(rest, "%}")
	return len(src) - len(rest), trim, ok
}

// raw reads the text after {% raw %} and the tag that ends it.
func (l *lexer) raw(trim bool) {
	if trim {
		l.skipSpace()
	}
	for at := l.pos; ; at += 2 {
		j := strings.Index(l.src[at:], "{%")
		if j < 0 {
			l.failf("the end of the template, want {%% endraw %%}")
		}
		at += j
		rest, sign := l.src[at+2:], byte(0)
		if rest != "" && (rest[0] == '-' || rest[0] == '+') {
			sign, rest = rest[0], rest[1:]
		}
		rest, ok := strings.CutPrefix(strings.TrimLeftFunc(rest, isSpace), "endraw")
		if !ok {
			continue
		}
		rest = strings.TrimLeftFunc(rest, isSpace)
		for _, end := range []string{"+%}", "-%}", "%}"} {
			if after, ok := strings.CutPrefix(rest, end); ok {
				l.data(l.strip(l.src[l.pos:at], sign, false))
				l.advance(len(l.src) - len(after))
				l.afterEnd(end[0])
				return
			}
		}
	}
}

func (l *lexer) comment() {
	j := strings.Index(l.src[l.pos:], "#}")
	if j < 0 {
		l.failf(`the end of the template, want "#}"`)
	}
	sign := byte(0)
	if j > 0 {
		sign = l.src[l.pos+j-1]
	}
	l.advance(l.pos + j + 2)
	l.afterEnd(sign)
}

// afterEnd drops the white space after the end of a tag with that sign.
func (l *lexer) afterEnd(sign byte) {
	l.lineStart = false
	switch {
	case sign == '-':
		l.skipSpace()
	case sign != '+' && l.pos < len(l.src) && l.src[l.pos] == '\n':
		l.advance(l.pos + 1)
		l.lineStart = true
	}
}

func (l *lexer) skipSpace() {
	n := len(l.src) - len(strings.TrimLeftFunc(l.src[l.pos:], isSpace))
	l.lineStart = n > l.pos && l.src[n-1] == '\n'
	l.advance(n)
}

var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}",
	">", "<", "=", ".", ":", "|", ",", ";"}

// inside reads the tokens of a tag and its end.
func (l *lexer) inside(print bool) {
	end, kind := "%}", tokTagEnd
	if print {
		end, kind = "}}", tokPrintEnd
	}
	var open []byte // brackets that await their end
	for {
		l.advance(len(l.src) - len(strings.TrimLeftFunc(l.src[l.pos:], isSpace)))
		rest := l.src[l.pos:]
		if rest == "" {
			l.failf("the end of the template, want %q", end)
		}
		if len(open) == 0 {
			sign := byte(0)
			tail := rest
			if tail[0] == '-' || tail[0] == '+' && !print {
				sign, tail = tail[0], tail[1:]
			}
			if strings.HasPrefix(tail, end) {
				l.add(kind, "")
				l.advance(len(l.src) - len(tail) + 2)
				if print && sign == 0 {
					sign = '+' // only tags and comments drop the newline after them
				}
				l.afterEnd(sign)
				return
			}
		}
		c := rest[0]
		switch {
		case '0' <= c && c <= '9':
			l.number()
			continue
		case c == '\'' || c == '"':
			l.string(c)
			continue
		}
		if r, _ := utf8.DecodeRuneInString(rest); isName(r) {
			n := strings.IndexFunc(rest, func(r rune) bool { return !isName(r) })
			if n < 0 {
				n = len(rest)
			}
			l.add(tokName, rest[:n])
			l.advance(l.pos + n)
			continue
		}
		op := ""
		for _, o := range operators {
			if strings.HasPrefix(rest, o) {
				op = o
				break
			}
		}
		switch op {
		case "":
			r, _ := utf8.DecodeRuneInString(rest)
			l.failf("character %q, want an expression or %q", r, end)
		case "(", "[", "{":
			open = append(open, map[string]byte{"(": ')', "[": ']', "{": '}'}[op])
		case ")", "]", "}":
			if len(open) == 0 {
				l.failf("unexpected %q, want %q", op, end)
			}
			if want := open[len(open)-1]; want != op[0] {
				l.failf("unexpected %q, want %q", op, string(rune(want)))
			}
			open = open[:len(open)-1]
		}
		l.add(tokOp, op)
		l.advance(l.pos + len(op))
	}
}

func isName(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// digits returns the length of a run of digits, which may have single underscores between them.
func digits(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && (is(s[n]) || s[n] == '_' && n > 0 && s[n-1] != '_' && n+1 < len(s) && is(s[n+1])) {
		n++
	}
	return n
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

// number reads an integer or a float with the grammar of Jinja.
func (l *lexer) number() {
	s := l.src[l.pos:]
	n := digits(s, isDecimal)
	float := n
	if l.pos == 0 || l.src[l.pos-1] != '.' {
		if n < len(s) && s[n] == '.' {
			if d := digits(s[n+1:], isDecimal); d > 0 {
				float = n + 1 + d
			}
		}
		if e := s[float:]; len(e) > 1 && (e[0] == 'e' || e[0] == 'E') {
			sign := 1
			if e[1] == '+' || e[1] == '-' {
				sign = 2
			}
			if d := digits(e[sign:], isDecimal); d > 0 {
				float += sign + d
			}
		}
	}
	if float > n {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(s[:float], "_", ""), 64) // an overflow is infinite
		l.add(tokFloat, "").f = f
		l.advance(l.pos + float)
		return
	}
	base := 10
	if len(s) > 2 && s[0] == '0' {
		is := map[byte]func(byte) bool{
			'b': func(c byte) bool { return c == '0' || c == '1' },
			'o': func(c byte) bool { return '0' <= c && c <= '7' },
			'x': func(c byte) bool { return isDecimal(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
		}[s[1]|0x20]
		if is != nil {
			if d := digits("0"+strings.TrimPrefix(s[2:], "_"), is); d > 1 {
				n = d + 1 + len(s[2:]) - len(strings.TrimPrefix(s[2:], "_"))
				base = map[byte]int{'b': 2, 'o': 8, 'x': 16}[s[1]|0x20]
			}
		}
	}
	text := strings.ReplaceAll(s[:n], "_", "")
	if base == 10 && text[0] == '0' { // of 01 only the 0 is a number
		n = digits(s, func(c byte) bool { return c == '0' })
		text = "0"
	}
	if base != 10 {
		text = text[2:]
	}
	i, err := strconv.ParseInt(text, base, 64)
	if err != nil {
		panic(&Error{Limit, l.line, "integer " + short(s[:n]) + ", want one of 64 bits"})
	}
	l.add(tokInt, "").i = i
	l.advance(l.pos + n)
}

// string reads a string literal with Python's escapes.
func (l *lexer) string(quote byte) {
	s := l.src[l.pos+1:]
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			l.add(tokString, b.String())
			l.advance(l.pos + i + 2)
			return
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(s):
		default:
			i++
			i += l.escape(&b, s[i:])
		}
	}
	l.failf("the end of the template, want a closing %c", quote)
}

// escape writes the character of an escape sequence, s after its backslash, and returns the bytes that it needs
// beyond one.
func (l *lexer) escape(b *strings.Builder, s string) int {
	const plain = "\\'\"abfnrtv"
	if i := strings.IndexByte(plain, s[0]); i >= 0 {
		b.WriteByte("\\'\"\a\b\f\n\r\t\v"[i])
		return 0
	}
	width := 0
	switch c := s[0]; {
	case c == '\n':
		return 0
	case '0' <= c && c <= '7':
		n := 0
		for n < 3 && n < len(s) && '0' <= s[n] && s[n] <= '7' {
			n++
		}
		v, _ := strconv.ParseUint(s[:n], 8, 32)
		b.WriteRune(rune(v))
		return n - 1
	case c == 'x':
		width = 2
	case c == 'u':
		width = 4
	case c == 'U':
		width = 8
	case c == 'N':
		l.failf(`escape \N, want a character or \u and its number`)
	default: // not an escape: both characters stay
		b.WriteByte('\\')
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(s[:n])
		return n - 1
	}
	if len(s) <= width {
		l.failf(`escape \%c without %d hexadecimal digits`, s[0], width)
	}
	v, err := strconv.ParseUint(s[1:1+width], 16, 32)
	if err != nil || v > unicode.MaxRune || 0xd800 <= v && v < 0xe000 {
		l.failf(`escape \%s, want the number of a character in %d hexadecimal digits`, strconv.Quote(s[:1+width]), width)
	}
	b.WriteRune(rune(v))
	return width
}

// isSpace is Python's str.isspace.
func isSpace(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
