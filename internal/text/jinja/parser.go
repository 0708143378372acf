package jinja

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Template is a parsed template. It can be rendered by several goroutines at a time.
type Template struct {
	body []stmt
}

// Parse parses a template with the settings of transformers' apply_chat_template. An error is an *Error.
func Parse(source string) (t *Template, err error) {
	if len(source) > MaxSource {
		return nil, &Error{Limit, 1, fmt.Sprintf("the template has %d bytes, want at most %d", len(source), MaxSource)}
	}
	if !utf8.ValidString(source) {
		return nil, &Error{Syntax, 1, "the template is not UTF-8"}
	}
	defer catch(&err)
	p := &parser{tokens: tokenize(source)}
	body := p.statements(nil, "")
	p.refuseUnknown(0)
	return &Template{body}, nil
}

// catch makes an error of a panic with an *Error.
func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	case stopped:
		*err = e.error
	default:
		panic(e)
	}
}

type parser struct {
	tokens []token
	pos    int
	depth  int
	loops  int // for loops around, within the same macro
	macros []*signature
	// unknown has an error for each filter and test that does not exist. Outside of an if the template is refused;
	// within one, which may ask first whether the name exists, evaluating it is the error.
	unknown []*Error
}

func (p *parser) failf(line int, format string, args ...any) {
	panic(&Error{Syntax, line, fmt.Sprintf(format, args...)})
}

// enter counts a level of nesting, leave ends it.
func (p *parser) enter() {
	if p.depth++; p.depth > MaxNesting {
		panic(&Error{Limit, p.peek().line, fmt.Sprintf("nested too deep, want at most %d levels", MaxNesting)})
	}
}

func (p *parser) leave() { p.depth-- }

func (p *parser) refuseUnknown(from int) {
	if len(p.unknown) > from {
		panic(p.unknown[from])
	}
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) look() token { return p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) is(k tokenKind, text string) bool {
	t := p.peek()
	return t.kind == k && t.text == text
}
func (p *parser) isOp(op string) bool { return p.is(tokOp, op) }
func (p *parser) isName(names ...string) bool {
	t := p.peek()
	return t.kind == tokName && slices.Contains(names, t.text)
}

