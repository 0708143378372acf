package jinja

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ggforge/internal/text/pyjson"
)

// Result is a rendered template.
type Result struct {
	Text string
	// Generated has the ranges of bytes of Text that {% generation %} tags outside of macros and set blocks gave.
	Generated [][2]int
	// Cost is the work of the rendering: steps (see MaxSteps), and one for each 32 bytes that it made. An error has it,
	// too.
	Cost int
}

// Clock is the function strftime_now of a template.
type Clock func(format string) string

// At returns a clock that always shows t, in its time zone.
func At(t time.Time) Clock { return func(format string) string { return strftime(t, format) } }

// Render renders the template with the members of vars as variables; their values are those of package pyjson. An error
// is an *Error, or the one of ctx.
func (t *Template) Render(ctx context.Context, vars *pyjson.Object, now Clock) (res Result, err error) {
	r := &run{ctx: ctx, now: now, line: 1}
	defer func() { res.Cost = r.steps + r.memory/32 }()
	defer catch(&err)
	r.out = &r.root
	r.vars = r.fromJSON(vars, 0).(*dict)
	r.top = &scope{}
	r.exec(t.body, r.top)
	return Result{Text: r.root.String(), Generated: r.generated}, ctx.Err()
}

// stopped is the panic of a run whose context has ended.
type stopped struct{ error }

// run is one rendering of a template.
type run struct {
	ctx       context.Context
	now       Clock
	vars      *dict
	top       *scope
	line      int // of what is evaluated
	root      strings.Builder
	out       *strings.Builder // what tags write to
	generated [][2]int

	steps, memory, input, written int
	depth, calls                  int
}

// scope holds the variables that tags have set in a body.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (s *scope) set(name string, v Value) {
	if s.vars == nil {
		s.vars = map[string]Value{}
	}
	s.vars[name] = v
}

func (s *scope) inner() *scope { return &scope{parent: s} }

// control is how a body ended.
type control int

const (
	done  control = iota
	stop          // {% break %}
	again         // {% continue %}
)

func (r *run) fail(k Kind, format string, args ...any) {
	panic(&Error{k, r.line, fmt.Sprintf(format, args...)})
}

func (r *run) failf(format string, args ...any) { r.fail(Runtime, format, args...) }
func (r *run) limit(format string, args ...any) { r.fail(Limit, format, args...) }

// work counts steps.
func (r *run) work(n int) {
	before := r.steps
	if r.steps += n; r.steps > MaxSteps {
		r.limit("more than %d steps", MaxSteps)
	}
	if before>>12 != r.steps>>12 && r.ctx.Err() != nil {
		panic(stopped{r.ctx.Err()})
	}
}

// alloc counts the bytes of a value before or after it is made.
func (r *run) alloc(n int) {
	r.memory += n
	if r.memory > MaxMemory+2*r.input || n < 0 {
		r.limit("texts, lists and dicts of more than %d bytes", MaxMemory)
	}
	r.work(n / 64)
}

// nested refuses values nested too deep.
func (r *run) nested(depth int) {
	if depth > maxNested {
		r.limit("a value nested more than %d levels deep", maxNested)
	}
}

// enter counts a call of the evaluator within another one.
func (r *run) enter() {
	if r.depth++; r.depth > maxDepth {
		r.limit("more than %d evaluations within each other", maxDepth)
	}
}

func (r *run) emit(s string) {
	if r.written += len(s); r.written > MaxOutput {
		r.limit("more than %d bytes of output", MaxOutput)
	}
	r.out.WriteString(s)
}

// capture returns what fn writes.
func (r *run) capture(fn func()) string {
	outer := r.out
	var b strings.Builder
	r.out = &b
	fn()
	r.out = outer
	r.alloc(b.Len())
	return b.String()
}

func (r *run) exec(list []stmt, s *scope) control {
	r.enter()
	defer func() { r.depth-- }()
	for _, st := range list {
		r.work(1)
		r.line = st.at()
		if c := r.statement(st, s); c != done {
			return c
		}
	}
	return done
}

