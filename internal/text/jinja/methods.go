package jinja

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type method struct {
	params []string
	named  []string // the parameters that can be given by name
	fn     func(r *run, self Value, v []Value) Value
	raw    func(r *run, self Value, a *callArgs) Value // instead of fn, of a method with any number of arguments
}

// typeOf returns the key of methods for a value.
func typeOf(v Value) string {
	switch v.(type) {
	case string, markup:
		return "str"
	case bool, int64, bigInt:
		return "int"
	}
	return typeName(v)
}

// methods are the methods of Python's types. One without a function exists, so that "is defined" is true, but cannot
// be called.
var methods map[string]map[string]method

func init() { // format looks for attributes
	m := func(params string, fn func(r *run, self Value, v []Value) Value) method {
		return method{params: strings.Fields(params), fn: fn}
	}
	text := func(params string, fn func(r *run, s string, v []Value) Value) method {
		return m(params, func(r *run, self Value, v []Value) Value {
			s, _ := textOf(self)
			r.work(len(s) / 64)
			out := fn(r, s, v)
			if t, ok := out.(string); ok {
				return like(self, t)
			}
			return out
		})
	}
	convert := func(fn func(string) string) method {
		return text("", func(r *run, s string, v []Value) Value { r.alloc(2 * len(s)); return fn(s) })
	}
	is := func(fn func(rune) bool) method {
		return text("", func(r *run, s string, v []Value) Value {
			return s != "" && strings.IndexFunc(s, func(c rune) bool { return !fn(c) }) < 0
		})
	}
	stripped := func(left, right bool) method {
		return text("chars?", func(r *run, s string, v []Value) Value { return strip(r, s, v[0], left, right) })
	}
	split := func(right bool) method {
		s := m("sep? maxsplit?", func(r *run, self Value, v []Value) Value { return splitText(r, self, v, right) })
		s.named = []string{"sep", "maxsplit"}
		return s
	}
	find := func(last, must bool) method {
		return text("sub start? end?", func(r *run, s string, v []Value) Value { return findText(r, s, v, last, must) })
	}
	affix := func(has func(s, t string) bool) method {
		return text("prefix start? end?", func(r *run, s string, v []Value) Value {
			s, ok := cut(r, s, v[1], v[2])
			if l, is := v[0].(*tuple); is {
				return slices.ContainsFunc(l.items, func(x Value) bool { return has(s, r.text("prefix", x)) && ok })
			}
			return has(s, r.text("prefix", v[0])) && ok
		})
	}
	partition := func(last bool) method {
		return m("sep", func(r *run, self Value, v []Value) Value {
			s, _ := textOf(self)
			sep := r.text("sep", v[0])
			if sep == "" {
				r.failf("partition by an empty text")
			}
			i := strings.Index(s, sep)
			if last {
				i = strings.LastIndex(s, sep)
			}
			t := func(s string) Value { return like(self, s) }
			switch {
			case i >= 0:
				return r.newTuple(t(s[:i]), t(sep), t(s[i+len(sep):]))
			case last:
				return r.newTuple(t(""), t(""), t(s))
			}
			return r.newTuple(t(s), t(""), t(""))
		})
	}
	pad := func(align string) method {
		return text("width fillchar?", func(r *run, s string, v []Value) Value {
			fill := optional(v[1], " ", func(v Value) string { return r.text("fillchar", v) })
			if utf8.RuneCountInString(fill) != 1 {
				r.failf("fillchar %s, want one character", short(fill))
			}
			return r.pad(s, r.int("width", v[0]), fill, align)
		})
	}
	str := map[string]method{
		"capitalize": convert(capitalize),
		"casefold":   convert(lower),
		"center":     pad("^"),
		"count": text("sub start? end?", func(r *run, s string, v []Value) Value {
			s, ok := cut(r, s, v[1], v[2])
			if !ok {
				return int64(0)
			}
			return int64(strings.Count(s, r.text("sub", v[0])))
		}),
		"endswith":  affix(strings.HasSuffix),
		"find":      find(false, false),
		"format":    {raw: func(r *run, self Value, a *callArgs) Value { return r.format(self, a) }},
		"index":     find(false, true),
		"isalnum":   is(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsNumber(c) }),
		"isalpha":   is(unicode.IsLetter),
		"isascii":   text("", func(r *run, s string, v []Value) Value { return len(s) == utf8.RuneCountInString(s) }),
		"isdecimal": is(unicode.IsDigit),
		"isdigit":   is(func(c rune) bool { return unicode.IsDigit(c) || unicode.Is(unicode.No, c) && isSuper(c) }),
		"islower":   text("", func(r *run, s string, v []Value) Value { return isCase(s, unicode.IsLower, unicode.IsUpper) }),
		"isnumeric": is(unicode.IsNumber),
		"isspace":   is(isSpace),
		"isupper":   text("", func(r *run, s string, v []Value) Value { return isCase(s, unicode.IsUpper, unicode.IsLower) }),
		"join": m("iterable", func(r *run, self Value, v []Value) Value {
			sep, _ := textOf(self)
			return like(self, r.join(sep, r.iterate(v[0]), func(v Value) string {
				s := r.text("join", v)
				if _, safe := v.(markup); !safe && typeName(self) == "Markup" {
					s = escape(s)
				}
				return s
			}))
		}),
		"ljust":     pad("<"),
		"lower":     convert(lower),
		"lstrip":    stripped(true, false),
		"partition": partition(false),
		"removeprefix": text("prefix", func(r *run, s string, v []Value) Value {
			return strings.TrimPrefix(s, r.text("prefix", v[0]))
		}),
		"removesuffix": text("suffix", func(r *run, s string, v []Value) Value {
			return strings.TrimSuffix(s, r.text("suffix", v[0]))
		}),
		"replace": m("old new count?", func(r *run, self Value, v []Value) Value {
			s, _ := textOf(self)
			n := optional(v[2], -1, func(v Value) int64 { return r.int("count", v) })
			with := r.text("new", v[1])
			if _, safe := v[1].(markup); !safe && typeName(self) == "Markup" {
				with = escape(with)
			}
			return like(self, r.replace(s, r.text("old", v[0]), with, int(n)))
		}),
		"rfind":      find(true, false),
		"rindex":     find(true, true),
		"rjust":      pad(">"),
		"rpartition": partition(true),
		"rsplit":     split(true),
		"rstrip":     stripped(false, true),
		"split":      split(false),
		"splitlines": m("keepends?", func(r *run, self Value, v []Value) Value {
			s, _ := textOf(self)
			var items []Value
			for _, l := range splitLines(s, optional(v[0], false, truth)) {
				items = append(items, like(self, l))
			}
			r.alloc(len(s) + 16*len(items))
			return r.newList(items)
		}),
		"startswith": affix(strings.HasPrefix),
		"strip":      stripped(true, true),
		"swapcase": convert(func(s string) string {
			return strings.Map(func(c rune) rune {
				if unicode.IsUpper(c) {
					return unicode.ToLower(c)
				}
				return unicode.ToUpper(c)
			}, s)
		}),
		"title": convert(title),
		"upper": convert(upper),
		"zfill": text("width", func(r *run, s string, v []Value) Value {
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign = s[:1]
			}
			n := r.int("width", v[0]) - int64(r.count(s))
			return sign + r.repeat("0", n) + s[len(sign):]
		}),
		"encode": {}, "expandtabs": {}, "format_map": {}, "isidentifier": {}, "isprintable": {}, "istitle": {},
		"maketrans": {}, "translate": {},
	}
	lines := str["splitlines"]
	lines.named = []string{"keepends"}
	str["splitlines"] = lines
	replace := str["replace"]
	replace.named = []string{"count"}
	str["replace"] = replace
	indexOf := m("value start? stop?", func(r *run, self Value, v []Value) Value {
		items := r.iterate(self)
		from, to := bounds(r, int64(len(items)), v[1], v[2])
		for i := from; i < to; i++ {
			if r.equal(items[i], v[0], 0) {
				return i
			}
		}
		r.failf("%s is not in the %s", r.describe(v[0]), typeName(self))
		return nil
	})
	count := m("value", func(r *run, self Value, v []Value) Value {
		n := int64(0)
		for _, x := range r.iterate(self) {
			if r.equal(x, v[0], 0) {
				n++
			}
		}
		return n
	})
	part := func(name string) method {
		return m("", func(r *run, self Value, v []Value) Value { return &view{self.(*dict), name} })
	}
	methods = map[string]map[string]method{
		"str": str,
		"list": {"count": count, "index": indexOf, "copy": m("", func(r *run, self Value, v []Value) Value {
			return r.newList(slices.Clone(self.(*list).items))
		})},
		"tuple": {"count": count, "index": indexOf},
		"range": {"count": count, "index": indexOf},
		"dict": {
			"copy": m("", func(r *run, self Value, v []Value) Value {
				d := newDict()
				r.dictOf(d, self)
				return d
			}),
			"fromkeys": {},
			"get": m("key default?", func(r *run, self Value, v []Value) Value {
				if x, ok := self.(*dict).lookup(r.keyOf(v[0], 0)); ok {
					return x
				}
				return given(v[1])
			}),
			"items":  part("items"),
			"keys":   part("keys"),
			"values": part("values"),
		},
		"int": {"as_integer_ratio": {}, "bit_count": {}, "bit_length": {}, "conjugate": {}, "to_bytes": {}},
		"float": {"as_integer_ratio": {}, "conjugate": {}, "fromhex": {}, "hex": {},
			"is_integer": m("", func(r *run, self Value, v []Value) Value {
				f := self.(float64)
				return f == math.Trunc(f) && !math.IsInf(f, 0)
			})},
	}
}

