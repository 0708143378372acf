package safetensors

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"ggforge/fault"
)

// scanner walks JSON text of a known grammar. Unlike encoding/json it is safe for hostile headers: duplicate keys are
// reported, numbers are exact integers, and only skip recurses.
type scanner struct {
	path   string
	base   int64  // offset in the file of text[0]
	text   []byte // valid UTF-8
	pos    int
	object string  // the object being read, for errors
	tensor *string // the tensor that is being read; it counts before object
}

// newScanner checks the encoding of the whole text, so strings need no check
// of their own.
func newScanner(path, object string, base int64, text []byte) (*scanner, error) {
	s := &scanner{path: path, base: base, text: text, object: object}
	if utf8.Valid(text) {
		return s, nil
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return nil, s.errorf(i, "is not UTF-8: byte 0x%02x", text[i])
		}
		i += n
	}
}

func (s *scanner) errorf(at int, format string, args ...any) error {
	return &FormatError{Path: s.path, Offset: s.base + int64(at), Object: s.name(), Msg: fmt.Sprintf(format, args...)}
}

func (s *scanner) unsupported(at int, format string, args ...any) error {
	return fault.Errorf(ErrUnsupported, "%s: %s (byte %d): %s", s.path, s.name(), s.base+int64(at),
		fmt.Sprintf(format, args...))
}

// name returns the object being read, for errors.
func (s *scanner) name() string {
	if s.tensor != nil {
		return "tensor " + quote(*s.tensor)
	}
	return s.object
}

// peek steps over white space and returns the next byte, 0 at the end. (A zero
// byte in the text is never valid, so the two need not be distinguished.)
func (s *scanner) peek() byte {
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// want is the error of finding something else than expected at the position.
func (s *scanner) want(what string) error {
	if s.peek(); s.pos >= len(s.text) {
		return s.errorf(s.pos, "want %s, the text ends", what)
	}
	r, _ := utf8.DecodeRune(s.text[s.pos:])
	return s.errorf(s.pos, "want %s, got %q", what, r)
}

// list walks a bracketed, comma-separated list; what names it in errors.
func (s *scanner) list(open, end byte, what string, each func() error) error {
	if s.peek() != open {
		return s.want(what)
	}
	s.pos++
	if s.peek() == end {
		s.pos++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		switch s.peek() {
		case end:
			s.pos++
			return nil
		case ',':
			s.pos++
		default:
			return s.want(fmt.Sprintf("',' or %q", end))
		}
	}
}

// dict calls each for every key of an object, in order, duplicates included;
// at is the position of the key. each reads the value.
func (s *scanner) dict(what string, each func(key string, at int) error) error {
	return s.list('{', '}', what, func() error {
		s.peek()
		at := s.pos
		key, err := s.str("a key")
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.want("':'")
		}
		s.pos++
		return each(key, at)
	})
}

// array calls each before every element of an array; each reads it.
func (s *scanner) array(what string, each func() error) error {
	return s.list('[', ']', what, each)
}

// str reads a string into memory of its own.
func (s *scanner) str(what string) (string, error) {
	if s.peek() != '"' {
		return "", s.want(what)
	}
	s.pos++
	var b strings.Builder // stays empty while there are no escapes
	start := s.pos
	for s.pos < len(s.text) {
		switch c := s.text[s.pos]; {
		case c == '"':
			piece := s.text[start:s.pos]
			s.pos++
			if b.Len() == 0 {
				return string(piece), nil
			}
			b.Write(piece)
			return b.String(), nil
		case c == '\\':
			b.Write(s.text[start:s.pos])
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
			start = s.pos
		case c < ' ':
			return "", s.errorf(s.pos, "control character 0x%02x in a string", c)
		default:
			s.pos++
		}
	}
	return "", s.errorf(s.pos, "the text ends inside a string")
}

// escape reads from a backslash on.
func (s *scanner) escape() (rune, error) {
	at := s.pos
	s.pos++
	if s.pos >= len(s.text) {
		return 0, s.errorf(s.pos, "the text ends inside a string")
	}
	c := s.text[s.pos]
	s.pos++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := s.hex4()
		if ok && utf16.IsSurrogate(r) {
			var low rune
			if ok = bytes.HasPrefix(s.text[s.pos:], []byte(`\u`)); ok {
				s.pos += 2
				low, ok = s.hex4()
				r = utf16.DecodeRune(r, low)
				ok = ok && r != utf8.RuneError
			}
		}
		if ok {
			return r, nil
		}
	}
	return 0, s.errorf(at, "bad escape in a string: %s", quote(string(s.text[at:s.pos])))
}

func (s *scanner) hex4() (rune, bool) {
	if len(s.text)-s.pos < 4 {
		return 0, false
	}
	var r rune
	for _, c := range s.text[s.pos : s.pos+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.pos += 4
	return r, true
}

// uint reads a non-negative integer that fits 64 bits.
func (s *scanner) uint() (uint64, error) {
	s.peek()
	at := s.pos
	token := s.number()
	if token == "" {
		return 0, s.want("a non-negative integer")
	}
	n := uint64(0)
	for _, c := range []byte(token) {
		if c < '0' || c > '9' || token[0] == '0' && len(token) > 1 {
			return 0, s.errorf(at, "want a non-negative integer, got %s", token)
		}
		hi, lo := bits.Mul64(n, 10)
		sum, carry := bits.Add64(lo, uint64(c-'0'), 0)
		if hi != 0 || carry != 0 {
			return 0, s.errorf(at, "%s does not fit 64 bits", token)
		}
		n = sum
	}
	return n, nil
}

// number steps over a run of the characters numbers are made of and returns
// it, shortened if it is longer than any number.
func (s *scanner) number() string {
	const longest = 64
	start := s.pos
	for s.pos < len(s.text) && strings.IndexByte("+-.0123456789Ee", s.text[s.pos]) >= 0 {
		s.pos++
	}
	if s.pos-start > longest {
		return string(s.text[start:start+longest]) + "..."
	}
	return string(s.text[start:s.pos])
}

// literal steps over one of the words of JSON.
func (s *scanner) literal(word string) bool {
	s.peek()
	if !bytes.HasPrefix(s.text[s.pos:], []byte(word)) {
		return false
	}
	s.pos += len(word)
	return true
}

// skip steps over a value of any kind. Of numbers only the characters are checked,
// since they are not used.
func (s *scanner) skip(depth int) error {
	const deepest = 64
	switch c := s.peek(); {
	case depth == deepest:
		return s.errorf(s.pos, "nested deeper than %d", deepest)
	case c == '{':
		return s.dict("an object", func(string, int) error { return s.skip(depth + 1) })
	case c == '[':
		return s.array("an array", func() error { return s.skip(depth + 1) })
	case c == '"':
		_, err := s.str("a string")
		return err
	case s.number() != "", s.literal("true"), s.literal("false"), s.literal("null"):
		return nil
	}
	return s.want("a value")
}

// end checks that only white space follows.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.text) {
		return s.want("nothing after the last '}'")
	}
	return nil
}
