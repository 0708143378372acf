package jinja

// An expression is one of the types below.
type expr interface{ at() int }

// pos is the line of a node.
type pos int

func (p pos) at() int { return int(p) }

type (
	constant struct {
		pos
		v Value
	}
	name struct {
		pos
		name string
	}
	attribute struct { // x.name
		pos
		x    expr
		name string
	}
	index struct { // x[i]
		pos
		x, i expr
	}
	slice struct { // from:to:step, each may be nil
		pos
		from, to, step expr
	}
	call struct {
		pos
		fn   expr
		args arguments
	}
	filtered struct { // x|name(args); x is nil where the tag around it gives the text
		pos
		x    expr
		name string
		args arguments
	}
	test struct { // x is name(args)
		pos
		x    expr
		name string
		args arguments
	}
	unary struct {
		pos
		op string // - + not
		x  expr
	}
	binary struct {
		pos
		op   string // + - * / // % **
		l, r expr
	}
	logical struct {
		pos
		and  bool
		l, r expr
	}
	compare struct {
		pos
		x    expr
		ops  []string // == != < <= > >= in notin
		with []expr
	}
	concat struct {
		pos
		parts []expr
	}
	conditional struct { // yes if test else no; no may be nil
		pos
		test, yes, no expr
	}
	listLit struct {
		pos
		items []expr
	}
	tupleLit struct {
		pos
		items []expr
	}
	dictLit struct {
		pos
		keys, values []expr
	}
	nsAttribute struct { // a target: ns.name
		pos
		ns, name string
	}
)

// arguments are those of a call, filter or test.
type arguments struct {
	list   []expr
	names  []string
	named  []expr
	star   expr // *list, nil if there is none
	double expr // **dict
}

// A statement is one of the types below.
type stmt interface{ at() int }

type (
	text struct {
		pos
		s string
	}
	output struct {
		pos
		x expr
	}
	forLoop struct {
		pos
		target       expr
		iter, cond   expr // cond may be nil
		recursive    bool
		body, orElse []stmt
	}
	ifChain struct {
		pos
		tests  []expr
		bodies [][]stmt
		orElse []stmt
	}
	set struct {
		pos
		target, value expr
	}
	setBlock struct {
		pos
		target expr
		filter expr // nil if there is none
		body   []stmt
	}
	with struct {
		pos
		targets, values []expr
		body            []stmt
	}
	macroDef struct {
		pos
		name string
		sig  *signature
	}
	callBlock struct {
		pos
		call *call
		sig  *signature
	}
	filterBlock struct {
		pos
		filter expr
		body   []stmt
	}
	generation struct {
		pos
		body []stmt
	}
	block struct {
		pos
		body []stmt
	}
	loopControl struct {
		pos
		c control
	}
	noLoader struct { // include, import, from, extends
		pos
		tag string
	}
)

// signature has the parameters and body of a macro or call block.
type signature struct {
	params   []string
	defaults []expr // of the last parameters
	body     []stmt
	// Whether the body mentions these names.
	caller, kwargs, varargs bool
}
