package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// spec is a format specification, of % or of format().
type spec struct {
	fill      string
	align     byte // < > ^ = or 0
	sign      byte // + - space or 0
	alternate bool
	width     int64
	group     byte  // , _ or 0
	precision int64 // -1 if there is none
	verb      byte
}

// maxDigits bounds the precision of a number.
const maxDigits = 1000

// percent is text % values.
func (r *run) percent(a, values Value) Value {
	format, _ := textOf(a)
	var args []Value
	d, isDict := values.(*dict)
	t, isTuple := values.(*tuple)
	if isTuple {
		args = t.items
	} else {
		args = []Value{values}
	}
	used := 0
	next := func() Value {
		if used == len(args) {
			r.failf("not enough values for the format %s", short(format))
		}
		used++
		return args[used-1]
	}
	var b strings.Builder
	add := func(s string) { r.alloc(len(s)); b.WriteString(s) }
	for s := format; s != ""; {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			add(s)
			break
		}
		add(s[:i])
		s = s[i+1:]
		sp := spec{fill: " ", align: '>', precision: -1}
		var v Value
		keyed := false
		if strings.HasPrefix(s, "(") {
			end := strings.IndexByte(s, ')')
			if end < 0 {
				r.failf("format %s without the end of a key", short(format))
			}
			if !isDict {
				r.failf("format %s, want a dict of values", short(format))
			}
			k := s[1:end]
			x, ok := d.get(k)
			if !ok {
				r.failf("format %s: no key %s", short(format), short(k))
			}
			v, keyed, s = x, true, s[end+1:]
			used = len(args)
		}
		zero := false
	flags:
		for s != "" {
			switch s[0] {
			case '-':
				sp.align = '<'
			case '+':
				sp.sign = '+'
			case ' ':
				if sp.sign == 0 {
					sp.sign = ' '
				}
			case '#':
				sp.alternate = true
			case '0':
				zero = true
			default:
				break flags
			}
			s = s[1:]
		}
		if s, sp.width = r.formatNumber(s, next); sp.width < 0 {
			sp.align, sp.width = '<', -sp.width
		}
		if strings.HasPrefix(s, ".") {
			s, sp.precision = r.formatNumber(s[1:], next)
			sp.precision = max(sp.precision, 0)
		}
		s = strings.TrimLeft(s, "hlL")
		if s == "" {
			r.failf("format %s ends within a conversion", short(format))
		}
		sp.verb = s[0]
		verb, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		if sp.verb == '%' {
			add("%")
			continue
		}
		if !keyed {
			v = next()
		}
		safe := typeName(a) == "Markup"
		switch verb {
		case 's', 'r', 'a':
			t := r.str(v)
			if verb != 's' {
				var q strings.Builder
				r.repr(&q, v, 0)
				t = q.String()
			}
			if _, ok := v.(markup); safe && !ok {
				t = escape(t)
			}
			add(r.formatText(t, &sp))
		case 'c':
			t, ok := textOf(v)
			if i, isInt := intOf(v); isInt && 0 <= i && i <= utf8.MaxRune {
				t, ok = string(rune(i)), true
			}
			if !ok || utf8.RuneCountInString(t) != 1 {
				r.failf("%%c of %s, want a character", r.describe(v))
			}
			sp.precision = -1
			add(r.formatText(t, &sp))
		case 'd', 'i', 'u', 'x', 'X', 'o', 'e', 'E', 'f', 'F', 'g', 'G':
			if zero && sp.align == '>' {
				sp.align, sp.fill = '=', "0"
			}
			if verb == 'i' || verb == 'u' {
				sp.verb = 'd'
			}
			if f, ok := v.(float64); ok && sp.verb == 'd' {
				if math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) >= 1<<63 {
					r.failf("%%d of %s, want an integer", r.describe(v))
				}
				v = int64(f)
			}
			if b, ok := v.(bool); ok {
				v, _ = intOf(b)
			}
			add(r.formatPrintf(v, &sp))
		default:
			r.failf("format %s: conversion %q, want one of diouxXeEfFgGcrsa%%", short(format), verb)
		}
	}
	switch values.(type) {
	case *dict, *list, ranged, *view: // mappings to Python
	default:
		if used < len(args) {
			r.failf("the format %s does not use all values", short(format))
		}
	}
	return like(a, b.String())
}

