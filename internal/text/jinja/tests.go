package jinja

import (
	"math"
	"strings"
	"unicode"
)

type testFunc struct {
	params []string
	fn     func(r *run, v []Value) bool
}

// tests are the tests of "is", by name. The first parameter is what is tested.
var tests map[string]testFunc

func init() { // some tests look for names
	one := func(fn func(r *run, v Value) bool) testFunc {
		return testFunc{[]string{"value"}, func(r *run, v []Value) bool { return fn(r, v[0]) }}
	}
	kind := func(is func(v Value) bool) testFunc { return one(func(r *run, v Value) bool { return is(v) }) }
	operator := func(op string) testFunc {
		return testFunc{[]string{"a", "b"}, func(r *run, v []Value) bool { return r.compare(op, v[0], v[1]) }}
	}
	tests = map[string]testFunc{
		"defined":   kind(func(v Value) bool { _, is := v.(*undefined); return !is }),
		"undefined": kind(func(v Value) bool { _, is := v.(*undefined); return is }),
		"none":      kind(func(v Value) bool { return v == nil }),
		"boolean":   kind(func(v Value) bool { _, is := v.(bool); return is }),
		"true":      kind(func(v Value) bool { b, is := v.(bool); return is && b }),
		"false":     kind(func(v Value) bool { b, is := v.(bool); return is && !b }),
		"string":    kind(isText),
		"mapping":   kind(func(v Value) bool { _, is := v.(*dict); return is }),
		"iterable":  kind(iterable),
		"escaped":   kind(func(v Value) bool { _, is := v.(markup); return is }),
		"float":     kind(func(v Value) bool { _, is := v.(float64); return is }),
		"number":    kind(func(v Value) bool { _, is := floatOf(v); return is }),
		"integer": kind(func(v Value) bool {
			switch v.(type) {
			case int64, bigInt:
				return true
			}
			return false
		}),
		"sequence": kind(func(v Value) bool {
			switch v.(type) {
			case string, markup, *list, *tuple, *dict, ranged:
				return true
			}
			return false
		}),
		"callable": kind(func(v Value) bool {
			switch v.(type) {
			case *function, *macro, *undefined, *loop:
				return true
			}
			return false
		}),
		"lower": one(func(r *run, v Value) bool { return isCase(r.str(v), unicode.IsLower, unicode.IsUpper) }),
		"upper": one(func(r *run, v Value) bool { return isCase(r.str(v), unicode.IsUpper, unicode.IsLower) }),
		"odd":   one(func(r *run, v Value) bool { return modulo(r, v, int64(2)) == 1 }),
		"even":  one(func(r *run, v Value) bool { return modulo(r, v, int64(2)) == 0 }),
		"divisibleby": {[]string{"value", "num"}, func(r *run, v []Value) bool {
			return modulo(r, v[0], v[1]) == 0
		}},
		"filter": one(func(r *run, v Value) bool { n, ok := textOf(v); _, is := filters[n]; return ok && is }),
		"test":   one(func(r *run, v Value) bool { n, ok := textOf(v); _, is := tests[n]; return ok && is }),
		"sameas": {[]string{"value", "other"}, func(r *run, v []Value) bool { return same(v[0], v[1]) }},
		"in":     {[]string{"value", "seq"}, func(r *run, v []Value) bool { return r.contains(v[0], v[1]) }},
	}
	for op, names := range map[string]string{"==": "eq equalto", "!=": "ne", ">": "gt greaterthan", ">=": "ge",
		"<": "lt lessthan", "<=": "le"} {
		for _, n := range append(strings.Fields(names), op) {
			tests[n] = operator(op)
		}
	}
}

func modulo(r *run, a, b Value) float64 {
	m, ok := floatOf(r.binary("%", a, b))
	if !ok {
		return math.NaN()
	}
	return m
}

// same is Python's is, for values that are one object in every case.
func same(a, b Value) bool {
	switch a := a.(type) {
	case nil, bool, int64, string, markup, *list, *tuple, *dict, *namespace, *loop, *macro:
		return a == b
	}
	return false
}

// isCase is Python's islower and isupper: at least one letter of the case and none of the other.
func isCase(s string, is, other func(rune) bool) bool {
	found := false
	for _, c := range s {
		if other(c) || unicode.IsTitle(c) {
			return false
		}
		found = found || is(c)
	}
	return found
}
