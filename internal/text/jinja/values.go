package jinja

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"ggforge/internal/text/pyjson"
)

// Value is a value of Python:
//
//	nil, bool, int64, float64, string     None, bool, int, float, str
//	bigInt                                an integer of the input beyond 64 bits, which can only be printed and compared
//	markup                                Markup, a string that escapes what is added to it
//	*list, *tuple, *dict, ranged          list, tuple, dict in the order of its keys, range
//	*view                                 what keys(), values() and items() return
//	*generator                            an iterator, which can be read once
//	*undefined                            what a name or key gives that does not exist
//	*namespace, *loop, *macro, *function  Jinja's objects
type Value any

type (
	bigInt    string
	markup    string
	list      struct{ items []Value }
	tuple     struct{ items []Value }
	ranged    struct{ start, step, n int64 }
	generator struct {
		items []Value // what is left
		name  string
	}
	view struct {
		d    *dict
		name string // keys, values, items
	}
	undefined struct {
		text      string // why it does not exist
		forbidden bool   // it exists, but the sandbox hides it
	}
	namespace struct{ vars *dict }
	function  struct {
		name string
		call func(r *run, a *callArgs) Value
	}
)

// dict keeps its keys in order.
type dict struct {
	keys   []Value
	values []Value
	at     map[string]int // by the text of a key that keyOf returns
}

func newDict() *dict { return &dict{at: map[string]int{}} }

func (d *dict) get(key string) (Value, bool) { return d.lookup("s" + key) }

func (d *dict) lookup(key string) (Value, bool) {
	i, ok := d.at[key]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

func (d *dict) put(key string, k, v Value) {
	if i, ok := d.at[key]; ok {
		d.values[i] = v
		return
	}
	d.at[key] = len(d.keys)
	d.keys = append(d.keys, k)
	d.values = append(d.values, v)
}

func (d *dict) set(key string, v Value) { d.put("s"+key, key, v) }

// fromJSON converts a value of package pyjson and counts its bytes.
func (r *run) fromJSON(v any, depth int) Value {
	r.nested(depth)
	r.input += 16
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		if !utf8.ValidString(v) {
			r.failf("the input has an unpaired surrogate in %s", short(v))
		}
		r.input += len(v)
		return v
	case json.Number:
		if !pyjson.IsFloat(v) {
			if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
				return i
			}
			return bigInt(v)
		}
		switch v {
		case "NaN":
			return math.NaN()
		case "Infinity":
			return math.Inf(1)
		case "-Infinity":
			return math.Inf(-1)
		}
		f, _ := strconv.ParseFloat(string(v), 64) // an overflow is infinite, as in Python
		return f
	case []any:
		l := &list{make([]Value, len(v))}
		for i := range v {
			l.items[i] = r.fromJSON(v[i], depth+1)
		}
		return l
	case *pyjson.Object:
		d := newDict()
		if v != nil {
			for _, n := range v.Names {
				r.input += len(n)
				if !utf8.ValidString(n) {
					r.failf("the input has an unpaired surrogate in %s", short(n))
				}
				d.set(n, r.fromJSON(v.Values[n], depth+1))
			}
		}
		return d
	}
	r.failf("the input has a value of Go's type %T", v)
	return nil
}

// typeName returns Python's name of the type of a value.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, bigInt:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *list:
		return "list"
	case *tuple:
		return "tuple"
	case *dict:
		return "dict"
	case ranged:
		return "range"
	case *view:
		return "dict_" + v.name
	case *generator:
		return "generator"
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *loop:
		return "LoopContext"
	case *macro:
		return "Macro"
	}
	return "function"
}

// text returns the characters of a string, Markup included.
func textOf(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// like gives a text the type of another one: Markup stays Markup.
func like(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

// intOf returns the value of an int or bool.
func intOf(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// floatOf returns the value of a number.
func floatOf(v Value) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case bigInt:
		f, _ := strconv.ParseFloat(string(v), 64)
		return f, true
	}
	i, ok := intOf(v)
	return float64(i), ok
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch v := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *tuple:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	case *view:
		return len(v.d.keys) > 0
	case ranged:
		return v.n > 0
	case *loop:
		return len(v.items) > 0
	}
	return true
}

// length is Python's len(v).
func (r *run) length(v Value) int64 {
	switch v := v.(type) {
	case string:
		return int64(r.count(v))
	case markup:
		return int64(r.count(string(v)))
	case *list:
		return int64(len(v.items))
	case *tuple:
		return int64(len(v.items))
	case *dict:
		return int64(len(v.keys))
	case *view:
		return int64(len(v.d.keys))
	case ranged:
		return v.n
	case *loop:
		return int64(len(v.items))
	case *undefined:
		return 0
	}
	r.failf("%s has no length, want a text, list or dict", r.describe(v))
	return 0
}