// isSuper reports whether a number that is no decimal digit is a digit to Python.
func isSuper(c rune) bool {
	return c == 0xb2 || c == 0xb3 || c == 0xb9 || 0x2070 <= c && c <= 0x2089 || 0x2460 <= c && c <= 0x2468
}

func isLetter(c rune) bool { return unicode.IsLetter(c) }

// upper and lower map characters one by one, but for the few whose upper case Python spells with two.
func upper(s string) string {
	if strings.ContainsAny(s, "ßŉǰﬀﬁﬂﬃﬄ") {
		s = strings.NewReplacer("ß", "SS", "ŉ", "ʼN", "ǰ", "J̌", "ﬀ", "FF", "ﬁ", "FI", "ﬂ", "FL", "ﬃ", "FFI", "ﬄ", "FFL").Replace(s)
	}
	return strings.ToUpper(s)
}

func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	s = strings.ReplaceAll(s, "İ", "i̇")
	c := []rune(s)
	for i, x := range c { // a sigma at the end of a word
		if x == 'Σ' && i > 0 && unicode.IsLetter(c[i-1]) && (i+1 == len(c) || !unicode.IsLetter(c[i+1])) {
			c[i] = 'ς'
		}
	}
	return strings.ToLower(string(c))
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	first := upper(s[:n])
	if c, m := utf8.DecodeRuneInString(s); m > 0 && unicode.ToTitle(c) != unicode.ToUpper(c) {
		first = string(unicode.ToTitle(c))
	} else if utf8.RuneCountInString(first) > 1 {
		_, m := utf8.DecodeRuneInString(first)
		first = first[:m] + lower(first[m:])
	}
	return first + lower(s[n:])
}