func (r *run) statement(st stmt, s *scope) control {
	switch st := st.(type) {
	case *text:
		r.emit(st.s)
	case *output:
		r.emit(r.str(r.eval(st.x, s)))
	case *ifChain:
		for i, t := range st.tests {
			if truth(r.eval(t, s)) {
				return r.exec(st.bodies[i], s)
			}
		}
		return r.exec(st.orElse, s)
	case *forLoop:
		return r.forLoop(st, s, r.eval(st.iter, s), 0)
	case *set:
		r.assign(st.target, r.eval(st.value, s), s)
	case *setBlock:
		c := done
		var v Value = r.capture(func() { c = r.exec(st.body, s.inner()) })
		if c != done {
			return c
		}
		if st.filter != nil {
			v = r.filter(st.filter, v, s)
		}
		r.assign(st.target, v, s)
	case *with:
		in := s.inner()
		for i, t := range st.targets {
			r.assign(t, r.eval(st.values[i], s), in)
		}
		return r.exec(st.body, in)
	case *macroDef:
		s.set(st.name, &macro{st.name, st.sig, s})
	case *callBlock:
		caller := &macro{"caller", st.sig, s}
		r.emit(r.str(r.call(st.call, s, caller)))
	case *filterBlock:
		c := done
		v := r.capture(func() { c = r.exec(st.body, s.inner()) })
		if c != done {
			return c
		}
		r.line = st.at()
		r.emit(r.str(r.filter(st.filter, v, s)))
	case *generation:
		from := r.root.Len()
		r.exec(st.body, s.inner())
		if r.out == &r.root {
			r.generated = append(r.generated, [2]int{from, r.root.Len()})
		}
	case *block:
		r.exec(st.body, r.top.inner())
	case *loopControl:
		return st.c
	case *noLoader:
		r.fail(Forbidden, "{%% %s %%} reads another template, of which a chat template has none", st.tag)
	}
	return done
}

// assign gives a value to a target.
func (r *run) assign(target expr, v Value, s *scope) {
	switch t := target.(type) {
	case *name:
		s.set(t.name, v)
	case *tupleLit:
		items := r.iterate(v)
		if len(items) != len(t.items) {
			r.failf("%d values for %d names", len(items), len(t.items))
		}
		for i, x := range t.items {
			r.assign(x, items[i], s)
		}
	case *nsAttribute:
		r.line = t.at()
		ns, ok := r.lookup(t.ns, s).(*namespace)
		if !ok {
			r.failf("assignment to an attribute of %s, which is no namespace", short(t.ns))
		}
		if _, ok := ns.vars.get(t.name); !ok {
			r.alloc(64)
		}
		ns.vars.set(t.name, v)
	}
}

// lookup returns the value of a name.
func (r *run) lookup(n string, s *scope) Value {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[n]; ok {
			return v
		}
	}
	if v, ok := r.vars.get(n); ok {
		return v
	}
	if f, ok := globals[n]; ok {
		return f
	}
	return &undefined{text: short(n) + " is undefined"}
}

// loop is the variable of that name.
type loop struct {
	items   []Value
	i       int
	depth   int
	changed Value
	recurse func(v Value) Value // of a recursive loop
}

func (r *run) forLoop(f *forLoop, s *scope, over Value, depth int) control {
	if !iterable(over) {
		r.line = f.at()
		r.failf("%s is not iterable, want a list, dict or text", r.describe(over))
	}
	items := r.iterate(over)
	if f.cond != nil {
		var kept []Value
		for _, x := range items {
			in := s.inner()
			r.assign(f.target, x, in)
			if truth(r.eval(f.cond, in)) {
				kept = append(kept, x)
			}
		}
		r.alloc(16 * len(kept))
		items = kept
	}
	if len(items) == 0 {
		return r.exec(f.orElse, s.inner())
	}
	l := &loop{items: items, depth: depth, changed: absent{}}
	if f.recursive {
		l.recurse = func(v Value) Value {
			r.enterCall("loop")
			defer r.leaveCall()
			return r.capture(func() { r.forLoop(f, s, v, depth+1) })
		}
	}
	for i, x := range items {
		r.work(1)
		l.i = i
		in := s.inner()
		in.set("loop", l)
		r.assign(f.target, x, in)
		if r.exec(f.body, in) == stop {
			break
		}
	}
	return done
}

// attribute returns an attribute of loop.
func (l *loop) attribute(name string) (Value, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1), true
	case "index0":
		return int64(l.i), true
	case "revindex":
		return int64(n - l.i), true
	case "revindex0":
		return int64(n - l.i - 1), true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(l.depth + 1), true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if l.i == 0 {
			return &undefined{text: "there is no previous item"}, true
		}
		return l.items[l.i-1], true
	case "nextitem":
		if l.i == n-1 {
			return &undefined{text: "there is no next item"}, true
		}
		return l.items[l.i+1], true
	case "cycle":
		return &function{"cycle", func(r *run, a *callArgs) Value {
			a.noNames(r, "cycle")
			if len(a.list) == 0 {
				r.failf("cycle() without values")
			}
			return a.list[l.i%len(a.list)]
		}}, true
	case "changed":
		return &function{"changed", func(r *run, a *callArgs) Value {
			a.noNames(r, "changed")
			v := r.newTuple(a.list...)
			if _, first := l.changed.(absent); !first && r.equal(l.changed, v, 0) {
				return false
			}
			l.changed = v
			return true
		}}, true
	}
	return nil, false
}

