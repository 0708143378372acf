package jinja

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// jsonStyle holds the options of Python's json.dumps.
type jsonStyle struct {
	ascii, sorted bool
	indent        string
	lines         bool // members on lines of their own
	item, key     string
}

// toJSON is transformers' filter tojson.
func toJSON(r *run, v []Value) Value {
	s := jsonStyle{ascii: optional(v[1], false, truth), item: ", ", key: ": ", sorted: optional(v[4], false, truth)}
	switch in := given(v[2]).(type) {
	case nil:
	case string:
		s.lines, s.indent = true, in
	case markup:
		s.lines, s.indent = true, string(in)
	default:
		n := r.int("indent", in)
		s.lines, s.indent = true, r.repeat(" ", n)
	}
	if s.lines {
		s.item = ","
	}
	if sep := given(v[3]); sep != nil {
		items := r.iterate(sep)
		if len(items) != 2 {
			r.failf("separators of tojson: %d texts, want 2", len(items))
		}
		s.item, s.key = r.text("separators", items[0]), r.text("separators", items[1])
	}
	var b strings.Builder
	r.json(&b, v[0], &s, 0)
	r.alloc(b.Len())
	return b.String()
}

func (r *run) json(b *strings.Builder, v Value, s *jsonStyle, depth int) {
	r.nested(depth)
	r.work(1)
	if b.Len() > MaxOutput {
		r.limit("tojson makes more than %d bytes", MaxOutput)
	}
	line := func(depth int) {
		if s.lines {
			b.WriteByte('\n')
			r.work(depth * len(s.indent) / 16)
			for range depth {
				b.WriteString(s.indent)
				if b.Len() > MaxOutput {
					r.limit("tojson makes more than %d bytes", MaxOutput)
				}
			}
		}
	}
	items := func(items []Value) {
		if len(items) == 0 {
			b.WriteString("[]")
			return
		}
		b.WriteByte('[')
		for i, x := range items {
			if i > 0 {
				b.WriteString(s.item)
			}
			line(depth + 1)
			r.json(b, x, s, depth+1)
		}
		line(depth)
		b.WriteByte(']')
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		fmt.Fprint(b, v)
	case int64:
		fmt.Fprint(b, v)
	case bigInt:
		b.WriteString(string(v))
	case float64:
		b.WriteString(jsonFloat(v))
	case string:
		jsonText(b, v, s.ascii)
	case markup:
		jsonText(b, string(v), s.ascii)
	case *list:
		items(v.items)
	case *tuple:
		items(v.items)
	case *dict:
		if len(v.keys) == 0 {
			b.WriteString("{}")
			return
		}
		b.WriteByte('{')
		order := make([]int, len(v.keys))
		for i := range order {
			order[i] = i
		}
		if s.sorted {
			slices.SortStableFunc(order, func(i, j int) int {
				switch {
				case r.less("<", v.keys[i], v.keys[j], 0):
					return -1
				case r.less("<", v.keys[j], v.keys[i], 0):
					return 1
				}
				return 0
			})
		}
		for n, i := range order {
			if n > 0 {
				b.WriteString(s.item)
			}
			line(depth + 1)
			jsonText(b, r.jsonKey(v.keys[i]), s.ascii)
			b.WriteString(s.key)
			r.json(b, v.values[i], s, depth+1)
		}
		line(depth)
		b.WriteByte('}')
	default:
		r.failf("tojson of %s, want what JSON has", r.describe(v))
	}
}

// jsonKey returns the text of a key.
func (r *run) jsonKey(k Value) string {
	switch k := k.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprint(k)
	case float64:
		return jsonFloat(k)
	case string, markup, int64, bigInt:
		return r.str(k)
	}
	r.failf("tojson of a dict with the key %s, want a text or number", r.describe(k))
	return ""
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

func jsonText(b *strings.Builder, s string, ascii bool) {
	b.WriteByte('"')
	for _, c := range s {
		switch c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
			continue
		case '\n':
			b.WriteString(`\n`)
			continue
		case '\r':
			b.WriteString(`\r`)
			continue
		case '\t':
			b.WriteString(`\t`)
			continue
		case '\f':
			b.WriteString(`\f`)
			continue
		case '\b':
			b.WriteString(`\b`)
			continue
		}
		switch {
		case c < 0x20 || ascii && 0x7f <= c && c < 0x10000:
			fmt.Fprintf(b, `\u%04x`, c)
		case ascii && c >= 0x10000:
			hi, lo := utf16.EncodeRune(c)
			fmt.Fprintf(b, `\u%04x\u%04x`, hi, lo)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
}