// formatNumber reads the width or precision of a conversion.
func (r *run) formatNumber(s string, next func() Value) (string, int64) {
	if strings.HasPrefix(s, "*") {
		return s[1:], r.formatWidth(r.int("width", next()))
	}
	n := digits(s, isDecimal)
	i := int64(0)
	if n > 0 {
		var err error
		if i, err = strconv.ParseInt(s[:n], 10, 64); err != nil {
			r.limit("a width of %s characters", short(s[:n]))
		}
	}
	return s[n:], r.formatWidth(i)
}

func (r *run) formatWidth(i int64) int64 {
	if i > MaxMemory || i < -MaxMemory {
		r.limit("a width of %d characters", i)
	}
	return i
}

// formatPrintf formats a number for %, whose precision of integers is a number of digits.
func (r *run) formatPrintf(v Value, sp *spec) string {
	if strings.IndexByte("dxXo", sp.verb) < 0 {
		return r.formatNumberValue(v, sp)
	}
	i, ok := v.(int64)
	if b, big := v.(bigInt); big && sp.verb == 'd' {
		return r.formatText(string(b), sp)
	}
	if !ok {
		r.failf("%%%c of %s, want an integer", sp.verb, r.describe(v))
	}
	digits := sp.precision
	sp.precision = -1
	if digits > maxDigits {
		r.limit("a precision of %d digits", digits)
	}
	if digits > 0 && sp.width < digits {
		sp2 := *sp
		sp2.align, sp2.fill, sp2.width = '=', "0", digits
		if i < 0 || sp.sign != 0 {
			sp2.width++
		}
		return r.formatNumberValue(v, &sp2)
	}
	return r.formatNumberValue(v, sp)
}

// formatText pads a text, cut to the precision.
func (r *run) formatText(s string, sp *spec) string {
	if sp.precision >= 0 {
		n := int64(0)
		for i := range s {
			if n == sp.precision {
				s = s[:i]
				break
			}
			n++
		}
	}
	align := sp.align
	if align == 0 {
		align = '<'
	}
	if align == '^' { // format() puts the odd one to the right
		n := sp.width - int64(r.count(s))
		if n <= 0 {
			return s
		}
		return r.repeat(sp.fill, n/2) + s + r.repeat(sp.fill, n-n/2)
	}
	return r.pad(s, sp.width, sp.fill, string(rune(align)))
}

// formatNumberValue formats a number.
func (r *run) formatNumberValue(v Value, sp *spec) string {
	if sp.precision > maxDigits {
		r.limit("a precision of %d digits", sp.precision)
	}
	digits, negative, prefix, exponent := "", false, "", ""
	i, isInt := intOf(v)
	verb := sp.verb
	if verb == 0 && isInt {
		verb = 'd'
	}
	switch verb {
	case 'd', 'x', 'X', 'o', 'b', 'n':
		if big, ok := v.(bigInt); ok && verb == 'd' {
			digits, negative = strings.CutPrefix(string(big), "-")
			break
		}
		if !isInt || sp.precision >= 0 {
			r.failf("format %c of %s, want an integer without precision", verb, r.describe(v))
		}
		base := map[byte]int{'d': 10, 'n': 10, 'x': 16, 'X': 16, 'o': 8, 'b': 2}[verb]
		digits, negative = strings.CutPrefix(strconv.FormatInt(i, base), "-")
		if verb == 'X' {
			digits = strings.ToUpper(digits)
		}
		if sp.alternate && base != 10 {
			prefix = "0" + string(rune(verb))
		}
	default:
		f, ok := floatOf(v)
		if !ok {
			r.failf("format %c of %s, want a number", max(verb, 'g'), r.describe(v))
		}
		negative = math.Signbit(f) && !math.IsNaN(f)
		digits, exponent = formatFloat(math.Abs(f), verb, sp)
	}
	sign := ""
	if negative {
		sign = "-"
	} else if sp.sign == '+' || sp.sign == ' ' {
		sign = string(rune(sp.sign))
	}
	whole, fraction, point := strings.Cut(digits, ".")
	if point {
		fraction = "." + fraction
	}
	if sp.group != 0 {
		n := 3
		if verb == 'x' || verb == 'X' || verb == 'o' || verb == 'b' {
			n = 4
		}
		whole = group(whole, n, sp.group)
	}
	body := whole + fraction + exponent
	align := sp.align
	if align == 0 {
		align = '>'
	}
	if align == '=' {
		n := sp.width - int64(len(sign)+len(prefix)+len(body))
		if n > 0 && sp.group != 0 && sp.fill == "0" {
			for int64(len(sign)+len(prefix)+len(body)) < sp.width {
				whole = group("0"+strings.ReplaceAll(whole, string(rune(sp.group)), ""), 3, sp.group)
				body = whole + fraction + exponent
				r.alloc(len(body))
			}
			return sign + prefix + body
		}
		return sign + prefix + r.repeat(sp.fill, n) + body
	}
	whole_ := *sp
	whole_.align, whole_.precision = align, -1
	return r.formatText(sign+prefix+body, &whole_)
}