// macro is a macro or the body of a call block, with the scope it was defined in.
type macro struct {
	name  string
	sig   *signature
	scope *scope
}

func (r *run) enterCall(name string) {
	if r.calls++; r.calls > MaxCalls {
		r.limit("%s calls itself: more than %d calls within each other", short(name), MaxCalls)
	}
}

func (r *run) leaveCall() { r.calls-- }

func (r *run) callMacro(m *macro, a *callArgs) Value {
	r.enterCall(m.name)
	defer r.leaveCall()
	line := r.line
	sig, in := m.sig, m.scope.inner()
	values := make([]Value, len(sig.params))
	for i, p := range sig.params {
		values[i] = absent{}
		if i < len(a.list) {
			values[i] = a.list[i]
		} else if v, ok := a.take(p); ok {
			values[i] = v
		}
	}
	explicit := false
	for _, p := range sig.params {
		explicit = explicit || p == "caller"
	}
	if sig.caller && !explicit {
		v, ok := a.take("caller")
		if !ok || v == nil {
			v = &undefined{text: "no caller defined"}
		}
		in.set("caller", v)
	}
	if sig.kwargs {
		d := newDict()
		for i, n := range a.names {
			d.set(n, a.named[i])
		}
		in.set("kwargs", d)
	} else if len(a.names) > 0 {
		r.failf("macro %s has no parameter %s", short(m.name), short(a.names[0]))
	}
	var rest []Value
	if n := len(sig.params); len(a.list) > n {
		rest = a.list[n:]
	}
	if sig.varargs {
		in.set("varargs", r.newTuple(rest...))
	} else if len(rest) > 0 {
		r.failf("macro %s: %d arguments, want at most %d", short(m.name), len(a.list), len(sig.params))
	}
	for i, p := range sig.params {
		if _, missing := values[i].(absent); missing {
			if d := i - (len(sig.params) - len(sig.defaults)); d >= 0 {
				values[i] = r.eval(sig.defaults[d], in)
			} else {
				values[i] = &undefined{text: "parameter " + short(p) + " was not provided"}
			}
		}
		in.set(p, values[i])
	}
	s := r.capture(func() { r.exec(sig.body, in) })
	r.line = line
	return s
}

// callArgs are the values that a call gives.
type callArgs struct {
	list  []Value
	names []string
	named []Value
}

// take returns an argument by its name and removes it.
func (a *callArgs) take(name string) (Value, bool) {
	for i, n := range a.names {
		if n == name {
			v := a.named[i]
			a.names = append(a.names[:i:i], a.names[i+1:]...)
			a.named = append(a.named[:i:i], a.named[i+1:]...)
			return v, true
		}
	}
	return nil, false
}

func (a *callArgs) noNames(r *run, fn string) {
	if len(a.names) > 0 {
		r.failf("%s() has no argument %s", fn, short(a.names[0]))
	}
}

// absent is the value of an optional argument that is not given.
type absent struct{}

// bind gives arguments to parameters by place or name; a name that ends in ? is optional.
func (a *callArgs) bind(r *run, fn string, params []string) []Value {
	if len(a.list) > len(params) {
		r.failf("%s: %d arguments, want at most %d", fn, len(a.list), len(params))
	}
	values := make([]Value, len(params))
	for i, p := range params {
		p, optional := strings.CutSuffix(p, "?")
		v, named := a.take(p)
		switch {
		case i < len(a.list) && named:
			r.failf("%s: argument %q is given twice", fn, p)
		case i < len(a.list):
			values[i] = a.list[i]
		case named:
			values[i] = v
		case optional:
			values[i] = absent{}
		default:
			r.failf("%s without its argument %q", fn, p)
		}
	}
	if len(a.names) > 0 {
		r.failf("%s has no argument %s", fn, short(a.names[0]))
	}
	return values
}

// given returns None for an argument that is not given.
func given(v Value) Value {
	if _, no := v.(absent); no {
		return nil
	}
	return v
}

