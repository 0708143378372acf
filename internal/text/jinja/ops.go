package jinja

import (
	"math"
	"math/big"
	"strings"
)

func (r *run) unary(op string, v Value) Value {
	if op == "not" {
		return !truth(v)
	}
	if u, ok := v.(*undefined); ok {
		r.undefined(u)
	}
	if i, ok := intOf(v); ok {
		if op == "-" {
			return r.integer(new(big.Int).Neg(big.NewInt(i)))
		}
		return i
	}
	f, ok := v.(float64)
	if !ok {
		r.failf("%s before %s, want a number", op, r.describe(v))
	}
	if op == "-" {
		return -f
	}
	return f
}

// integer returns a result that fits into 64 bits.
func (r *run) integer(i *big.Int) Value {
	if !i.IsInt64() {
		r.limit("an integer beyond 64 bits")
	}
	return i.Int64()
}

// repeat returns n copies of a text.
func (r *run) repeat(s string, n int64) string {
	if n <= 0 || s == "" {
		return ""
	}
	if n > MaxMemory/int64(len(s)) {
		r.limit("a text of more than %d bytes", MaxMemory)
	}
	r.alloc(len(s) * int(n))
	return strings.Repeat(s, int(n))
}

func (r *run) binary(op string, a, b Value) Value {
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok && (op != "%" || !isText(a)) {
			r.undefined(u)
		}
	}
	if v, ok := r.sequences(op, a, b); ok {
		return v
	}
	x, ok := intOf(a)
	y, both := intOf(b)
	if ok && both {
		return r.integers(op, x, y)
	}
	f, ok := floatOf(a)
	g, both := floatOf(b)
	_, big := a.(bigInt)
	if _, other := b.(bigInt); big || other {
		r.limit("arithmetic with an integer beyond 64 bits")
	}
	if !ok || !both {
		r.failf("%s %s %s, want two numbers or two texts", r.describe(a), op, r.describe(b))
	}
	return r.floats(op, f, g)
}

func isText(v Value) bool { _, ok := textOf(v); return ok }

// sequences evaluates operators of texts, lists and tuples; ok is false for others.
func (r *run) sequences(op string, a, b Value) (Value, bool) {
	s, isText := textOf(a)
	t, otherText := textOf(b)
	switch op {
	case "%":
		if isText {
			return r.percent(a, b), true
		}
	case "+":
		if isText && otherText {
			_, safe := a.(markup)
			_, otherSafe := b.(markup)
			if safe != otherSafe { // what is added to Markup is escaped
				if safe {
					t = escape(t)
				} else {
					s = escape(s)
				}
			}
			r.alloc(len(s) + len(t))
			if safe || otherSafe {
				return markup(s + t), true
			}
			return s + t, true
		}
		x, ok := a.(*list)
		y, both := b.(*list)
		if ok && both {
			r.alloc(16 * (len(x.items) + len(y.items)))
			return &list{append(x.items[:len(x.items):len(x.items)], y.items...)}, true
		}
		p, ok := a.(*tuple)
		q, both := b.(*tuple)
		if ok && both {
			r.alloc(16 * (len(p.items) + len(q.items)))
			return &tuple{append(p.items[:len(p.items):len(p.items)], q.items...)}, true
		}
	case "*":
		n, isInt := intOf(b)
		if !isInt {
			if n, isInt = intOf(a); !isInt {
				return nil, false
			}
			a, s, isText = b, t, otherText
		}
		if isText {
			return like(a, r.repeat(s, n)), true
		}
		var items []Value
		switch x := a.(type) {
		case *list:
			items = x.items
		case *tuple:
			items = x.items
		default:
			return nil, false
		}
		var out []Value
		if n > 0 && len(items) > 0 {
			if n > MaxMemory/int64(len(items)) {
				r.limit("a list of more than %d elements", MaxMemory/16)
			}
			r.alloc(16 * len(items) * int(n))
			for range n {
				out = append(out, items...)
			}
		}
		if _, ok := a.(*tuple); ok {
			return &tuple{out}, true
		}
		return &list{out}, true
	}
	return nil, false
}

// escape is markupsafe's escape.
func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func (r *run) integers(op string, x, y int64) Value {
	a, b := big.NewInt(x), big.NewInt(y)
	switch op {
	case "+":
		return r.integer(a.Add(a, b))
	case "-":
		return r.integer(a.Sub(a, b))
	case "*":
		return r.integer(a.Mul(a, b))
	case "**":
		if y < 0 {
			return r.floats(op, float64(x), float64(y))
		}
		if y > 63 && x != 0 && x != 1 && x != -1 {
			r.limit("an integer beyond 64 bits")
		}
		if y > 63 {
			b = big.NewInt(y%2 + 2)
		}
		return r.integer(a.Exp(a, b, nil))
	}
	if y == 0 {
		r.failf("division of %d by zero", x)
	}
	switch op {
	case "/":
		f, _ := new(big.Rat).SetFrac64(x, y).Float64()
		if y < 0 && x == 0 {
			f = math.Copysign(0, -1)
		}
		return f
	}
	q, m := new(big.Int).DivMod(a, b, new(big.Int)) // Euclid's: m ≥ 0
	if y < 0 && m.Sign() > 0 {                      // Python's remainder has the sign of the divisor
		q.Add(q, big.NewInt(-1))
		m.Add(m, b)
	}
	if op == "//" {
		return r.integer(q)
	}
	return r.integer(m)
}

func (r *run) floats(op string, x, y float64) Value {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return float64(x * y)
	case "**":
		v := math.Pow(x, y)
		if x == 0 && y < 0 {
			r.failf("zero to a negative power")
		}
		if x < 0 && y != math.Trunc(y) {
			r.failf("a negative number to the power %v has no real value", y)
		}
		if math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			r.failf("the result of %v ** %v is too large", x, y)
		}
		return v
	}
	if y == 0 {
		r.failf("division of %v by zero", x)
	}
	if op == "/" {
		return x / y
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	} else if m == 0 {
		m = math.Copysign(0, y)
	}
	if op == "%" {
		return m
	}
	d := (x - m) / y
	if d == 0 {
		return math.Copysign(0, x/y)
	}
	if f := math.Floor(d); d-f > 0.5 {
		return f + 1
	} else {
		return f
	}
}