// count returns the characters of a text.
func (r *run) count(s string) int {
	r.work(len(s) / 64)
	return utf8.RuneCountInString(s)
}

// iterable reports whether a value can be iterated over.
func iterable(v Value) bool {
	switch v.(type) {
	case string, markup, *list, *tuple, *dict, *view, ranged, *generator, *undefined, *loop:
		return true
	}
	return false
}

// iterate returns the elements of a value: characters of a text, keys of a dict. The caller must not change them.
func (r *run) iterate(v Value) []Value {
	switch v := v.(type) {
	case string:
		return r.characters(v, v)
	case markup:
		return r.characters(v, string(v))
	case *list:
		return v.items
	case *tuple:
		return v.items
	case *dict:
		return v.keys
	case *view:
		switch v.name {
		case "keys":
			return v.d.keys
		case "values":
			return v.d.values
		}
		items := make([]Value, len(v.d.keys))
		r.alloc(48 * len(items))
		for i, k := range v.d.keys {
			items[i] = &tuple{[]Value{k, v.d.values[i]}}
		}
		return items
	case ranged:
		items := make([]Value, v.n)
		r.alloc(24 * len(items))
		for i := range items {
			items[i] = v.start + int64(i)*v.step
		}
		return items
	case *generator:
		items := v.items
		v.items = nil
		return items
	case *loop:
		return v.items
	case *undefined:
		return nil
	}
	r.failf("%s is not iterable, want a list, dict or text", r.describe(v))
	return nil
}

func (r *run) characters(v Value, s string) []Value {
	r.alloc(24 * len(s))
	items := make([]Value, 0, len(s))
	for i, c := range s {
		items = append(items, like(v, s[i:i+utf8.RuneLen(c)]))
	}
	return items
}

func (r *run) newList(items []Value) *list {
	r.alloc(16*len(items) + 32)
	return &list{items}
}

func (r *run) newTuple(items ...Value) *tuple {
	r.alloc(16*len(items) + 32)
	return &tuple{items}
}

// keyOf returns a text that is equal for equal keys of a dict: 1, 1.0 and True are one key.
func (r *run) keyOf(v Value, depth int) string {
	r.nested(depth)
	switch v := v.(type) {
	case nil:
		return "n"
	case string:
		return "s" + v
	case markup:
		return "s" + string(v)
	case bigInt:
		return "i" + string(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<63 {
			return "i" + strconv.FormatInt(int64(v), 10)
		}
		return "f" + strconv.FormatUint(math.Float64bits(v), 16)
	case *undefined:
		return "u"
	case *tuple:
		var b strings.Builder
		b.WriteByte('(')
		for _, x := range v.items {
			k := r.keyOf(x, depth+1)
			r.alloc(len(k))
			fmt.Fprintf(&b, "%d:%s", len(k), k)
		}
		return b.String()
	case ranged, *function, *macro, *namespace, *loop, *generator:
		return fmt.Sprintf("p%T%v", v, v)
	}
	if i, ok := intOf(v); ok {
		return "i" + strconv.FormatInt(i, 10)
	}
	r.failf("%s as a key, want a text or number", r.describe(v))
	return ""
}

// describe names a value in an error.
func (r *run) describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case string:
		return "the text " + short(v)
	case markup:
		return "the text " + short(string(v))
	case bool, int64, float64, bigInt:
		return "the " + typeName(v) + " " + r.str(v)
	case *undefined:
		return "an undefined value (" + v.text + ")"
	case *list, *tuple, *dict, *function, *macro, *generator:
		return "a " + typeName(v)
	}
	return "a value of type " + typeName(v)
}

// str is Python's str(v).
func (r *run) str(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case markup:
		return string(v)
	case *undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v, 0)
	return b.String()
}

// repr writes Python's repr(v).
func (r *run) repr(b *strings.Builder, v Value, depth int) {
	r.nested(depth)
	r.work(1)
	before := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case bigInt:
		b.WriteString(string(v))
	case float64:
		b.WriteString(floatRepr(v))
	case string:
		reprText(b, v)
	case markup:
		b.WriteString("Markup(")
		reprText(b, string(v))
		b.WriteByte(')')
	case *list:
		r.reprItems(b, "[", v.items, "]", depth)
	case *tuple:
		if len(v.items) == 1 {
			r.reprItems(b, "(", v.items, ",)", depth)
		} else {
			r.reprItems(b, "(", v.items, ")", depth)
		}
	case *dict:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			r.repr(b, k, depth+1)
			b.WriteString(": ")
			r.repr(b, v.values[i], depth+1)
		}
		b.WriteByte('}')
	case *view:
		r.reprItems(b, "dict_"+v.name+"([", r.iterate(v), "])", depth)
	case ranged:
		fmt.Fprintf(b, "range(%d, %d", v.start, v.start+v.n*v.step)
		if v.step != 1 {
			fmt.Fprintf(b, ", %d", v.step)
		}
		b.WriteByte(')')
	case *undefined:
		b.WriteString("Undefined")
	case *generator:
		b.WriteString("<generator object " + v.name + ">")
	case *namespace:
		b.WriteString("<Namespace ")
		r.repr(b, v.vars, depth+1)
		b.WriteByte('>')
	case *macro:
		b.WriteString("<Macro ")
		reprText(b, v.name)
		b.WriteByte('>')
	case *loop:
		fmt.Fprintf(b, "<LoopContext %d/%d>", v.i+1, len(v.items))
	case *function:
		b.WriteString("<function " + v.name + ">")
	}
	if depth == 0 {
		r.alloc(b.Len() - before)
	} else if b.Len() > MaxMemory {
		r.alloc(b.Len())
	}
}

