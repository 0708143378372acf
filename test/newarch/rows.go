package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"

	"ggforge/arch/parts"
	"ggforge/arch/table"
)

// atom is an expression with rows of a table's Tensors: a list of rows, or one row of a literal.
type atom struct {
	expr
	single bool
	wraps  []wrap // functions around it, the outermost first
	kids   []*atom
	n      int // rows, -1 if unknown
	rows   []table.TensorRow
	bias   []table.Bias // instead of the arguments of type table.Bias of a call
}

// wrap is a call of a function of which one argument is a list of rows: parts.Only(cond, LIST).
type wrap struct {
	pkg  string
	call *ast.CallExpr
	arg  int
}

// atoms returns the rows of a table with their expressions; nil if they do not follow from the source.
func (s *source) atoms(a *table.Arch) *atom {
	root, ok := s.roots[a]
	if !ok {
		root = s.findAtoms(a)
		s.roots[a] = root
	}
	return root
}

func (s *source) findAtoms(a *table.Arch) *atom {
	t := s.literalOf(a)
	if t == nil {
		return nil
	}
	e := t.field("Tensors")
	if e == nil {
		return nil
	}
	root := s.list(expr{"arch", e}, 0)
	if root == nil || !s.align(root, a.Tensors) {
		return nil
	}
	return root
}

// maxDepth bounds how far list follows names.
const maxDepth = 20

// list returns the structure of an expression with rows, nil for any other expression.
func (s *source) list(e expr, depth int) *atom {
	if depth++; depth > maxDepth {
		return nil
	}
	switch x := e.Expr.(type) {
	case *ast.ParenExpr:
		return s.list(expr{e.pkg, x.X}, depth)
	case *ast.CompositeLit:
		if list, ok := x.Type.(*ast.ArrayType); !ok || s.src(list.Elt) != "table.TensorRow" &&
			s.src(list.Elt) != "TensorRow" {
			return nil
		}
		a := &atom{expr: e}
		for _, elt := range x.Elts {
			a.kids = append(a.kids, &atom{expr: expr{e.pkg, elt}, single: true, n: 1})
		}
		a.n = len(a.kids)
		return a
	case *ast.SliceExpr:
		of := s.list(expr{e.pkg, x.X}, depth)
		if of == nil || of.n < 0 || len(of.kids) != of.n {
			return of.unknown(e)
		}
		low, high := 0, of.n
		for _, bound := range []struct {
			e ast.Expr
			n *int
		}{{x.Low, &low}, {x.High, &high}} {
			if bound.e == nil {
				continue
			}
			lit, _ := bound.e.(*ast.BasicLit)
			if lit == nil {
				return of.unknown(e)
			}
			*bound.n, _ = strconv.Atoi(lit.Value)
		}
		if low > high || high > of.n {
			return nil
		}
		return &atom{expr: e, kids: of.kids[low:high], n: high - low}
	case *ast.Ident, *ast.SelectorExpr:
		if sel, ok := x.(*ast.SelectorExpr); ok {
			if t := s.tableField(e.pkg, sel); t != nil {
				return s.list(expr{e.pkg, t}, depth)
			}
		}
		d := s.decl(e.pkg, x)
		if d == nil || d.value == nil {
			return nil
		}
		of := s.list(expr{d.pkg, d.value}, depth)
		if of == nil {
			return nil
		}
		return &atom{expr: e, kids: of.kids, n: of.n}
	case *ast.CallExpr:
		return s.callList(e, x, depth)
	}
	return nil
}

// unknown returns an expression with an unknown number of rows; nil if a is nil.
func (a *atom) unknown(e expr) *atom {
	if a == nil {
		return nil
	}
	return &atom{expr: e, n: -1}
}

