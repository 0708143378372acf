// Package expr evaluates expressions over the metadata of a file, in which tables of architectures give sizes, factors
// and conditions:
//
//	"@attention.key_length or n_embd / n_head"           the value of a key, or of names
//	"i mod 4 = 3 and n_swa != 0"                         a condition on the number of a layer
//	"f32(1.4) / f32(sqrt(n_layer))"                      a factor, rounded as the runtime does
//
// The grammar:
//
//	cond    = compare { "and" compare }
//	compare = expr [ ("=" | "!=" | "<" | "<=") expr ]    an expression alone holds unless it is 0
//	expr    = sum { "or" sum }                           the first one whose keys all exist
//	sum     = product { ("+" | "-") product }
//	product = atom { ("*" | "/" | "mod") atom }
//	atom    = number | name | "?" name | ("@" | "^" | "#") key | "(" expr ")" | "max" "(" expr "," expr ")"
//	        | "sqrt" "(" expr ")" | "f32" "(" expr ")" | "if" "(" cond "," expr "," expr ")"
//
// Numbers without a point are integers. Integers stay integers under + - * / mod and max: a quotient is rounded towards
// 0, values beyond 64 bits are the greatest or the least integer, and dividing by 0 gives 0. All else is float64; "f32"
// rounds to float32.
package expr

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Value is an integer or a float64.
type Value struct {
	n     int64
	f     float64
	float bool
}

// Int returns an integer.
func Int(n int64) Value { return Value{n: n} }

// Float returns a floating-point number.
func Float(f float64) Value { return Value{f: f, float: true} }

// Bool returns 1 for true and 0 for false.
func Bool(b bool) Value {
	if b {
		return Int(1)
	}
	return Int(0)
}

// Int returns the number as an integer, rounded towards 0; ok is false if it has no place in 64 bits.
func (v Value) Int() (n int64, ok bool) {
	if !v.float {
		return v.n, true
	}
	if t := math.Trunc(v.f); t >= -1<<63 && t < 1<<63 {
		return int64(t), true
	}
	return 0, false
}

// Float returns the number as a float64.
func (v Value) Float() float64 {
	if v.float {
		return v.f
	}
	return float64(v.n)
}

// IsZero reports whether the number is 0.
func (v Value) IsZero() bool { return v.Float() == 0 }

// Env has the values of keys and names.
type Env struct {
	// Key returns the value of a key: with op '@' the value, or that for the layer if the key has a list; with '^' the
	// greatest of the list; with '#' the number of its elements. ok is false if the file has none. It calls Use for what
	// it reads.
	Key func(op byte, key string) (v Value, ok bool)
	// Name returns the value of a name, mostly by Eval of another expression with the same Env. A name after "?" comes
	// with the question mark.
	Name func(name string) (v Value, ok bool)
	// Used are the keys that were read so far, each once, without those of alternatives that had no value.
	Used []string
}

// Expr is a parsed expression.
type Expr struct {
	op      string // "number", "name", "@", "^", "#", an operator or a function
	text    string // of a name or key
	value   Value  // of a number
	a, b, c *Expr
}

// Parse returns the expression that text has.
func Parse(text string) (*Expr, error) { return parse(text, (*parser).expr) }

// ParseCond is Parse for a condition.
func ParseCond(text string) (*Expr, error) { return parse(text, (*parser).cond) }

// Must returns e, and panics with an error: for tables in the program, all rows of which a test parses.
func Must(e *Expr, err error) *Expr {
	if err != nil {
		panic(err)
	}
	return e
}

func parse(text string, start func(*parser) *Expr) (e *Expr, err error) {
	p := &parser{text: text, rest: tokens(text)}
	e = start(p)
	p.want("")
	return e, p.err
}

// Name returns the name that an expression consists of, "?" included; ok is false for any other expression.
func (e *Expr) Name() (name string, ok bool) { return e.text, e.op == "name" }

// Refs calls f for every key, with its operator, and for every name, with 0, that the expression has.
func (e *Expr) Refs(f func(op byte, text string)) {
	switch {
	case e == nil:
		return
	case e.op == "name":
		f(0, e.text)
	case e.op == "@" || e.op == "^" || e.op == "#":
		f(e.op[0], e.text)
	}
	e.a.Refs(f)
	e.b.Refs(f)
	e.c.Refs(f)
}

// parser reads tokens. Its first error ends all reading.
type parser struct {
	text string
	rest []string
	err  error
}

func (p *parser) next() string {
	if len(p.rest) == 0 || p.err != nil {
		return ""
	}
	return p.rest[0]
}

func (p *parser) take() string {
	t := p.next()
	if t != "" {
		p.rest = p.rest[1:]
	}
	return t
}

func (p *parser) want(t string) {
	if got := p.take(); got != t {
		p.fail("want %q, found %q", t, got)
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("expression %q: %s", p.text, fmt.Sprintf(format, args...))
	}
}

