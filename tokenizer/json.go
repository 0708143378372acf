package tokenizer

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The values of a JSON text: nil, bool, json.Number, string, []any and *object.
//
// encoding/json is not used because it loses what decides bytes here: the order
// of members, invalid UTF-8 and unpaired surrogates (it replaces both), and the
// constants NaN, Infinity and -Infinity that Python's json module writes.

// object is a JSON object in the order of its members. A name that is repeated
// keeps its first place and its last value.
type object struct {
	names  []string
	values map[string]any
}

func (o *object) get(name string) any {
	if o == nil {
		return nil
	}
	return o.values[name]
}

func (o *object) lookup(name string) (any, bool) {
	if o == nil {
		return nil, false
	}
	v, ok := o.values[name]
	return v, ok
}

func (o *object) set(name string, v any) {
	if _, ok := o.values[name]; !ok {
		o.names = append(o.names, name)
	}
	o.values[name] = v
}

// empty also holds for an object that is not there.
func (o *object) empty() bool { return o == nil || len(o.names) == 0 }

// truthy is Python's rule for a value in a condition.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		return err != nil || f != 0 // NaN, Infinity and numbers out of range are not 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case *object:
		return !v.empty()
	}
	return true
}

// integer returns the value of a JSON integer, and 0 or 1 for a bool, which
// Python counts among the integers. ok is false for everything else, also for
// numbers written with a point or an exponent.
func integer(v any) (i *big.Int, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case json.Number:
		if len(v) <= 4300 { // more digits are an error in Python
			return new(big.Int).SetString(string(v), 10)
		}
	}
	return nil, false
}

// describe names the type of a value in an error.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return "number " + string(v)
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

// isFile reports whether name is there as a regular file.
func isFile(fsys fs.FS, name string) bool {
	fi, err := fs.Stat(fsys, name)
	return err == nil && fi.Mode().IsRegular()
}

// readObject reads a file that holds one JSON object.
func readObject(fsys fs.FS, name string) (*object, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	v, err := parseJSON(name, data)
	if err != nil {
		return nil, err
	}
	o, ok := v.(*object)
	if !ok {
		return nil, badf(name, "want a JSON object, got %s", describe(v))
	}
	return o, nil
}

// readObjectIfFile is readObject for a file that may be absent; then the object is nil.
func readObjectIfFile(fsys fs.FS, name string) (*object, error) {
	if !isFile(fsys, name) {
		return nil, nil
	}
	return readObject(fsys, name)
}

// readText reads a UTF-8 text file. Line ends CR LF and CR become LF.
func readText(fsys fs.FS, name string) (string, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", err
	}
	if off := invalidUTF8(data); off >= 0 {
		return "", &FormatError{name, int64(off), "not UTF-8 text"}
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	off := 0
	for {
		r, n := utf8.DecodeRune(data[off:])
		if r == utf8.RuneError && n <= 1 {
			return off
		}
		off += n
	}
}

// maxDepth bounds how deep lists and objects may be nested. Python stops
// somewhere near it; tokenizer files stay below ten.
const maxDepth = 900

type jsonParser struct {
	data  string
	pos   int
	depth int
}

// parseJSON parses one JSON value, with errors naming file.
func parseJSON(file string, data []byte) (v any, err error) {
	if off := invalidUTF8(data); off >= 0 {
		return nil, &FormatError{file, int64(off), "not UTF-8 text"}
	}
	p := &jsonParser{data: string(data)}
	p.space()
	v, msg := p.value()
	if msg == "" {
		p.space()
		if p.pos < len(p.data) {
			msg = "something follows the JSON value"
		}
	}
	if msg != "" {
		return nil, &FormatError{file, int64(p.pos), "JSON: " + msg}
	}
	return v, nil
}

func (p *jsonParser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		default:
			return
		}
	}
}