// title is str.title: the first letter after anything but a letter is upper case.
func title(s string) string {
	var b strings.Builder
	letter := false
	for _, c := range s {
		if letter {
			b.WriteString(lower(string(c)))
		} else {
			b.WriteString(capitalize(string(c)))
		}
		letter = unicode.IsLetter(c)
	}
	return b.String()
}

// strip is str.strip: without white space, or without the characters of chars.
func strip(r *run, s string, chars Value, left, right bool) string {
	drop := isSpace
	if c := given(chars); c != nil {
		set := r.text("chars", c)
		r.work(len(s) / 64)
		if len(set) > 64 {
			r.work(min(len(s), MaxSteps) * len(set) / 64)
		}
		drop = func(c rune) bool { return strings.ContainsRune(set, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, drop)
	}
	if right {
		s = strings.TrimRightFunc(s, drop)
	}
	return s
}

// splitLines is str.splitlines.
func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		i := strings.IndexFunc(s, func(c rune) bool {
			return '\n' <= c && c <= '\r' || 0x1c <= c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
		})
		if i < 0 {
			return append(lines, s)
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			n = 2
		}
		if keep {
			lines = append(lines, s[:i+n])
		} else {
			lines = append(lines, s[:i])
		}
		s = s[i+n:]
	}
	return lines
}