func (r *run) reprItems(b *strings.Builder, before string, items []Value, after string, depth int) {
	b.WriteString(before)
	for i, x := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		r.repr(b, x, depth+1)
	}
	b.WriteString(after)
}

// reprText writes a text in Python's quotes.
func reprText(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(c):
			b.WriteRune(c)
		case c < 0x100:
			fmt.Fprintf(b, `\x%02x`, c)
		case c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		default:
			fmt.Fprintf(b, `\U%08x`, c)
		}
	}
	b.WriteByte(quote)
}

// floatRepr is Python's repr of a float: the shortest digits that give it back.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// equal is Python's ==.
func (r *run) equal(a, b Value, depth int) bool {
	r.nested(depth)
	r.work(1)
	if s, ok := textOf(a); ok {
		t, ok := textOf(b)
		r.work(min(len(s), len(t)) / 64)
		return ok && s == t
	}
	if x, ok := intOf(a); ok {
		if y, ok := intOf(b); ok {
			return x == y
		}
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case *undefined:
		u, ok := b.(*undefined)
		return ok && u.forbidden == a.forbidden || ok
	case bigInt:
		if b, ok := b.(bigInt); ok {
			return a == b
		}
	case *list:
		b, ok := b.(*list)
		return ok && r.equalItems(a.items, b.items, depth)
	case *tuple:
		b, ok := b.(*tuple)
		return ok && r.equalItems(a.items, b.items, depth)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for i, k := range a.keys {
			v, ok := b.lookup(r.keyOf(k, 0))
			if !ok || !r.equal(a.values[i], v, depth+1) {
				return false
			}
		}
		return true
	case ranged:
		b, ok := b.(ranged)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *view:
		b, ok := b.(*view)
		return ok && a.d == b.d && a.name == b.name
	case *generator, *namespace, *loop, *macro, *function:
		return a == b
	}
	x, ok := floatOf(a)
	y, isNumber := floatOf(b)
	return ok && isNumber && x == y
}

func (r *run) equalItems(a, b []Value, depth int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !r.equal(a[i], b[i], depth+1) {
			return false
		}
	}
	return true
}

// less is Python's a < b.
func (r *run) less(op string, a, b Value, depth int) bool {
	r.nested(depth)
	r.work(1)
	s, ok := textOf(a)
	if t, both := textOf(b); ok && both { // bytes of UTF-8 have the order of characters
		return s < t
	}
	if x, ok := intOf(a); ok {
		if y, ok := intOf(b); ok {
			return x < y
		}
	}
	if x, ok := floatOf(a); ok {
		if y, ok := floatOf(b); ok {
			return x < y
		}
	}
	items := func(v Value) []Value {
		switch v := v.(type) {
		case *list:
			return v.items
		case *tuple:
			return v.items
		}
		return nil
	}
	if typeName(a) == typeName(b) && (typeName(a) == "list" || typeName(a) == "tuple") {
		x, y := items(a), items(b)
		for i := range min(len(x), len(y)) {
			if !r.equal(x[i], y[i], depth+1) {
				return r.less(op, x[i], y[i], depth+1)
			}
		}
		return len(x) < len(y)
	}
	r.failf("%s %s %s, want two numbers, texts or lists", r.describe(a), op, r.describe(b))
	return false
}

// contains is Python's x in of.
func (r *run) contains(x, of Value) bool {
	if s, ok := textOf(of); ok {
		t, ok := textOf(x)
		if !ok {
			r.failf("%s in a text, want a text", r.describe(x))
		}
		r.work(len(s) / 16)
		return strings.Contains(s, t)
	}
	switch of := of.(type) {
	case *dict:
		_, ok := of.lookup(r.keyOf(x, 0))
		return ok
	case *generator: // what precedes a match is read
		for i, y := range of.items {
			if r.equal(x, y, 0) {
				of.items = of.items[i+1:]
				return true
			}
		}
		of.items = nil
		return false
	}
	if !iterable(of) {
		r.failf("in %s, want a list, dict or text", r.describe(of))
	}
	for _, y := range r.iterate(of) {
		if r.equal(x, y, 0) {
			return true
		}
	}
	return false
}
