package vocab

import (
	"strings"

	"ggforge/tokenizer/internal/onig"
)

// A splitter appends the lengths in bytes of the pieces of s, none of which is 0.
type splitter interface {
	split(s string, out []int) ([]int, error)
}

// scanner walks through a text by characters.
type scanner struct {
	s     string
	chars *table
}

// at returns the character at pos, its class and its length; at the end of the text
// the length is 0 and the character -1.
func (c *scanner) at(pos int) (rune, class, int) {
	if pos >= len(c.s) {
		return -1, 0, 0
	}
	r, n := next(c.s[pos:])
	return r, c.chars.of(r), n
}

// run returns the end of the run of characters at pos that are in one of the classes want.
func (c *scanner) run(pos int, want class) int {
	for {
		_, cl, n := c.at(pos)
		if cl&want == 0 {
			return pos
		}
		pos += n
	}
}

// others returns the end of the run of characters at pos that are in none of the classes not.
func (c *scanner) others(pos int, not class) int {
	for {
		_, cl, n := c.at(pos)
		if n == 0 || cl&not != 0 {
			return pos
		}
		pos += n
	}
}

// lineEnds returns the end of the run of line ends at pos.
func (c *scanner) lineEnds(pos int) int {
	for pos < len(c.s) && (c.s[pos] == '\r' || c.s[pos] == '\n') {
		pos++
	}
	return pos
}

// contraction returns the length of 's, 't, 'm, 'd, 're, 've or 'll at pos, 0 without one.
func (c *scanner) contraction(pos int, fold, longS bool) int {
	if c.s[pos] != '\'' {
		return 0
	}
	letter := func(pos int) (rune, int) {
		r, _, n := c.at(pos)
		if fold {
			r = c.chars.toLower(r)
		}
		return r, n
	}
	r, n := letter(pos + 1)
	if longS && r == 'ſ' {
		r = 's'
	}
	switch r {
	case 's', 't', 'm', 'd':
		return 1 + n
	}
	r2, n2 := letter(pos + 1 + n)
	if r == 'r' && r2 == 'e' || r == 'v' && r2 == 'e' || r == 'l' && r2 == 'l' {
		return 1 + n + n2
	}
	return 0
}

// blanks returns the end of the white space at pos that is one piece: up to its last
// line end, if lines is set and there is one; else all but its last character if other
// text follows; else all.
func (c *scanner) blanks(pos int, lines bool) int {
	last, line, end, count := pos, -1, pos, 0
	for {
		r, cl, n := c.at(end)
		if cl&space == 0 {
			break
		}
		last = end
		end += n
		count++
		if r == '\r' || r == '\n' {
			line = end
		}
	}
	switch {
	case lines && line >= 0:
		return line
	case count > 1 && end < len(c.s):
		return last
	case count > 0:
		return end
	}
	_, _, n := c.at(pos)
	return pos + n
}

// gpt2Words splits as the runtime does for
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
type gpt2Words struct{}

func (gpt2Words) split(s string, out []int) ([]int, error) {
	c := &scanner{s, chars()}
	for pos := 0; pos < len(s); {
		start := pos
		if n := c.contraction(pos, false, false); n > 0 {
			pos += n
			out = append(out, n)
			continue
		}
		first := pos
		if s[pos] == ' ' {
			first++
		}
		_, cl, n := c.at(first)
		switch {
		case cl&letter != 0:
			pos = c.run(first, letter)
		case cl&number != 0:
			pos = c.run(first, number)
		case cl&space == 0 && n > 0:
			pos = c.others(first, space|letter|number)
		default:
			pos = c.blanks(pos, false)
		}
		out = append(out, pos-start)
	}
	return out, nil
}

// words splits as the runtime does for expressions of the form
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// for which the runtime has hand-written code.
type words struct {
	digits  int   // longest run of digits
	letters class // the classes that \p{L} matches
	not     class // classes that the piece of other characters excludes
	joiners bool  // U+200C and U+200D are letters, and ſ is an s
}

