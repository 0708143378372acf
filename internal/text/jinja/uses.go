package jinja

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Uses is what a template mentions, whether a rendering reaches it or not.
type Uses struct {
	// Suspicious has what no conversation needs, in the order of the lines: attributes of Python's objects by which
	// templates have escaped from their sandbox (__class__, __globals__), functions of web servers, other templates,
	// ranges beyond MaxRange. An interpreter without a sandbox would give it code to run.
	Suspicious []*Error
	// Unknown has the filters and tests that Jinja does not have. A rendering that reaches one is an error.
	Unknown []*Error
	// Names are the variables that the template reads and neither sets itself nor tests for being there, by name, with
	// the first line of each. Functions of package jinja are not among them.
	Names map[string]int
}

// Uses returns what the template mentions.
func (t *Template) Uses() Uses {
	u := Uses{Names: map[string]int{}}
	own := map[string]bool{"loop": true, "caller": true, "varargs": true, "kwargs": true}
	found := func(line int, format string, args ...any) {
		u.Suspicious = append(u.Suspicious, &Error{Forbidden, line, fmt.Sprintf(format, args...)})
	}
	optional := func(x expr) {
		if n, ok := x.(*name); ok {
			own[n.name] = true
		}
	}
	// A list instead of calls within each other: nodes can be nested deep.
	var exprs []expr
	stmts := append([]stmt{}, t.body...)
	args := func(a *arguments) {
		exprs = append(append(append(exprs, a.list...), a.named...), a.star, a.double)
	}
	var targets func(x expr)
	targets = func(x expr) { // the parser bounds how deep they are nested
		switch x := x.(type) {
		case *name:
			own[x.name] = true
		case *tupleLit:
			for _, e := range x.items {
				targets(e)
			}
		case *nsAttribute:
			if internal(x.name) {
				found(x.at(), "the attribute %s is not for templates", short(x.name))
			}
		}
	}
	sig := func(s *signature) {
		for _, p := range s.params {
			own[p] = true
		}
		exprs = append(exprs, s.defaults...)
		stmts = append(stmts, s.body...)
	}
	for len(stmts) > 0 || len(exprs) > 0 {
		if n := len(exprs); n > 0 {
			x := exprs[n-1]
			exprs = exprs[:n-1]
			switch x := x.(type) {
			case *name:
				if dangerous[x.name] || servers[x.name] {
					found(x.at(), "the name %s is not for templates", short(x.name))
				} else if line, ok := u.Names[x.name]; !ok || line > x.at() {
					u.Names[x.name] = x.at()
				}
			case *constant:
				if s, ok := x.v.(string); ok && mentions(s) {
					found(x.at(), "the text %s names an attribute of Python's objects", short(s))
				}
			case *attribute:
				if internal(x.name) {
					found(x.at(), "the attribute %s is not for templates", short(x.name))
				}
				exprs = append(exprs, x.x)
			case *index:
				exprs = append(exprs, x.x, x.i)
			case *slice:
				exprs = append(exprs, x.from, x.to, x.step)
			case *call:
				if i, ok := longRange(x); ok {
					found(x.at(), "a range to %d, want at most %d numbers", i, MaxRange)
				}
				exprs = append(exprs, x.fn)
				args(&x.args)
			case *filtered:
				if _, ok := filters[x.name]; !ok {
					u.Unknown = append(u.Unknown, unknownFilter(x.at(), x.name))
				}
				if x.name == "default" || x.name == "d" {
					optional(x.x)
				}
				exprs = append(exprs, x.x)
				args(&x.args)
			case *test:
				if _, ok := tests[x.name]; !ok {
					u.Unknown = append(u.Unknown, unknownTest(x.at(), x.name))
				}
				if x.name == "defined" || x.name == "undefined" {
					optional(x.x)
				}
				exprs = append(exprs, x.x)
				args(&x.args)
			case *unary:
				exprs = append(exprs, x.x)
			case *binary:
				exprs = append(exprs, x.l, x.r)
			case *logical:
				exprs = append(exprs, x.l, x.r)
			case *compare:
				exprs = append(append(exprs, x.x), x.with...)
			case *concat:
				exprs = append(exprs, x.parts...)
			case *conditional:
				exprs = append(exprs, x.test, x.yes, x.no)
			case *listLit:
				exprs = append(exprs, x.items...)
			case *tupleLit:
				exprs = append(exprs, x.items...)
			case *dictLit:
				exprs = append(append(exprs, x.keys...), x.values...)
			}
			continue
		}
		st := stmts[0]
		stmts = stmts[1:]
		switch st := st.(type) {
		case *output:
			exprs = append(exprs, st.x)
		case *forLoop:
			targets(st.target)
			exprs = append(exprs, st.iter, st.cond)
			stmts = append(append(stmts, st.body...), st.orElse...)
		case *ifChain:
			exprs = append(exprs, st.tests...)
			for _, b := range st.bodies {
				stmts = append(stmts, b...)
			}
			stmts = append(stmts, st.orElse...)
		case *set:
			targets(st.target)
			exprs = append(exprs, st.value)
		case *setBlock:
			targets(st.target)
			exprs = append(exprs, st.filter)
			stmts = append(stmts, st.body...)
		case *with:
			for _, x := range st.targets {
				targets(x)
			}
			exprs = append(exprs, st.values...)
			stmts = append(stmts, st.body...)
		case *macroDef:
			own[st.name] = true
			sig(st.sig)
		case *callBlock:
			exprs = append(exprs, st.call)
			sig(st.sig)
		case *filterBlock:
			exprs = append(exprs, st.filter)
			stmts = append(stmts, st.body...)
		case *generation:
			stmts = append(stmts, st.body...)
		case *block:
			stmts = append(stmts, st.body...)
		case *noLoader:
			found(st.at(), "{%% %s %%} reads another template", st.tag)
		}
	}
	for _, list := range [][]*Error{u.Suspicious, u.Unknown} {
		slices.SortStableFunc(list, func(a, b *Error) int { return a.Line - b.Line })
	}
	maps.DeleteFunc(u.Names, func(name string, _ int) bool { return own[name] || globals[name] != nil })
	return u
}