// callList is list for a call.
func (s *source) callList(e expr, x *ast.CallExpr, depth int) *atom {
	name := s.src(x.Fun)
	var lists []*atom
	arg := -1
	for i, a := range x.Args {
		if l := s.list(expr{e.pkg, a}, depth); l != nil {
			lists, arg = append(lists, l), i
		} else if name == "append" && len(lists) > 0 {
			lists = append(lists, &atom{expr: expr{e.pkg, a}, single: true, n: 1})
		}
	}
	switch {
	case name == "slices.Concat" || name == "append":
		all := &atom{expr: e, kids: lists}
		all.count()
		if len(lists) < len(x.Args) || x.Ellipsis != token.NoPos && name == "append" && len(lists) != 2 {
			return &atom{expr: e, n: -1}
		}
		return all
	case name == "slices.Clone" && len(lists) == 1:
		return lists[0]
	case strings.HasPrefix(name, "slices."):
		if len(lists) > 0 {
			return &atom{expr: e, n: -1}
		}
		return nil
	case len(lists) == 1:
		w, kids := wrap{e.pkg, x, arg}, lists[0].kids
		if len(kids) == 0 {
			kids = lists
		}
		return &atom{expr: e, kids: wrapped(kids, w), n: lists[0].n}
	case len(lists) > 1:
		return &atom{expr: e, n: -1}
	}
	if lit, ok := x.Fun.(*ast.FuncLit); ok { // a value that is computed once
		return s.body(e, lit.Type, lit.Body, depth)
	}
	if d := s.decl(e.pkg, x.Fun); d != nil && d.fn != nil {
		return s.body(e, d.fn.Type, d.fn.Body, depth)
	}
	return nil
}

// body is list for a call of a function that returns rows: the number of rows is that of the list in its last return
// statement.
func (s *source) body(e expr, typ *ast.FuncType, body *ast.BlockStmt, depth int) *atom {
	if typ.Results == nil || len(typ.Results.List) != 1 {
		return nil
	}
	list, ok := typ.Results.List[0].Type.(*ast.ArrayType)
	if !ok || s.src(list.Elt) != "table.TensorRow" {
		return nil
	}
	a := &atom{expr: e, n: -1}
	if len(body.List) == 0 {
		return a
	}
	ret, ok := body.List[len(body.List)-1].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		return a
	}
	pkg := "arch"
	if strings.Contains(s.fset.File(body.Pos()).Name(), "parts") {
		pkg = "parts"
	}
	if of := s.list(expr{pkg, ret.Results[0]}, depth); of != nil {
		a.n = of.n
		return a
	}
	if id, ok := ret.Results[0].(*ast.Ident); ok && id.Obj != nil { // a local variable
		if assign, ok := id.Obj.Decl.(*ast.AssignStmt); ok && len(assign.Rhs) == 1 {
			if of := s.list(expr{pkg, assign.Rhs[0]}, depth); of != nil {
				a.n = of.n
			}
		}
	}
	return a
}

func wrapped(kids []*atom, w wrap) []*atom {
	var list []*atom
	for _, k := range kids {
		c := *k
		c.wraps = append([]wrap{w}, k.wraps...)
		c.kids = wrapped(k.kids, w)
		list = append(list, &c)
	}
	return list
}

// count sets the number of rows from those of the kids.
func (a *atom) count() {
	a.n = 0
	for _, k := range a.kids {
		if k.n < 0 {
			a.n = -1
			return
		}
		a.n += k.n
	}
}

// align gives every expression its rows. It reports false if they cannot be those of the table.
func (s *source) align(a *atom, rows []table.TensorRow) bool {
	if a.n >= 0 && a.n != len(rows) {
		return false
	}
	a.n, a.rows = len(rows), rows
	if a.single {
		hf := s.rowName(a.expr)
		return hf == "" || len(a.wraps) > 0 || hf == rows[0].HF
	}
	unknown, sum := 0, 0
	for _, k := range a.kids {
		if k.n < 0 {
			unknown++
		} else {
			sum += k.n
		}
	}
	if unknown > 1 || unknown == 0 && sum != len(rows) && len(a.kids) > 0 {
		a.kids = nil
	}
	kids := make([]*atom, len(a.kids)) // of this place: names are used in several
	for i, k := range a.kids {
		c := *k
		if c.n < 0 {
			c.n = len(rows) - sum
		}
		if c.n < 0 || c.n > len(rows) || !s.align(&c, rows[:c.n]) {
			return false
		}
		kids[i], rows = &c, rows[c.n:]
	}
	a.kids = kids
	return true
}

