package shape

import (
	"fmt"
	"strings"

	"ggforge/arch/expr"
	"ggforge/arch/graph"
)

// The right sides of rows are expressions of package expr. Those of Tensors are lists:
//
//	shapes = dims { "|" dims }      one of them must match
//	dims   = expr { "," expr }      innermost first, as in a GGUF file
//
// A name is a row of Dims. A name after "?" is a size that is not in the metadata: the first tensor of the file with it
// sets the size for the others. A key is one below the architecture's name, or one that begins with "tokenizer." or
// "lilicorr.".

// parseShapes parses the right side of a row of Tensors.
func parseShapes(text string) (shapes [][]*expr.Expr) {
	for _, dims := range strings.Split(text, "|") {
		var list []*expr.Expr
		for _, e := range split(dims) {
			list = append(list, expr.Must(expr.Parse(e)))
		}
		shapes = append(shapes, list)
	}
	return shapes
}

// split returns the parts of a list between commas outside parentheses.
func split(text string) (parts []string) {
	depth, start := 0, 0
	for i, c := range text {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, text[start:i])
			start = i + 1
		}
	}
	return append(parts, text[start:])
}

// eval returns the value of an expression for a layer; ok is false if a key is missing. Sums and products beyond int64
// are its maximum, which is never a dimension.
func (f *file) eval(e *expr.Expr, bid int64) (v int64, ok bool) {
	f.bid = bid
	x, ok := e.Eval(&f.env)
	if !ok {
		return 0, false
	}
	return x.Int()
}

// name is expr.Env.Name.
func (f *file) name(name string) (expr.Value, bool) {
	if free, isFree := strings.CutPrefix(name, "?"); isFree {
		n, ok := f.freeSizes[free]
		return expr.Int(n), ok
	}
	if name == "i" {
		return expr.Int(f.bid), true
	}
	e := f.dims[name]
	if e == nil {
		text, ok := f.rules.dim(name)
		if !ok {
			panic(fmt.Sprintf("shape: no row %q", name))
		}
		e = expr.Must(expr.Parse(text))
		f.dims[name] = e
	}
	return e.Eval(&f.env)
}

// dim returns the row of a name.
func (r Rules) dim(name string) (text string, ok bool) {
	if text, ok = r.Dims[name]; ok {
		return text, true
	}
	if text, ok = Common.Dims[name]; ok {
		return text, true
	}
	n, ok := graph.Common[name]
	return string(n), ok
}