// group puts separators between groups of n digits.
func group(s string, n int, sep byte) string {
	var b strings.Builder
	for i := range len(s) {
		if i > 0 && (len(s)-i)%n == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// formatFloat formats a number that is not negative.
func formatFloat(f float64, verb byte, sp *spec) (digits, exponent string) {
	switch {
	case math.IsNaN(f):
		digits = "nan"
	case math.IsInf(f, 0):
		digits = "inf"
	}
	if digits != "" {
		if 'A' <= verb && verb <= 'Z' {
			digits = strings.ToUpper(digits)
		}
		return digits, ""
	}
	precision := sp.precision
	if precision < 0 {
		precision = 6
	}
	switch verb {
	case 'f', 'F':
		return strconv.FormatFloat(f, 'f', int(precision), 64), ""
	case '%':
		return strconv.FormatFloat(f*100, 'f', int(precision), 64), "%"
	case 'e', 'E':
		s := strconv.FormatFloat(f, verb, int(precision), 64)
		i := strings.IndexByte(s, verb)
		return s[:i], s[i:]
	}
	upper := verb == 'G'
	plain := verb == 0 && sp.precision < 0
	if plain { // as repr
		digits = floatRepr(f)
		if i := strings.IndexByte(digits, 'e'); i >= 0 {
			return digits[:i], digits[i:]
		}
		return digits, ""
	}
	precision = max(precision, 1)
	s := strconv.FormatFloat(f, 'e', int(precision)-1, 64)
	i := strings.IndexByte(s, 'e')
	exp, _ := strconv.Atoi(s[i+1:])
	limit := int(precision)
	if verb == 0 {
		limit-- // format() of a float without a type has a digit after the point
	}
	if exp < -4 || exp >= limit {
		digits, exponent = s[:i], s[i:]
	} else {
		digits = strconv.FormatFloat(f, 'f', max(int(precision)-1-exp, 0), 64)
	}
	if strings.Contains(digits, ".") && !sp.alternate {
		digits = strings.TrimRight(strings.TrimRight(digits, "0"), ".")
	}
	if verb == 0 && exponent == "" && !strings.Contains(digits, ".") {
		digits += ".0"
	}
	if upper {
		exponent = strings.ToUpper(exponent)
	}
	return digits, exponent
}

// format is text.format(values), with the attributes that the sandbox permits.
func (r *run) format(self Value, a *callArgs) Value {
	format, _ := textOf(self)
	next := 0 // place of the next value without a name, -1 after one with a number
	var b strings.Builder
	r.formatInto(&b, format, a, &next, typeName(self) == "Markup", 0)
	return like(self, b.String())
}

func (r *run) formatInto(b *strings.Builder, s string, a *callArgs, next *int, safe bool, depth int) {
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			r.alloc(len(s))
			b.WriteString(s)
			return
		}
		r.alloc(i + 1)
		b.WriteString(s[:i])
		c := s[i]
		s = s[i+1:]
		if s != "" && s[0] == c {
			b.WriteByte(c)
			s = s[1:]
			continue
		}
		if c == '}' {
			r.failf(`a single "}" in a format, want two or the end of a field`)
		}
		end, open := -1, 1
		for j := range len(s) {
			if s[j] == '{' {
				open++
			} else if s[j] == '}' {
				if open--; open == 0 {
					end = j
					break
				}
			}
		}
		if end < 0 {
			r.failf(`a format without the "}" of a field`)
		}
		if depth > 1 {
			r.failf("fields of a format nested too deep, want two levels")
		}
		r.formatField(b, s[:end], a, next, safe, depth)
		s = s[end+1:]
	}
}