// optional converts an argument if it is given.
func optional[T any](v Value, otherwise T, convert func(Value) T) T {
	if _, no := v.(absent); no {
		return otherwise
	}
	return convert(v)
}

// int returns the value of an argument that has to be an integer.
func (r *run) int(what string, v Value) int64 {
	i, ok := intOf(v)
	if !ok {
		r.failf("%s: %s, want an integer", what, r.describe(v))
	}
	return i
}

// text returns the value of an argument that has to be a text.
func (r *run) text(what string, v Value) string {
	s, ok := textOf(v)
	if !ok {
		r.failf("%s: %s, want a text", what, r.describe(v))
	}
	return s
}

// args evaluates the arguments of a call.
func (r *run) args(a *arguments, s *scope) *callArgs {
	c := &callArgs{}
	for _, x := range a.list {
		c.list = append(c.list, r.eval(x, s))
	}
	for i, x := range a.named {
		c.names = append(c.names, a.names[i])
		c.named = append(c.named, r.eval(x, s))
	}
	if a.star != nil {
		items := r.iterate(r.eval(a.star, s))
		r.alloc(16 * len(items))
		c.list = append(c.list, items...)
	}
	if a.double != nil {
		d, ok := r.eval(a.double, s).(*dict)
		if !ok {
			r.failf("** before a value that is no dict")
		}
		r.alloc(32 * len(d.keys))
		for i, k := range d.keys {
			n := r.text("argument name", k)
			for _, other := range c.names {
				if other == n {
					r.failf("argument %s is given twice", short(n))
				}
			}
			r.work(len(c.names) / 16)
			c.names = append(c.names, n)
			c.named = append(c.named, d.values[i])
		}
	}
	return c
}

// call evaluates a call; caller is the body of a call block or nil.
func (r *run) call(c *call, s *scope, caller *macro) Value {
	fn := r.eval(c.fn, s)
	a := r.args(&c.args, s)
	if caller != nil {
		a.names = append(a.names, "caller")
		a.named = append(a.named, caller)
	}
	r.line = c.at()
	return r.invoke(fn, a)
}

func (r *run) invoke(fn Value, a *callArgs) Value {
	switch fn := fn.(type) {
	case *function:
		return fn.call(r, a)
	case *macro:
		return r.callMacro(fn, a)
	case *loop:
		if fn.recurse == nil {
			r.failf("loop() in a loop that is not recursive")
		}
		return fn.recurse(a.bind(r, "loop", []string{"iterable"})[0])
	case *undefined:
		r.undefined(fn)
	}
	r.failf("%s is called, want a function or macro", r.describe(fn))
	return nil
}

// undefined is the error of an undefined value that is used.
func (r *run) undefined(u *undefined) {
	if u.forbidden {
		r.fail(Forbidden, "%s", u.text)
	}
	r.failf("%s", u.text)
}

func (r *run) filter(x expr, v Value, s *scope) Value {
	f := x.(*filtered)
	if f.x != nil {
		v = r.filter(f.x, v, s)
	}
	return r.applyFilter(f.at(), f.name, v, r.args(&f.args, s))
}

func (r *run) applyFilter(line int, name string, v Value, a *callArgs) Value {
	f, ok := filters[name]
	if !ok {
		panic(unknownFilter(line, name))
	}
	r.line = line
	r.work(1)
	a.list = append([]Value{v}, a.list...)
	if f.raw != nil {
		return f.raw(r, a)
	}
	return f.fn(r, a.bind(r, "filter "+name, f.params))
}

func (r *run) applyTest(line int, name string, v Value, a *callArgs) bool {
	t, ok := tests[name]
	if !ok {
		panic(unknownTest(line, name))
	}
	r.line = line
	r.work(1)
	a.list = append([]Value{v}, a.list...)
	return t.fn(r, a.bind(r, "test "+name, t.params))
}

func (r *run) eval(x expr, s *scope) Value {
	r.enter()
	r.work(1)
	v := r.evaluate(x, s)
	r.depth--
	return v
}