func (w words) isLetter(c *scanner, pos int) (bool, int) {
	r, cl, n := c.at(pos)
	return cl&w.letters != 0 || w.joiners && (r == 0x200C || r == 0x200D), n
}

func (w words) split(s string, out []int) ([]int, error) {
	c := &scanner{s, chars()}
	for pos := 0; pos < len(s); {
		start := pos
		r, cl, n := c.at(pos)
		if k := c.contraction(pos, true, w.joiners); k > 0 {
			pos += k
			out = append(out, k)
			continue
		}
		if r != '\r' && r != '\n' && cl&number == 0 {
			one, _ := w.isLetter(c, pos)
			two, _ := w.isLetter(c, pos+n)
			if one || two {
				pos += n
				for {
					ok, n := w.isLetter(c, pos)
					if !ok {
						break
					}
					pos += n
				}
				out = append(out, pos-start)
				continue
			}
		}
		pos, out = c.rest(pos, w.digits, w.not, out)
	}
	return out, nil
}

// rest appends the piece at pos, where no word begins: up to some digits, other
// characters with the line ends after them, or white space.
func (c *scanner) rest(pos, digits int, not class, out []int) (int, []int) {
	start := pos
	r, cl, n := c.at(pos)
	if cl&number != 0 {
		for i := 0; i < digits && cl&number != 0; i++ {
			pos += n
			_, cl, n = c.at(pos)
		}
		return pos, append(out, pos-start)
	}
	first := pos
	if r == ' ' {
		first++
		_, cl, n = c.at(first)
	}
	if cl&not == 0 && n > 0 {
		pos = c.lineEnds(c.others(first, not))
	} else {
		pos = c.blanks(pos, true)
	}
	return pos, append(out, pos-start)
}

// kimiWords splits as the runtime does for Kimi K2: Han characters apart from other
// letters, contractions with their word.
type kimiWords struct{}

func (kimiWords) split(s string, out []int) ([]int, error) {
	c := &scanner{s, chars()}
	word := func(pos int) (bool, int) {
		r, cl, n := c.at(pos)
		return cl&letter != 0 && !isHan(r), n
	}
	for pos := 0; pos < len(s); {
		start := pos
		r, cl, n := c.at(pos)
		if isHan(r) {
			for isHan(r) {
				pos += n
				r, _, n = c.at(pos)
			}
			out = append(out, pos-start)
			continue
		}
		ok := cl&letter != 0
		if !ok && r != '\r' && r != '\n' && cl&number == 0 {
			if ok, _ = word(pos + n); ok {
				pos += n
			}
		}
		if ok {
			for ok {
				if ok, n = word(pos); ok {
					pos += n
				}
			}
			if pos < len(s) {
				pos += c.contraction(pos, true, false)
			}
			out = append(out, pos-start)
			continue
		}
		pos, out = c.rest(pos, 3, space|letter|number, out)
	}
	return out, nil
}

// threes splits runs of digits into groups of three from the end. The text before a run
// is in one piece with its first group.
type threes struct{}

func (threes) split(s string, out []int) ([]int, error) {
	c := &scanner{s, chars()}
	start := 0
	for pos := 0; pos < len(s); {
		_, cl, n := c.at(pos)
		if cl&number == 0 {
			pos += n
			continue
		}
		count := 0
		for end := pos; cl&number != 0; count++ {
			end += n
			_, cl, n = c.at(end)
		}
		for ; count > 0; count-- {
			_, _, n = c.at(pos)
			pos += n
			if (count-1)%3 == 0 {
				out = append(out, pos-start)
				start = pos
			}
		}
	}
	if start < len(s) {
		out = append(out, len(s)-start)
	}
	return out, nil
}

// lines splits line feeds from everything else.
type lines struct{}