// Words returns the first of Python's internals that a text mentions, for one that is no template: other interpreters
// may take it for one. It is nil if there is none.
func Words(source string) *Error {
	line := 1
	for text := range strings.SplitAfterSeq(source, "\n") {
		if mentions(text) {
			return &Error{Forbidden, line, "an attribute of Python's objects"}
		}
		line++
	}
	return nil
}

// mentions reports whether one of the words of a text is dangerous.
func mentions(s string) bool {
	for w := range strings.FieldsFuncSeq(s, func(c rune) bool {
		return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		if dangerous[w] {
			return true
		}
	}
	return false
}

// internal reports whether an attribute is one of Python's internals.
func internal(name string) bool {
	return strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && len(name) > 4 || dangerous[name] ||
		name == "mro"
}

// dangerous are the attributes and names of Python by which templates reach functions and modules. A text with another
// name of this look, such as __sentinel__, is harmless.
var dangerous = wordSet("__base__ __bases__ __builtins__ __call__ __class__ __closure__ __code__ __dict__ __func__ " +
	"__getattr__ __getattribute__ __getitem__ __globals__ __import__ __init__ __init_subclass__ __loader__ __module__ " +
	"__mro__ __new__ __reduce__ __reduce_ex__ __self__ __spec__ __subclasses__ __wrapped__ " +
	"_TemplateReference__context ag_code ag_frame co_code cr_code cr_frame f_back f_builtins f_code f_globals f_locals " +
	"func_code func_globals gi_code gi_frame tb_frame tb_next")

// servers are variables by which templates of web servers have reached Python's modules.
var servers = wordSet("lipsum url_for get_flashed_messages self")

func wordSet(names string) map[string]bool {
	m := map[string]bool{}
	for n := range strings.FieldsSeq(names) {
		m[n] = true
	}
	return m
}

// longRange returns the end of a range that is longer than rendering permits.
func longRange(x *call) (end int64, ok bool) {
	if n, ok := x.fn.(*name); !ok || n.name != "range" {
		return 0, false
	}
	for _, a := range x.args.list {
		if c, ok := a.(*constant); ok {
			if i, ok := c.v.(int64); ok && (i > MaxRange || i < -MaxRange) {
				return i, true
			}
		}
	}
	return 0, false
}