func splitText(r *run, self Value, v []Value, right bool) Value {
	s, _ := textOf(self)
	most := optional(v[1], -1, func(v Value) int64 { return r.int("maxsplit", v) })
	var parts []string
	switch sep := given(v[0]); {
	case sep == nil:
		parts = splitSpace(s, most, right)
	case r.text("sep", sep) == "":
		r.failf("split by an empty text")
	case most < 0:
		t := r.text("sep", sep)
		r.alloc(32 * (1 + strings.Count(s, t)))
		parts = strings.Split(s, t)
	case right:
		t := r.text("sep", sep)
		for ; most > 0; most-- {
			i := strings.LastIndex(s, t)
			if i < 0 {
				break
			}
			r.alloc(32)
			parts = append(parts, s[i+len(t):])
			s = s[:i]
		}
		parts = append(parts, s)
		slices.Reverse(parts)
	default:
		t := r.text("sep", sep)
		r.alloc(32 * int(min(most, int64(strings.Count(s, t)))+1))
		parts = strings.SplitN(s, t, int(min(most, int64(len(s))))+1)
	}
	items := make([]Value, len(parts))
	r.alloc(len(s))
	for i, p := range parts {
		items[i] = like(self, p)
	}
	return r.newList(items)
}

// splitSpace splits at runs of white space; what is left after most splits keeps the space inside it.
func splitSpace(s string, most int64, right bool) []string {
	var parts []string
	if right {
		for {
			s = strings.TrimRightFunc(s, isSpace)
			if s == "" {
				break
			}
			i := strings.LastIndexFunc(s, isSpace)
			if most == 0 || i < 0 {
				if most != 0 {
					s = strings.TrimLeftFunc(s, isSpace)
				}
				parts = append(parts, s)
				break
			}
			_, n := utf8.DecodeRuneInString(s[i:])
			parts = append(parts, s[i+n:])
			s = s[:i]
			most--
		}
		slices.Reverse(parts)
		return parts
	}
	for {
		s = strings.TrimLeftFunc(s, isSpace)
		if s == "" {
			return parts
		}
		i := strings.IndexFunc(s, isSpace)
		if most == 0 || i < 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:i])
		s = s[i:]
		most--
	}
}

// bounds returns the range that start and end of a method mean, as in a slice.
func bounds(r *run, n int64, start, end Value) (from, to int64) {
	at := func(v Value, otherwise int64) int64 {
		v = given(v)
		if v == nil {
			return otherwise
		}
		i := r.int("position", v)
		if i < 0 {
			i = max(i+n, 0)
		}
		return i
	}
	return at(start, 0), min(at(end, n), n)
}

// cut returns the part of s from start to end, which count characters; ok is false if start is beyond the end.
func cut(r *run, s string, start, end Value) (string, bool) {
	if given(start) == nil && given(end) == nil {
		return s, true
	}
	c := []rune(s)
	r.alloc(5 * len(s))
	from, to := bounds(r, int64(len(c)), start, end)
	if from > to {
		return "", false
	}
	return string(c[from:to]), true
}

func findText(r *run, s string, v []Value, last, must bool) Value {
	sub := r.text("sub", v[0])
	part, ok := cut(r, s, v[1], v[2])
	i := strings.Index(part, sub)
	if last {
		i = strings.LastIndex(part, sub)
	}
	if i < 0 || !ok {
		if must {
			r.failf("the text has no %s", short(sub))
		}
		return int64(-1)
	}
	from, _ := bounds(r, int64(r.count(s)), v[1], v[2])
	return from + int64(r.count(part[:i]))
}

// pad fills a text up to a number of characters.
func (r *run) pad(s string, width int64, fill, align string) string {
	n := width - int64(r.count(s))
	if n <= 0 {
		return s
	}
	r.alloc(len(s))
	switch align {
	case "<":
		return s + r.repeat(fill, n)
	case "^":
		left := n/2 + n&width&1
		return r.repeat(fill, left) + s + r.repeat(fill, n-left)
	}
	return r.repeat(fill, n) + s
}