func (p *parser) skip(k tokenKind, text string) bool {
	if p.is(k, text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipOp(op string) bool     { return p.skip(tokOp, op) }
func (p *parser) skipName(name string) bool { return p.skip(tokName, name) }

func (p *parser) expect(k tokenKind, text string) token {
	t := p.next()
	if t.kind != k || text != "" && t.text != text {
		p.failf(t.line, "%v, want %v", t, token{kind: k, text: text})
	}
	return t
}

func (p *parser) expectOp(op string) { p.expect(tokOp, op) }

func (p *parser) expectName() token {
	t := p.next()
	if t.kind != tokName {
		p.failf(t.line, "%v, want a name", t)
	}
	if isDecimalName(t.text) {
		p.failf(t.line, "%v is not a name", t)
	}
	return t
}

// isDecimalName reports whether a name begins with a digit that is not ASCII.
func isDecimalName(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return r != '_' && !isLetter(r)
}

// statements parses up to one of the tags in ends, whose name is the next token afterwards; of the tag it is within
// for errors.
func (p *parser) statements(ends []string, within string) []stmt {
	p.enter()
	defer p.leave()
	var list []stmt
	for {
		switch t := p.next(); t.kind {
		case tokEOF:
			if ends != nil {
				p.failf(t.line, "the end of the template, want {%% %s %%} for {%% %s %%}", ends[len(ends)-1], within)
			}
			return list
		case tokData:
			list = append(list, &text{pos(t.line), t.text})
		case tokPrint:
			list = append(list, &output{pos(t.line), p.tuple(true, nil, false)})
			p.expect(tokPrintEnd, "")
		default: // tokTag: tokens inside of tags end with their tag
			if p.peek().kind == tokName && slices.Contains(ends, p.peek().text) {
				return list
			}
			list = append(list, p.statement(ends, within)...)
			p.expect(tokTagEnd, "")
		}
	}
}

// body parses the statements after a tag up to one of ends.
func (p *parser) body(within string, ends ...string) []stmt {
	p.skipOp(":")
	p.expect(tokTagEnd, "")
	return p.statements(ends, within)
}

func (p *parser) statement(ends []string, within string) []stmt {
	t := p.next()
	if t.kind != tokName {
		p.failf(t.line, "%v, want the name of a tag", t)
	}
	one := func(s stmt) []stmt { return []stmt{s} }
	at := pos(t.line)
	switch t.text {
	case "for":
		return one(p.forLoop(at))
	case "if":
		return one(p.ifChain(at))
	case "set":
		return one(p.set(at))
	case "with":
		return one(p.with(at))
	case "macro":
		name := p.expectName().text
		p.expectOp("(")
		sig := p.signature(name)
		return one(&macroDef{at, name, p.macroBody(sig, "macro", "endmacro")})
	case "call":
		sig := &signature{}
		if p.skipOp("(") {
			sig = p.signature("caller")
		}
		c, ok := p.expression().(*call)
		if !ok {
			p.failf(t.line, "{%% call %%} without a call")
		}
		return one(&callBlock{at, c, p.macroBody(sig, "call", "endcall")})
	case "filter":
		f := p.filters(nil, true)
		return one(&filterBlock{at, f, p.inner("filter", "endfilter")})
	case "generation":
		return one(&generation{at, p.macroBody(&signature{}, "generation", "endgeneration").body})
	case "break", "continue":
		if p.loops == 0 {
			p.failf(t.line, "{%% %s %%} outside of a loop", t.text)
		}
		c := stop
		if t.text == "continue" {
			c = again
		}
		return one(&loopControl{at, c})
	case "block":
		p.expectName()
		for p.skipName("scoped") || p.skipName("required") {
		}
		b := &block{at, p.macroBody(&signature{}, "block", "endblock").body}
		if p.peek().kind == tokName {
			p.next()
		}
		return one(b)
	case "print":
		var list []stmt
		for p.peek().kind != tokTagEnd {
			if list != nil {
				p.expectOp(",")
			}
			list = append(list, &output{at, p.expression()})
		}
		return list
	case "include", "import", "extends", "from":
		for p.peek().kind != tokTagEnd && p.peek().kind != tokEOF {
			p.next()
		}
		return one(&noLoader{at, t.text})
	case "autoescape":
		panic(&Error{Limit, t.line, "{% autoescape %} is not supported"})
	}
	if len(ends) > 0 {
		p.failf(t.line, "unknown tag %s, want {%% %s %%} for {%% %s %%}", short(t.text), ends[len(ends)-1], within)
	}
	p.failf(t.line, "unknown tag %s", short(t.text))
	return nil
}

// inner parses the body of a tag with a scope of its own, and the tag that ends it.
func (p *parser) inner(tag, end string) []stmt {
	from := len(p.unknown)
	body := p.body(tag, end)
	p.next()
	p.refuseUnknown(from)
	return body
}

func (p *parser) forLoop(at pos) stmt {
	f := &forLoop{pos: at, target: p.target([]string{"in"}, false)}
	p.expect(tokName, "in")
	f.iter = p.tuple(false, []string{"recursive"}, false)
	from := len(p.unknown)
	if p.skipName("if") {
		f.cond = p.expression()
	}
	f.recursive = p.skipName("recursive")
	p.loops++
	f.body = p.body("for", "else", "endfor")
	p.loops--
	if p.next().text == "else" {
		f.orElse = p.body("for", "endfor")
		p.next()
	}
	p.refuseUnknown(from)
	return f
}

func (p *parser) ifChain(at pos) stmt {
	from := len(p.unknown)
	c := &ifChain{pos: at}
	for {
		c.tests = append(c.tests, p.tuple(false, nil, false))
		c.bodies = append(c.bodies, p.body("if", "elif", "else", "endif"))
		switch p.next().text {
		case "elif":
			continue
		case "else":
			c.orElse = p.body("if", "endif")
			p.next()
		}
		p.unknown = p.unknown[:from]
		return c
	}
}

func (p *parser) set(at pos) stmt {
	target := p.target(nil, true)
	if p.skipOp("=") {
		return &set{at, target, p.tuple(true, nil, false)}
	}
	f := p.filters(nil, false)
	return &setBlock{at, target, f, p.inner("set", "endset")}
}

func (p *parser) with(at pos) stmt {
	w := &with{pos: at}
	for p.peek().kind != tokTagEnd {
		if w.targets != nil {
			p.expectOp(",")
		}
		w.targets = append(w.targets, p.target(nil, false))
		p.expectOp("=")
		w.values = append(w.values, p.expression())
	}
	w.body = p.inner("with", "endwith")
	return w
}

// signature parses the parameters of a macro after the parenthesis.
func (p *parser) signature(name string) *signature {
	s := &signature{}
	for !p.isOp(")") {
		if s.params != nil {
			p.expectOp(",")
		}
		t := p.expectName()
		p.notConstant(t)
		if slices.Contains(s.params, t.text) {
			p.failf(t.line, "macro %s has two parameters %s", short(name), short(t.text))
		}
		if p.skipOp("=") {
			s.defaults = append(s.defaults, p.expression())
		} else if s.defaults != nil {
			p.failf(t.line, "parameter %s of macro %s has no default, but follows one that has", short(t.text),
				short(name))
		}
		s.params = append(s.params, t.text)
	}
	p.expectOp(")")
	return s
}

func (p *parser) macroBody(s *signature, tag, end string) *signature {
	loops := p.loops
	p.loops = 0
	p.macros = append(p.macros, s)
	s.body = p.inner(tag, end)
	p.macros = p.macros[:len(p.macros)-1]
	p.loops = loops
	return s
}

func (p *parser) notConstant(t token) {
	if _, ok := constants[t.text]; ok {
		p.failf(t.line, "assignment to %s, want a name", short(t.text))
	}
}

// target parses what a tag assigns to: a name, a tuple of targets or, if ns is true, an attribute of a namespace.
func (p *parser) target(ends []string, ns bool) expr {
	t := p.peek()
	p.enter()
	defer p.leave()
	x := p.tupleOf(func() expr { return p.primary(ns) }, ends, false)
	p.checkTarget(x, t)
	return x
}

func (p *parser) checkTarget(x expr, t token) {
	switch x := x.(type) {
	case *name, *nsAttribute:
	case *tupleLit:
		for _, y := range x.items {
			p.checkTarget(y, t)
		}
	default:
		p.failf(t.line, "assignment to %v, want a name", t)
	}
}

func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	from := len(p.unknown)
	x := p.or()
	for p.isName("if") {
		t := p.next()
		c := &conditional{pos: pos(t.line), yes: x}
		c.test = p.or()
		if p.skipName("else") {
			c.no = p.expression()
		}
		x = c
		p.unknown = p.unknown[:from]
	}
	return x
}

// tuple parses an expression, or several with commas between them. Without cond, x if y is not parsed; ends are names
// that may follow a last comma.
func (p *parser) tuple(cond bool, ends []string, parens bool) expr {
	return p.tupleOf(func() expr {
		if cond {
			return p.expression()
		}
		p.enter()
		defer p.leave()
		return p.or()
	}, ends, parens)
}

func (p *parser) tupleOf(parse func() expr, ends []string, parens bool) expr {
	line := p.peek().line
	var items []expr
	several := false
	for {
		if items != nil {
			p.expectOp(",")
		}
		if t := p.peek(); t.kind == tokPrintEnd || t.kind == tokTagEnd || p.isOp(")") || p.isName(ends...) {
			break
		}
		items = append(items, parse())
		if !p.isOp(",") {
			break
		}
		several = true
	}
	if !several {
		if len(items) == 1 {
			return items[0]
		}
		if !parens {
			p.failf(line, "%v, want an expression", p.peek())
		}
	}
	return &tupleLit{pos(line), items}
}

func (p *parser) or() expr {
	l := p.and()
	for p.isName("or") {
		t := p.next()
		l = &logical{pos(t.line), false, l, p.and()}
	}
	return l
}

func (p *parser) and() expr {
	l := p.not()
	for p.isName("and") {
		t := p.next()
		l = &logical{pos(t.line), true, l, p.not()}
	}
	return l
}

func (p *parser) not() expr {
	if p.isName("not") {
		p.enter()
		defer p.leave()
		t := p.next()
		return &unary{pos(t.line), "not", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	c := &compare{pos: pos(p.peek().line), x: x}
	for {
		switch t := p.peek(); {
		case t.kind == tokOp && slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, t.text):
			p.next()
			c.ops = append(c.ops, t.text)
		case p.skipName("in"):
			c.ops = append(c.ops, "in")
		case p.isName("not") && p.look().kind == tokName && p.look().text == "in":
			p.next()
			p.next()
			c.ops = append(c.ops, "notin")
		default:
			if c.ops == nil {
				return x
			}
			return c
		}
		c.with = append(c.with, p.sum())
	}
}

func (p *parser) sum() expr {
	l := p.concat()
	for p.isOp("+") || p.isOp("-") {
		t := p.next()
		l = &binary{pos(t.line), t.text, l, p.concat()}
	}
	return l
}

func (p *parser) concat() expr {
	x := p.product()
	if !p.isOp("~") {
		return x
	}
	c := &concat{pos(p.peek().line), []expr{x}}
	for p.skipOp("~") {
		c.parts = append(c.parts, p.product())
	}
	return c
}

func (p *parser) product() expr {
	l := p.power()
	for p.isOp("*") || p.isOp("/") || p.isOp("//") || p.isOp("%") {
		t := p.next()
		l = &binary{pos(t.line), t.text, l, p.power()}
	}
	return l
}

func (p *parser) power() expr { // to the left, unlike Python's
	l := p.unary(true)
	for p.isOp("**") {
		t := p.next()
		l = &binary{pos(t.line), t.text, l, p.unary(true)}
	}
	return l
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var x expr
	if t := p.peek(); p.isOp("-") || p.isOp("+") {
		p.next()
		x = &unary{pos(t.line), t.text, p.unary(false)}
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if !filters {
		return x
	}
	for {
		switch {
		case p.isOp("|"):
			x = p.filters(x, false)
		case p.isName("is"):
			x = p.test(x)
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

var constants = map[string]Value{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

func (p *parser) primary(ns bool) expr {
	t := p.next()
	at := pos(t.line)
	switch t.kind {
	case tokName:
		if v, ok := constants[t.text]; ok {
			return &constant{at, v}
		}
		if isDecimalName(t.text) {
			p.failf(t.line, "%v is not a name", t)
		}
		if ns && p.skipOp(".") {
			return &nsAttribute{at, t.text, p.expectName().text}
		}
		for _, m := range p.macros {
			m.caller = m.caller || t.text == "caller"
			m.kwargs = m.kwargs || t.text == "kwargs"
			m.varargs = m.varargs || t.text == "varargs"
		}
		return &name{at, t.text}
	case tokString:
		s := t.text
		for p.peek().kind == tokString {
			s += p.next().text
		}
		return &constant{at, s}
	case tokInt:
		return &constant{at, t.i}
	case tokFloat:
		return &constant{at, t.f}
	case tokOp:
		switch t.text {
		case "(":
			x := p.tuple(true, nil, true)
			p.expectOp(")")
			return x
		case "[":
			return &listLit{at, p.items("]")}
		case "{":
			return p.dict(at)
		}
	}
	p.failf(t.line, "%v, want an expression", t)
	return nil
}

// items parses expressions up to a closing bracket.
func (p *parser) items(end string) []expr {
	var list []expr
	for !p.skipOp(end) {
		if list != nil {
			p.expectOp(",")
			if p.skipOp(end) {
				break
			}
		}
		list = append(list, p.expression())
	}
	return list
}

func (p *parser) dict(at pos) expr {
	d := &dictLit{pos: at}
	for !p.skipOp("}") {
		if d.keys != nil {
			p.expectOp(",")
			if p.skipOp("}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expectOp(":")
		d.values = append(d.values, p.expression())
	}
	return d
}

func (p *parser) postfix(x expr) expr {
	for {
		switch t := p.peek(); {
		case p.skipOp("."):
			switch n := p.next(); n.kind {
			case tokName:
				x = &attribute{pos(t.line), x, n.text}
			case tokInt:
				x = &index{pos(t.line), x, &constant{pos(n.line), n.i}}
			default:
				p.failf(n.line, "%v after a point, want a name or a number", n)
			}
		case p.skipOp("["):
			x = &index{pos(t.line), x, p.subscript()}
		case p.isOp("("):
			x = p.call(x)
		default:
			return x
		}
	}
}

// subscript parses what is between brackets, and the closing one.
func (p *parser) subscript() expr {
	line := p.peek().line
	var list []expr
	for !p.skipOp("]") {
		if list != nil {
			p.expectOp(",")
		}
		list = append(list, p.subscribed())
	}
	if len(list) == 1 {
		return list[0]
	}
	return &tupleLit{pos(line), list}
}

func (p *parser) subscribed() expr {
	s := &slice{pos: pos(p.peek().line)}
	if !p.isOp(":") {
		x := p.expression()
		if !p.isOp(":") {
			return x
		}
		s.from = x
	}
	p.expectOp(":")
	if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.to = p.expression()
	}
	if p.skipOp(":") && !p.isOp("]") && !p.isOp(",") {
		s.step = p.expression()
	}
	return s
}

func (p *parser) call(fn expr) expr {
	line := p.peek().line
	return &call{pos(line), fn, p.arguments()}
}

func (p *parser) arguments() (a arguments) {
	t := p.peek()
	p.expectOp("(")
	ensure := func(ok bool) {
		if !ok {
			p.failf(t.line, "arguments in the wrong order, want those without a name before those with one")
		}
	}
	for first := true; !p.skipOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.skipOp(")") {
				break
			}
		}
		switch n := p.peek(); {
		case p.skipOp("*"):
			ensure(a.star == nil && a.double == nil)
			a.star = p.expression()
		case p.skipOp("**"):
			ensure(a.double == nil)
			a.double = p.expression()
		case n.kind == tokName && p.look().kind == tokOp && p.look().text == "=":
			ensure(a.double == nil)
			p.next()
			p.next()
			if slices.Contains(a.names, n.text) {
				p.failf(n.line, "argument %s is repeated", short(n.text))
			}
			a.names = append(a.names, n.text)
			a.named = append(a.named, p.expression())
		default:
			ensure(a.star == nil && a.double == nil && a.names == nil)
			a.list = append(a.list, p.expression())
		}
	}
	return a
}

// dotted parses a name with points in it.
func (p *parser) dotted() token {
	t := p.expectName()
	for p.skipOp(".") {
		t.text += "." + p.expectName().text
	}
	return t
}

// filters parses the filters that follow x; the first one without its bar if inline is true.
func (p *parser) filters(x expr, inline bool) expr {
	for inline || p.skipOp("|") {
		inline = false
		t := p.dotted()
		f := &filtered{pos: pos(t.line), x: x, name: t.text}
		if p.isOp("(") {
			f.args = p.arguments()
		}
		if _, ok := filters[t.text]; !ok {
			p.unknown = append(p.unknown, unknownFilter(t.line, t.text))
		}
		x = f
	}
	return x
}

func unknownFilter(line int, name string) *Error {
	return &Error{Syntax, line, "no filter named " + short(name)}
}

func unknownTest(line int, name string) *Error {
	return &Error{Syntax, line, "no test named " + short(name)}
}

func (p *parser) test(x expr) expr {
	is := p.next()
	not := p.skipName("not")
	t := p.dotted()
	e := &test{pos: pos(is.line), x: x, name: t.text}
	switch n := p.peek(); {
	case p.isOp("("):
		e.args = p.arguments()
	case p.isName("else", "or", "and"):
	case p.isName("is"):
		p.failf(n.line, `"is" after a test, want parentheses around the first one`)
	case n.kind == tokName || n.kind == tokString || n.kind == tokInt || n.kind == tokFloat || p.isOp("[") || p.isOp("{"):
		e.args.list = []expr{p.postfix(p.primary(false))}
	}
	if _, ok := tests[t.text]; !ok {
		p.unknown = append(p.unknown, unknownTest(is.line, t.text))
	}
	if not {
		return &unary{pos(is.line), "not", e}
	}
	return e
}
