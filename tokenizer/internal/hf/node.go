package hf

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
)

// node reads the members of one JSON object. *err keeps the first error, with its path; later reads return zero values.
type node struct {
	path  string
	obj   *pyjson.Object
	err   *error
	parts *int // number of parts read from the file, see bounded
}

// failf sets an ErrBroken.
func (n node) failf(format string, args ...any) {
	if *n.err == nil {
		*n.err = badf("%s: %s", n.path, fmt.Sprintf(format, args...))
	}
}

// unknown sets an ErrUnsupported for a value that is not supported.
func (n node) unknown(what string, value any) {
	if *n.err == nil {
		*n.err = unsupportedf("%s: %s %q is not known", n.path, what, value)
	}
}

// has reports whether a member is there and not null.
func (n node) has(name string) bool { return n.obj.Get(name) != nil }

// wrong sets the error for a member that is missing or of the wrong type.
func (n node) wrong(name, want string) {
	if v, ok := n.obj.Lookup(name); !ok {
		n.failf("no %q, want %s", name, want)
	} else {
		n.failf("%s: want %s, got %s", name, want, pyjson.Describe(v))
	}
}

func (n node) str(name string) string {
	s, ok := n.obj.Get(name).(string)
	if !ok || !utf8.ValidString(s) {
		n.wrong(name, "a string of Unicode text")
	}
	return s
}

// strOr is str for a member that may be absent or null.
func (n node) strOr(name, def string) string {
	if !n.has(name) {
		return def
	}
	return n.str(name)
}

func (n node) char(name string) rune {
	s := n.str(name)
	r, size := utf8.DecodeRuneInString(s)
	if s == "" || size != len(s) {
		n.failf("%s: want one character, got %q", name, s)
	}
	return r
}

func (n node) boolean(name string) bool {
	b, ok := n.obj.Get(name).(bool)
	if !ok {
		n.wrong(name, "true or false")
	}
	return b
}

// boolOr is boolean for a member that may be absent or null.
func (n node) boolOr(name string, def bool) bool {
	if !n.has(name) {
		return def
	}
	return n.boolean(name)
}

// count reads a number or an id: an unsigned integer of 32 bits.
func (n node) count(name string) int {
	i, ok := count(n.obj.Get(name))
	if !ok {
		n.wrong(name, "an integer from 0 to 4294967295")
	}
	return i
}

func count(v any) (int, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseUint(string(text), 10, 32)
	return int(i), err == nil
}

func number(v any) (float64, bool) {
	text, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil && !math.IsNaN(f) && !math.IsInf(f, 0)
}

func (n node) list(name string) []any {
	l, ok := n.obj.Get(name).([]any)
	if !ok {
		n.wrong(name, "a list")
	}
	return l
}

// child returns a member that is an object.
func (n node) child(name string) node {
	o, ok := n.obj.Get(name).(*pyjson.Object)
	if !ok {
		n.wrong(name, "an object")
	}
	return node{n.path + "." + name, o, n.err, n.parts}
}

// children returns a member that is a list of objects.
func (n node) children(name string) []node {
	var out []node
	if *n.err != nil {
		return nil
	}
	for i, e := range n.list(name) {
		o, ok := e.(*pyjson.Object)
		if !ok {
			n.failf("%s[%d]: want an object, got %s", name, i, pyjson.Describe(e))
		}
		out = append(out, node{fmt.Sprintf("%s.%s[%d]", n.path, name, i), o, n.err, n.parts})
	}
	return out
}

// tooMany sets the error for a member beyond a limit.
func (n node) tooMany(name, what string, found, limit int) {
	n.failf("%s: %d %s, want at most %d", name, found, what, limit)
}

// bounded adds the elements of a sequence to parts, and sets an error above maxParts.
func (n node) bounded(name string) {
	if *n.parts += len(n.list(name)); *n.parts > maxParts && *n.err == nil {
		*n.err = unsupportedf("%s.%s: more than %d parts", n.path, name, maxParts)
	}
}