// formatField formats a field: name!conversion:spec.
func (r *run) formatField(b *strings.Builder, field string, a *callArgs, next *int, safe bool, depth int) {
	name, conversion, sp := field, "", ""
	for i, square := 0, false; i < len(field); i++ {
		switch c := field[i]; {
		case c == '[':
			square = true
		case c == ']':
			square = false
		case square:
			continue
		case c == ':':
			name, sp = field[:i], field[i+1:]
			i = len(field)
		case c == '!':
			name, conversion = field[:i], field[i+1:]
			conversion, sp, _ = strings.Cut(conversion, ":")
			if len(conversion) != 1 || strings.IndexByte("rsa", conversion[0]) < 0 {
				r.failf("conversion %s of a format, want r, s or a", short(conversion))
			}
			i = len(field)
		}
	}
	at := strings.IndexAny(name, ".[")
	path := ""
	if at >= 0 {
		name, path = name[:at], name[at:]
	}
	var v Value
	n, err := strconv.Atoi(name)
	switch {
	case name == "":
		if *next < 0 {
			r.failf("a format with fields that have a number and fields that have none")
		}
		n = *next
		*next++
		fallthrough
	case err == nil:
		if name != "" {
			if *next > 0 {
				r.failf("a format with fields that have a number and fields that have none")
			}
			*next = -1
		}
		if n < 0 || n >= len(a.list) {
			r.failf("a format has no value for field %d", n)
		}
		v = a.list[n]
	default:
		found := false
		for i, k := range a.names {
			if k == name {
				v, found = a.named[i], true
			}
		}
		if !found {
			r.failf("a format has no value for field %s", short(name))
		}
	}
	for path != "" {
		if path[0] == '.' {
			n := strings.IndexAny(path[1:], ".[") + 1
			if n == 0 {
				n = len(path)
			}
			v = r.attribute(v, path[1:n])
			path = path[n:]
		} else {
			n := strings.IndexByte(path, ']')
			if n < 0 || path[0] != '[' {
				r.failf("a format without the ] of an index")
			}
			key := Value(path[1:n])
			if i, err := strconv.ParseInt(path[1:n], 10, 64); err == nil && i >= 0 {
				key = i
			}
			v = r.item(v, key)
			path = path[n+1:]
		}
	}
	if conversion != "" {
		t := r.str(v)
		if conversion != "s" {
			var q strings.Builder
			r.repr(&q, v, 0)
			t = q.String()
		}
		v = t
	}
	if strings.ContainsAny(sp, "{}") {
		var in strings.Builder
		r.formatInto(&in, sp, a, next, false, depth+1)
		sp = in.String()
	}
	s := r.formatValue(v, sp)
	if _, is := v.(markup); safe && !is {
		s = escape(s)
	}
	r.alloc(len(s))
	b.WriteString(s)
}

// formatValue is Python's format(v, spec).
func (r *run) formatValue(v Value, text string) string {
	if text == "" {
		return r.str(v)
	}
	sp := spec{precision: -1}
	s := text
	if c, n := utf8.DecodeRuneInString(s); len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		sp.fill, sp.align, s = string(c), s[n], s[n+1:]
	} else if strings.IndexByte("<>^=", s[0]) >= 0 {
		sp.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		sp.sign, s = s[0], s[1:]
	}
	s, sp.alternate = strings.CutPrefix(s, "#")
	if strings.HasPrefix(s, "0") {
		if sp.align == 0 {
			sp.align = '='
		}
		if sp.fill == "" {
			sp.fill = "0"
		}
		s = s[1:]
	}
	if sp.fill == "" {
		sp.fill = " "
	}
	s, sp.width = r.formatNumber(s, func() Value { r.failf("a width * in a format"); return nil })
	if s != "" && (s[0] == ',' || s[0] == '_') {
		sp.group, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if len(s) == 1 || !isDecimal(s[1]) {
			r.failf("format %s without a precision after the point", short(text))
		}
		s, sp.precision = r.formatNumber(s[1:], nil)
	}
	if len(s) > 1 {
		r.failf("format %s, want one letter at its end", short(text))
	}
	if s != "" {
		sp.verb = s[0]
	}
	if t, ok := textOf(v); ok {
		if sp.verb != 0 && sp.verb != 's' || sp.sign != 0 || sp.align == '=' && sp.fill != "0" {
			r.failf("format %s of a text", short(text))
		}
		if sp.align == '=' {
			sp.align = '<'
		}
		return r.formatText(t, &sp)
	}
	if _, ok := floatOf(v); ok {
		if b, ok := v.(bool); ok {
			if sp.verb == 0 && sp.width == 0 {
				return r.str(b)
			}
			v, _ = intOf(b)
		}
		if sp.verb != 0 && strings.IndexByte("dxXobneEfFgG%", sp.verb) < 0 {
			r.failf("format %s of %s", short(text), r.describe(v))
		}
		return r.formatNumberValue(v, &sp)
	}
	r.failf("format %s of %s, want a text or number", short(text), r.describe(v))
	return ""
}