// take consumes s if it comes next.
func (p *jsonParser) take(s string) bool {
	if strings.HasPrefix(p.data[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

// constants are the words of JSON and of Python's extension.
var constants = []struct {
	word  string
	value any
}{
	{"null", nil}, {"true", true}, {"false", false},
	{"NaN", json.Number("NaN")}, {"Infinity", json.Number("Infinity")}, {"-Infinity", json.Number("-Infinity")},
}

// value parses one value. msg is empty when it succeeds; else p.pos is where it
// failed. The same holds for the methods below.
func (p *jsonParser) value() (v any, msg string) {
	if p.pos == len(p.data) {
		return nil, "want a value, got the end"
	}
	switch p.data[p.pos] {
	case '"':
		return p.str()
	case '{', '[':
		if p.depth++; p.depth > maxDepth {
			return nil, fmt.Sprintf("nested deeper than %d", maxDepth)
		}
		defer func() { p.depth-- }()
		if p.data[p.pos] == '{' {
			return p.object()
		}
		return p.list()
	}
	for _, c := range constants {
		if p.take(c.word) {
			return c.value, ""
		}
	}
	return p.number()
}

func (p *jsonParser) object() (any, string) {
	o := &object{values: make(map[string]any)}
	p.pos++
	p.space()
	if p.take("}") {
		return o, ""
	}
	for {
		if p.pos == len(p.data) || p.data[p.pos] != '"' {
			return nil, "want a member name"
		}
		name, msg := p.str()
		if msg != "" {
			return nil, msg
		}
		p.space()
		if !p.take(":") {
			return nil, "want ':'"
		}
		p.space()
		v, msg := p.value()
		if msg != "" {
			return nil, msg
		}
		o.set(name.(string), v)
		p.space()
		if p.take("}") {
			return o, ""
		}
		if !p.take(",") {
			return nil, "want ',' or '}'"
		}
		p.space()
	}
}

func (p *jsonParser) list() (any, string) {
	l := []any{}
	p.pos++
	p.space()
	if p.take("]") {
		return l, ""
	}
	for {
		v, msg := p.value()
		if msg != "" {
			return nil, msg
		}
		l = append(l, v)
		p.space()
		if p.take("]") {
			return l, ""
		}
		if !p.take(",") {
			return nil, "want ',' or ']'"
		}
		p.space()
	}
}

func (p *jsonParser) number() (any, string) {
	start := p.pos
	digits := func() bool {
		from := p.pos
		for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
			p.pos++
		}
		return p.pos > from
	}
	p.take("-")
	if !p.take("0") && !digits() {
		p.pos = start
		return nil, "want a value"
	}
	for _, part := range []string{".", "eE"} { // a part without digits is left for the caller to stumble over
		back := p.pos
		if p.pos == len(p.data) || !strings.Contains(part, p.data[p.pos:p.pos+1]) {
			continue
		}
		p.pos++
		if part == "eE" && !p.take("+") {
			p.take("-")
		}
		if !digits() {
			p.pos = back
			break
		}
	}
	return json.Number(p.data[start:p.pos]), ""
}

// str parses a string. An unpaired surrogate is kept as the three bytes that
// UTF-8 would have for it, so that text with one fails utf8.ValidString.
func (p *jsonParser) str() (any, string) {
	p.pos++
	start := p.pos
	for p.pos < len(p.data) && p.data[p.pos] != '"' && p.data[p.pos] != '\\' && p.data[p.pos] >= ' ' {
		p.pos++
	}
	if p.pos < len(p.data) && p.data[p.pos] == '"' { // nothing to unescape
		p.pos++
		return p.data[start : p.pos-1], ""
	}
	b := []byte(p.data[start:p.pos])
	for p.pos < len(p.data) {
		c := p.data[p.pos]
		switch {
		case c == '"':
			p.pos++
			return string(b), ""
		case c < ' ':
			return nil, fmt.Sprintf("control character %#02x inside a string", c)
		case c != '\\':
			b = append(b, c)
			p.pos++
		case p.pos+1 < len(p.data) && strings.IndexByte(escapes, p.data[p.pos+1]) >= 0:
			b = append(b, escaped[strings.IndexByte(escapes, p.data[p.pos+1])])
			p.pos += 2
		default:
			r, ok := p.unicodeEscape()
			if !ok {
				return nil, "bad escape"
			}
			if utf16.IsSurrogate(r) && r < 0xDC00 {
				back := p.pos
				if low, ok := p.unicodeEscape(); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
				} else {
					p.pos = back
				}
			}
			if utf16.IsSurrogate(r) {
				b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
			} else {
				b = utf8.AppendRune(b, r)
			}
		}
	}
	return nil, "string without an end"
}

// escapes are the letters after a backslash and escaped what they stand for.
const (
	escapes = `"\/bfnrt`
	escaped = "\"\\/\b\f\n\r\t"
)

// unicodeEscape parses \uXXXX.
func (p *jsonParser) unicodeEscape() (rune, bool) {
	if len(p.data)-p.pos < 6 || p.data[p.pos:p.pos+2] != `\u` {
		return 0, false
	}
	u, err := strconv.ParseUint(p.data[p.pos+2:p.pos+6], 16, 16)
	if err != nil {
		return 0, false
	}
	p.pos += 6
	return rune(u), true
}