func (r *run) evaluate(x expr, s *scope) Value {
	switch x := x.(type) {
	case *constant:
		return x.v
	case *name:
		return r.lookup(x.name, s)
	case *attribute:
		v := r.eval(x.x, s)
		r.line = x.at()
		return r.attribute(v, x.name)
	case *index:
		v := r.eval(x.x, s)
		if sl, ok := x.i.(*slice); ok {
			return r.slice(v, sl, s)
		}
		i := r.eval(x.i, s)
		r.line = x.at()
		return r.item(v, i)
	case *call:
		return r.call(x, s, nil)
	case *filtered:
		v := r.eval(x.x, s)
		return r.applyFilter(x.at(), x.name, v, r.args(&x.args, s))
	case *test:
		v := r.eval(x.x, s)
		return r.applyTest(x.at(), x.name, v, r.args(&x.args, s))
	case *unary:
		v := r.eval(x.x, s)
		r.line = x.at()
		return r.unary(x.op, v)
	case *binary:
		l := r.eval(x.l, s)
		v := r.eval(x.r, s)
		r.line = x.at()
		return r.binary(x.op, l, v)
	case *logical:
		l := r.eval(x.l, s)
		if truth(l) != x.and {
			return l
		}
		return r.eval(x.r, s)
	case *compare:
		l := r.eval(x.x, s)
		for i, op := range x.ops {
			v := r.eval(x.with[i], s)
			r.line = x.at()
			if !r.compare(op, l, v) {
				return false
			}
			l = v
		}
		return true
	case *concat:
		var b strings.Builder
		for _, p := range x.parts {
			t := r.str(r.eval(p, s))
			r.alloc(len(t))
			b.WriteString(t)
		}
		return b.String()
	case *conditional:
		switch {
		case truth(r.eval(x.test, s)):
			return r.eval(x.yes, s)
		case x.no != nil:
			return r.eval(x.no, s)
		}
		return &undefined{text: "an inline if without else has no value where its test is false"}
	case *listLit:
		return r.newList(r.evalAll(x.items, s))
	case *tupleLit:
		return r.newTuple(r.evalAll(x.items, s)...)
	case *dictLit:
		d := newDict()
		r.alloc(96 * len(x.keys))
		for i, k := range x.keys {
			key := r.eval(k, s)
			v := r.eval(x.values[i], s)
			r.line = x.at()
			d.put(r.keyOf(key, 0), key, v)
		}
		return d
	case *slice:
		r.line = x.at()
		r.failf("a slice among several indexes, want one index")
	}
	r.failf("an expression that has no value: %T", x)
	return nil
}

func (r *run) evalAll(list []expr, s *scope) []Value {
	items := make([]Value, len(list))
	for i, x := range list {
		items[i] = r.eval(x, s)
	}
	return items
}

// attribute is x.name: an attribute, else the value of a key.
func (r *run) attribute(x Value, name string) Value {
	switch x := x.(type) {
	case *undefined:
		r.undefined(x)
	case *namespace:
		if v, ok := x.vars.get(name); ok {
			return v
		}
	case *loop:
		if v, ok := x.attribute(name); ok {
			return v
		}
	}
	if v, ok := r.member(x, name); ok {
		return v
	}
	if d, ok := x.(*dict); ok {
		if v, ok := d.get(name); ok {
			return v
		}
	}
	return missing(x, name)
}

func missing(x Value, name string) *undefined {
	return &undefined{text: fmt.Sprintf("a value of type %s has no attribute or key %s", typeName(x), short(name))}
}

// member returns a method or another attribute that a Python object has.
func (r *run) member(x Value, name string) (Value, bool) {
	if hidden(x, name) {
		return &undefined{text: fmt.Sprintf("attribute %s of type %s is not for templates", short(name), typeName(x)),
			forbidden: true}, true
	}
	if m, ok := x.(*macro); ok && name == "name" {
		return m.name, true
	}
	if v, ok := part(x, name); ok {
		return v, true
	}
	m, ok := methods[typeOf(x)][name]
	if !ok {
		return nil, false
	}
	return &function{name, func(r *run, a *callArgs) Value {
		r.work(1)
		if m.raw == nil && len(a.names) > 0 && !slices.Contains(m.named, a.names[0]) {
			r.failf("%s() has no argument with the name %s", name, short(a.names[0]))
		}
		if m.raw != nil {
			return m.raw(r, x, a)
		}
		if m.fn == nil {
			r.limit("method %s() of %s is not supported", name, typeName(x))
		}
		return m.fn(r, x, a.bind(r, name+"()", m.params))
	}}, true
}

// part returns an attribute of a number that is no method.
func part(x Value, name string) (Value, bool) {
	_, isInt := intOf(x)
	_, isNumber := floatOf(x)
	switch {
	case name == "real" && isNumber, name == "numerator" && isInt:
		return x, true
	case name == "imag" && isInt:
		return int64(0), true
	case name == "imag" && isNumber:
		return 0.0, true
	case name == "denominator" && isInt:
		return int64(1), true
	}
	return nil, false
}