func (lines) split(s string, out []int) ([]int, error) {
	for len(s) > 0 {
		n := strings.IndexByte(s, '\n')
		if n < 0 {
			n = len(s)
		}
		if n == 0 {
			for n < len(s) && s[n] == '\n' {
				n++
			}
		}
		out = append(out, n)
		s = s[n:]
	}
	return out, nil
}

// expression splits a text into the matches of a regular expression and the text between them.
//
// The runtime matches with C++'s std::regex, which has no Unicode classes. If the
// expression has such classes, the runtime replaces them, and each character outside
// ASCII, by one of six characters for the class (all letters are equal). White space
// outside ASCII becomes a vertical tab in any case.
type expression struct {
	re      *onig.Regexp
	classes bool
}

// classChars are the characters that replace the classes in a text, and classASCII the
// ASCII characters of each class. All other characters become otherChar.
var (
	classChars = map[string]string{"N": "Ñ", "L": "Ò", "P": "Ó", "M": "Ô", "S": "Õ"}
	classASCII = map[string]string{"N": `0-9`, "L": `A-Za-z`, "P": `!-#%-*,\-\./:;?@\[\\\]_\{\}`,
		"S": `\$\+<=>\^` + "`" + `\|~`}
)

const otherChar = "Ð"

// stands returns the text that replaces a character of a class.
func stands(cl class) string {
	switch {
	case cl&number != 0:
		return classChars["N"]
	case cl&letter != 0:
		return classChars["L"]
	case cl&punct != 0:
		return classChars["P"]
	case cl&mark != 0:
		return classChars["M"]
	case cl&symbol != 0:
		return classChars["S"]
	}
	return otherChar
}

// newExpression compiles an expression of the table. The table has no expression with
// an escaped bracket before a Unicode class.
func newExpression(text string) (*expression, error) {
	e := &expression{classes: strings.Contains(text, `\p{`)}
	var b strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && text[i+1] == 'p':
			end := i + strings.IndexByte(text[i:], '}')
			name := text[i+3 : end][:1] // letters of any kind are letters
			set := classChars[name] + classASCII[name]
			if !inside {
				set = "[" + set + "]"
			}
			b.WriteString(set)
			i = end
		case c == '\\' && text[i+1] == 'd':
			b.WriteString(`[0-9]`)
			i++
		case c == '\\':
			b.WriteString(text[i : i+2])
			i++
		case c == '$' && !inside:
			b.WriteString(`\z`)
		default:
			if c == '[' {
				inside = true
			} else if c == ']' {
				inside = false
			}
			b.WriteByte(c)
		}
	}
	var err error
	e.re, err = onig.Compile(b.String())
	return e, err
}

// seen returns the text that the expression is matched with: s with each character replaced by one.
func (e *expression) seen(s string) string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if ascii {
		return s
	}
	t := chars()
	b := make([]byte, 0, len(s))
	for len(s) > 0 {
		r, n := next(s)
		switch cl := t.of(r); {
		case r < 0x80:
			b = append(b, byte(r))
		case cl&space != 0:
			b = append(b, '\v')
		case e.classes:
			b = append(b, stands(cl)...)
		case n == 3 && 0xD800 <= r && r < 0xE000:
			b = append(b, "\uFFFD"...)
		default:
			b = append(b, s[:n]...)
		}
		s = s[n:]
	}
	return string(b)
}

func (e *expression) split(s string, out []int) ([]int, error) {
	seen := e.seen(s)
	matches, err := e.re.All(seen)
	if err != nil {
		return nil, err
	}
	same := len(seen) == len(s) && seen == s
	at, start := 0, 0 // the same position in seen and in s
	cut := func(to int) {
		end := to
		if !same {
			end = start
			for at < to {
				_, n := next(s[end:])
				end += n
				_, n = next(seen[at:])
				at += n
			}
		}
		if end > start {
			out = append(out, end-start)
		}
		start = end
	}
	for _, m := range matches {
		cut(m[0])
		cut(m[1])
	}
	cut(len(seen))
	return out, nil
}