func isName(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func tokens(text string) (list []string) {
	for i := 0; i < len(text); {
		end := i + 1
		switch c := text[i]; {
		case c == ' ':
			i = end
			continue
		case isName(c):
			for end < len(text) && isName(text[end]) {
				end++
			}
		case (c == '<' || c == '!') && end < len(text) && text[end] == '=':
			end++
		}
		list = append(list, text[i:end])
		i = end
	}
	return list
}

func (p *parser) cond() *Expr    { return p.chain(p.compare, "and") }
func (p *parser) expr() *Expr    { return p.chain(p.sum, "or") }
func (p *parser) sum() *Expr     { return p.chain(p.product, "+", "-") }
func (p *parser) product() *Expr { return p.chain(p.atom, "*", "/", "mod") }

func (p *parser) compare() *Expr {
	e := p.expr()
	switch op := p.next(); op {
	case "=", "!=", "<", "<=":
		p.take()
		return &Expr{op: op, a: e, b: p.expr()}
	}
	return e
}

func (p *parser) chain(part func() *Expr, ops ...string) *Expr {
	e := part()
	for {
		op := ""
		for _, o := range ops {
			if op == "" && p.next() == o {
				op = p.take()
			}
		}
		if op == "" {
			return e
		}
		e = &Expr{op: op, a: e, b: part()}
	}
}

func (p *parser) atom() *Expr {
	t := p.take()
	switch {
	case t == "":
		p.fail("want a number, a name or a key at the end")
	case t == "?":
		return &Expr{op: "name", text: t + p.name()}
	case t == "@" || t == "^" || t == "#":
		return &Expr{op: t, text: p.name()}
	case t == "(":
		e := p.expr()
		p.want(")")
		return e
	case (t == "max" || t == "sqrt" || t == "f32" || t == "if") && p.next() == "(":
		return p.call(t)
	case t[0] >= '0' && t[0] <= '9':
		if n, err := strconv.ParseInt(t, 10, 64); err == nil {
			return &Expr{op: "number", value: Int(n)}
		}
		if f, err := strconv.ParseFloat(t, 64); err == nil && strings.Contains(t, ".") {
			return &Expr{op: "number", value: Float(f)}
		}
		p.fail("%q is not a number", t)
	case isName(t[0]):
		return &Expr{op: "name", text: t}
	default:
		p.fail("want a number, a name or a key, found %q", t)
	}
	return &Expr{op: "number"}
}

// call reads the arguments of a function.
func (p *parser) call(f string) *Expr {
	e := &Expr{op: f}
	p.want("(")
	if f == "if" {
		e.a = p.cond()
		p.want(",")
		e.b = p.expr()
		p.want(",")
		e.c = p.expr()
	} else if e.a = p.expr(); f == "max" {
		p.want(",")
		e.b = p.expr()
	}
	p.want(")")
	return e
}

func (p *parser) name() string {
	t := p.take()
	if t == "" || !isName(t[0]) {
		p.fail("want a name, found %q", t)
	}
	return t
}

// Eval returns the value of an expression; ok is false if a key or name without a value decides it.
func (e *Expr) Eval(env *Env) (v Value, ok bool) {
	switch e.op {
	case "number":
		return e.value, true
	case "name":
		return env.Name(e.text)
	case "@", "^", "#":
		return env.Key(e.op[0], e.text)
	case "or":
		used := len(env.Used)
		if v, ok = e.a.Eval(env); ok {
			return v, true
		}
		env.Used = env.Used[:used]
		return e.b.Eval(env)
	case "and", "=", "!=", "<", "<=":
		return Bool(e.Holds(env)), true
	case "if":
		if e.a.Holds(env) {
			return e.b.Eval(env)
		}
		return e.c.Eval(env)
	}
	a, ok := e.a.Eval(env)
	switch {
	case e.op == "sqrt":
		return Float(math.Sqrt(a.Float())), ok
	case e.op == "f32":
		return Float(float64(float32(a.Float()))), ok
	}
	b, okB := e.b.Eval(env)
	if !ok || !okB {
		return Value{}, false
	}
	if a.float || b.float {
		return Float(floats(e.op, a.Float(), b.Float())), true
	}
	return Int(integers(e.op, a.n, b.n)), true
}

// Holds reports whether a condition holds. A comparison with a key or name without a value does not.
func (e *Expr) Holds(env *Env) bool {
	if e.op == "and" {
		return e.a.Holds(env) && e.b.Holds(env)
	}
	compare := comparisons[e.op]
	if compare == nil {
		v, ok := e.Eval(env)
		return ok && !v.IsZero()
	}
	a, okA := e.a.Eval(env)
	b, okB := e.b.Eval(env)
	return okA && okB && compare(a, b)
}

var comparisons = map[string]func(a, b Value) bool{
	"=":  func(a, b Value) bool { return !less(a, b) && !less(b, a) },
	"!=": func(a, b Value) bool { return less(a, b) || less(b, a) },
	"<":  less,
	"<=": func(a, b Value) bool { return !less(b, a) },
}

func less(a, b Value) bool {
	if a.float || b.float {
		return a.Float() < b.Float()
	}
	return a.n < b.n
}

// Use adds a key to Used, unless it is there.
func (env *Env) Use(key string) {
	if !slices.Contains(env.Used, key) {
		env.Used = append(env.Used, key)
	}
}

func floats(op string, a, b float64) float64 {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "max":
		return max(a, b)
	}
	if b == 0 {
		return 0
	}
	if op == "mod" {
		return math.Mod(a, b)
	}
	return a / b
}

func integers(op string, a, b int64) int64 {
	switch op {
	case "+":
		return sum(a, b)
	case "-":
		if b == math.MinInt64 {
			return sum(sum(a, math.MaxInt64), 1)
		}
		return sum(a, -b)
	case "*":
		return product(a, b)
	case "max":
		return max(a, b)
	}
	switch {
	case b == 0:
		return 0
	case b == -1: // the least integer has no opposite
		if op == "mod" {
			return 0
		}
		return product(a, b)
	case op == "mod":
		return a % b
	}
	return a / b
}

func sum(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

func product(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	if p := a * b; p/b == a && !(a == math.MinInt64 && b == -1) && !(b == math.MinInt64 && a == -1) {
		return p
	}
	if (a < 0) != (b < 0) {
		return math.MinInt64
	}
	return math.MaxInt64
}