// item is x[i]: an element, else an attribute.
func (r *run) item(x, i Value) Value {
	switch x := x.(type) {
	case *undefined:
		r.undefined(x)
	case *dict:
		switch i.(type) {
		case *list, *dict, *view:
		default:
			if v, ok := x.lookup(r.keyOf(i, 0)); ok {
				return v
			}
		}
	case *list, *tuple, ranged, string, markup:
		if n, ok := intOf(i); ok {
			if v, ok := r.element(x, n); ok {
				return v
			}
		}
	case *namespace:
		if n, ok := textOf(i); ok {
			if v, ok := x.vars.get(n); ok {
				return v
			}
		}
	case *loop:
		if n, ok := textOf(i); ok {
			if v, ok := x.attribute(n); ok {
				return v
			}
		}
	}
	if n, ok := textOf(i); ok {
		if v, ok := r.member(x, n); ok {
			return v
		}
		return missing(x, n)
	}
	return missing(x, r.str(i))
}

// element returns the element of a sequence with that index, which counts from the end if it is negative.
func (r *run) element(x Value, i int64) (Value, bool) {
	if s, ok := textOf(x); ok {
		n := int64(r.count(s))
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, false
		}
		if n == int64(len(s)) {
			return like(x, s[i:i+1]), true
		}
		for _, c := range s {
			if i == 0 {
				return like(x, string(c)), true
			}
			i--
		}
	}
	n := r.length(x)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return nil, false
	}
	switch x := x.(type) {
	case *list:
		return x.items[i], true
	case *tuple:
		return x.items[i], true
	}
	rg := x.(ranged)
	return rg.start + i*rg.step, true
}

// slice is x[from:to:step].
func (r *run) slice(x Value, sl *slice, s *scope) Value {
	bound := func(e expr) (int64, bool) {
		if e == nil {
			return 0, false
		}
		v := r.eval(e, s)
		if v == nil {
			return 0, false
		}
		return r.int("slice", v), true
	}
	from, hasFrom := bound(sl.from)
	to, hasTo := bound(sl.to)
	step, hasStep := bound(sl.step)
	r.line = sl.at()
	if !hasStep {
		step = 1
	}
	if u, ok := x.(*undefined); ok {
		r.undefined(u)
	}
	switch x.(type) {
	case string, markup, *list, *tuple, ranged:
	default:
		r.failf("slice of %s, want a list or text", r.describe(x))
	}
	if step == 0 {
		r.failf("slice with step 0")
	}
	n := r.length(x)
	low, high := int64(0), n // of the bounds
	if step < 0 {
		low, high = -1, n-1
	}
	clip := func(i int64, has bool, otherwise int64) int64 {
		if !has {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	if step > 0 {
		from, to = clip(from, hasFrom, low), clip(to, hasTo, high)
	} else {
		from, to = clip(from, hasFrom, high), clip(to, hasTo, low)
	}
	count := int64(0)
	if step > 0 && from < to {
		count = (to-from-1)/step + 1
	} else if step < 0 && from > to {
		count = (from-to-1)/-max(step, -math.MaxInt64) + 1
	}
	if text, ok := textOf(x); ok {
		if step == 1 && n == int64(len(text)) {
			return like(x, text[from:from+count])
		}
		chars := []rune(text)
		r.alloc(4*len(chars) + 4*int(count))
		cut := make([]rune, count)
		for i := range cut {
			cut[i] = chars[from+int64(i)*step]
		}
		return like(x, string(cut))
	}
	if rg, ok := x.(ranged); ok {
		return ranged{rg.start + from*rg.step, rg.step * step, count}
	}
	var items []Value
	switch x := x.(type) {
	case *list:
		items = x.items
	case *tuple:
		items = x.items
	}
	cut := make([]Value, count)
	for i := range cut {
		cut[i] = items[from+int64(i)*step]
	}
	if _, ok := x.(*tuple); ok {
		return r.newTuple(cut...)
	}
	return r.newList(cut)
}

func (r *run) compare(op string, a, b Value) bool {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		return !r.equal(a, b, 0)
	case "in":
		return r.contains(a, b)
	case "notin":
		return !r.contains(a, b)
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok {
			r.undefined(u)
		}
	}
	switch op {
	case "<":
		return r.less(op, a, b, 0)
	case ">":
		return r.less(op, b, a, 0)
	case "<=":
		return r.less(op, a, b, 0) || r.equal(a, b, 0)
	}
	return r.less(op, b, a, 0) || r.equal(a, b, 0)
}
