// Package pyjson parses JSON as Python's json module does, which is how the
// reference reads the files of a checkpoint, and is the one model of their values:
// nil, bool, json.Number, string, []any and *Object.
//
// encoding/json does not parse them because it loses facts that the output depends on: the order of members, invalid
// UTF-8 and unpaired surrogates (it replaces both), and the constants NaN, Infinity and -Infinity that Python writes.
package pyjson

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The limits of a text. Time and memory stay within a small multiple of it.
const (
	// maxDepth bounds how deep lists and objects may be nested. Python stops
	// somewhere near it; real files stay below ten.
	maxDepth = 900
	// maxValues bounds the values of a text, each of which takes some tens of
	// bytes however short it is. The largest file known, the tokenizer.json of
	// Gemma, has 1.8 million.
	maxValues = 8 << 20
	// MaxDigits bounds the digits of an integer, as in Python.
	MaxDigits = 4300
)

// Object is a JSON object in the order of its members. A name that is repeated
// keeps its first place and its last value. A nil Object is an empty one.
type Object struct {
	Names  []string
	Values map[string]any
	// Others counts the members whose key is not a string: YAML has some, JSON
	// none.
	Others int
}

// NewObject returns an object without members.
func NewObject() *Object { return &Object{Values: map[string]any{}} }

// Get returns the value of a member, nil if there is none.
func (o *Object) Get(name string) any {
	v, _ := o.Lookup(name)
	return v
}

// Lookup returns the value of a member and whether there is one.
func (o *Object) Lookup(name string) (any, bool) {
	if o == nil {
		return nil, false
	}
	v, ok := o.Values[name]
	return v, ok
}

// Set gives a member a value.
func (o *Object) Set(name string, v any) {
	if _, ok := o.Values[name]; !ok {
		o.Names = append(o.Names, name)
	}
	o.Values[name] = v
}

// Empty reports whether there are no members.
func (o *Object) Empty() bool { return o == nil || len(o.Names)+o.Others == 0 }

// Map returns the object as maps, for code that needs no order: nested objects
// are map[string]any, too.
func (o *Object) Map() map[string]any {
	m := make(map[string]any, len(o.Names))
	for name, v := range o.Values {
		m[name] = plain(v)
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case *Object:
		return v.Map()
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	}
	return v
}

// Truthy is Python's rule for a value in a condition.
func Truthy(v any) bool {
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
	case *Object:
		return !v.Empty()
	}
	return true
}

// IsFloat reports whether a number is a float to Python: one with a point or an
// exponent, or one of the constants NaN, Infinity and -Infinity.
func IsFloat(n json.Number) bool { return strings.ContainsAny(string(n), ".eEIN") }

// Integer returns the value of a JSON integer, and 0 or 1 for a bool, which
// Python counts among the integers. ok is false for everything else, also for
// numbers written with a point or an exponent.
func Integer(v any) (i *big.Int, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return big.NewInt(1), true
		}
		return new(big.Int), true
	case json.Number:
		if len(v) <= MaxDigits+1 {
			return new(big.Int).SetString(string(v), 10)
		}
	}
	return nil, false
}

// Float32 returns the float32 that Python packs for a number or a bool. ok is
// false for a finite number that overflows it, and for text, also where that
// spells a number.
func Float32(v any) (f float32, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case json.Number:
		wide, err := strconv.ParseFloat(string(v), 64)
		if err != nil && (!math.IsInf(wide, 0) || !IsFloat(v)) {
			return 0, false
		}
		f = float32(wide)
		return f, !math.IsInf(float64(f), 0) || math.IsInf(wide, 0)
	}
	return 0, false
}

// maxQuoted bounds the characters of a value that an error shows.
const maxQuoted = 40

// Quote returns s in quotes, cut where it is long.
func Quote(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "…"
	}
	return strconv.Quote(s)
}

// Describe names a value in an error: its type, and the value where it is short.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		if len(v) > maxQuoted {
			return fmt.Sprintf("a number of %d digits", len(v))
		}
		return "the number " + string(v)
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

// SyntaxError is the place where a text is not JSON, or exceeds a limit.
type SyntaxError struct {
	Offset int64 // byte in the text
	Msg    string
	Limit  bool
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg) }

// InvalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func InvalidUTF8(data []byte) int {
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

type parser struct {
	data  string
	pos   int
	depth int
	left  int  // values that may still come
	limit bool // the error is about a limit
}

// Parse parses one JSON value: nil, bool, json.Number, string, []any or *Object.
// Numbers keep their text; the constants of Python's extension are numbers. An
// error is a *SyntaxError.
func Parse(data []byte) (any, error) { return parse(data, maxValues) }

func parse(data []byte, limit int) (any, error) {
	if off := InvalidUTF8(data); off >= 0 {
		return nil, &SyntaxError{Offset: int64(off), Msg: "not UTF-8 text"}
	}
	p := &parser{data: string(data), left: limit}
	p.space()
	v, msg := p.value()
	if msg == "" {
		p.space()
		if p.pos < len(p.data) {
			msg = "something follows the JSON value"
		}
	}
	if msg != "" {
		return nil, &SyntaxError{int64(p.pos), "JSON: " + msg, p.limit}
	}
	return v, nil
}

func (p *parser) space() {
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
func (p *parser) take(s string) bool {
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
func (p *parser) value() (v any, msg string) {
	if p.pos == len(p.data) {
		return nil, "want a value, found the end"
	}
	if p.left--; p.left < 0 {
		p.limit = true
		return nil, "too many values"
	}
	switch p.data[p.pos] {
	case '"':
		return p.str()
	case '{', '[':
		if p.depth++; p.depth > maxDepth {
			p.limit = true
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

func (p *parser) object() (any, string) {
	p.pos++
	p.space()
	if p.take("}") {
		return NewObject(), ""
	}
	var (
		names  []string
		values []any
	)
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
		names, values = append(names, name.(string)), append(values, v)
		p.space()
		if p.take("}") {
			return objectOf(names, values), ""
		}
		if !p.take(",") {
			return nil, "want ',' or '}'"
		}
		p.space()
	}
}

// objectOf returns the object of members in the order in which they were read. The
// map is made at its size: a large one that grows leaves twice its size to collect.
func objectOf(names []string, values []any) *Object {
	o := &Object{Names: names[:0], Values: make(map[string]any, len(names))}
	for i, name := range names {
		o.Set(name, values[i])
	}
	return o
}

func (p *parser) list() (any, string) {
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

func (p *parser) number() (any, string) {
	start := p.pos
	digits := func() bool {
		from := p.pos
		for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
			p.pos++
		}
		return p.pos > from
	}
	p.take("-")
	first := p.pos
	if !p.take("0") && !digits() {
		p.pos = start
		return nil, "want a value"
	}
	nDigits := p.pos - first
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
	n := json.Number(p.data[start:p.pos])
	if nDigits > MaxDigits && !IsFloat(n) {
		p.pos, p.limit = start, true
		return nil, fmt.Sprintf("an integer of %d digits, want at most %d", nDigits, MaxDigits)
	}
	return n, ""
}

// str parses a string. An unpaired surrogate is kept as the three bytes that
// UTF-8 would have for it, so that text with one fails utf8.ValidString.
func (p *parser) str() (any, string) {
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

// escapes are the letters after a backslash, and escaped are the characters that they stand for.
const (
	escapes = `"\/bfnrt`
	escaped = "\"\\/\b\f\n\r\t"
)

// unicodeEscape parses \uXXXX.
func (p *parser) unicodeEscape() (rune, bool) {
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