// rowName returns HF of a literal row, "" if it is computed.
func (s *source) rowName(e expr) string {
	lit, ok := e.Expr.(*ast.CompositeLit)
	if !ok {
		return ""
	}
	for _, elt := range lit.Elts {
		if kv, ok := elt.(*ast.KeyValueExpr); ok && s.src(kv.Key) == "HF" {
			if lit, ok := kv.Value.(*ast.BasicLit); ok {
				return strings.Trim(lit.Value, `"`)
			}
		}
	}
	return ""
}

// biasCalls are functions of package parts with kinds of biases as arguments, of which a new family may choose
// others.
var biasCalls = map[string]func(...table.Bias) []table.TensorRow{
	"parts.AttentionRows": func(b ...table.Bias) []table.TensorRow { return parts.AttentionRows(b[0], b[1]) },
	"parts.PermutedRows":  func(b ...table.Bias) []table.TensorRow { return parts.PermutedRows(b[0]) },
}

// otherBiases returns the atom with other kinds of biases, as far as its rows follow from them.
func (s *source) otherBiases(a *atom) (list []*atom) {
	call, ok := a.Expr.(*ast.CallExpr)
	if !ok {
		return nil
	}
	rows := biasCalls[s.callName(a.pkg, call)]
	if rows == nil {
		return nil
	}
	add := func(b ...table.Bias) {
		c := *a
		c.bias, c.rows, c.kids = b, rows(b...), nil
		if len(c.rows) != len(a.rows) {
			return
		}
		for i, r := range a.rows { // with what the functions around it have changed
			r.Bias, c.rows[i] = c.rows[i].Bias, r
			c.rows[i].Bias = r.Bias
		}
		list = append(list, &c)
	}
	kinds := []table.Bias{table.NoBias, table.MayBias}
	for _, b := range kinds {
		if len(call.Args) == 1 {
			add(b)
			continue
		}
		for _, out := range kinds {
			add(b, out)
		}
	}
	return list
}

// callName returns the name of a called function as it is in package arch.
func (s *source) callName(pkg string, call *ast.CallExpr) string {
	name := s.src(call.Fun)
	if d := s.decl(pkg, call.Fun); d != nil && d.pkg == "parts" {
		name = "parts." + d.name
	}
	return name
}

// biasNames are the kinds of biases in source.
var biasNames = []string{"table.NoBias", "table.MayBias", "table.NeedBias"}

// inner returns the text of an atom without the functions around it: a row with its braces, or a list.
func (f *family) inner(a *atom) (string, error) {
	if a.bias != nil {
		var names []string
		for _, b := range a.bias {
			names = append(names, biasNames[b])
		}
		return f.src.callName(a.pkg, a.Expr.(*ast.CallExpr)) + "(" + strings.Join(names, ", ") + ")", nil
	}
	return f.expr(a.expr)
}

// around returns the text before and after the list of a wrapper.
func (f *family) around(w wrap) (before, after string, err error) {
	fun, err := f.expr(expr{w.pkg, w.call.Fun})
	if err != nil {
		return "", "", err
	}
	before = fun + "("
	for i, arg := range w.call.Args {
		if i == w.arg {
			continue
		}
		text, err := f.expr(expr{w.pkg, arg})
		if err != nil {
			return "", "", err
		}
		if i < w.arg {
			before += text + ", "
		} else {
			after += ", " + text
		}
	}
	return before, after + ")", nil
}
