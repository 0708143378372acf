package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ggforge/arch/table"
)

// source is the Go source of packages arch and arch/parts, from which a new family takes its expressions.
type source struct {
	fset   *token.FileSet
	text   map[string][]byte // by file
	decls  map[string]*decl  // by package and name: "arch.llama", "parts.EmbedRows"
	files  []*ast.File       // of package arch
	tables []*literal
	// current is the table whose literal was asked for last: the argument of a function that completes several tables.
	current *literal
	roots   map[*table.Arch]*atom // that were found so far
}

// decl is a declaration of a package.
type decl struct {
	pkg, name, file string
	value           ast.Expr      // of a variable or constant
	typ             ast.Expr      // that is stated, nil for none
	tok             token.Token   // VAR or CONST
	fn              *ast.FuncDecl // of a function
	doc             *ast.CommentGroup
}

// literal is the composite literal of a table.
type literal struct {
	variable string // that has it, "" for none
	lit      *ast.CompositeLit
	file     string
	complete *ast.FuncDecl // of the family, which sets further fields of the literal; nil for none
	more     map[string]ast.Expr
	strange  bool // another function changes the table
}

// readSource parses both packages; root is the folder of the module.
func readSource(root string) (*source, error) {
	s := &source{fset: token.NewFileSet(), text: map[string][]byte{}, decls: map[string]*decl{},
		roots: map[*table.Arch]*atom{}}
	for _, pkg := range []struct{ name, dir string }{{"parts", "arch/parts"}, {"arch", "arch"}} {
		names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg.dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if err := s.readFile(pkg.name, name); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range s.files {
		s.findTables(f)
	}
	if len(s.tables) == 0 {
		return nil, fmt.Errorf("no table.Arch in %s", filepath.Join(root, "arch"))
	}
	return s, nil
}

func (s *source) readFile(pkg, name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(s.fset, name, data, parser.ParseComments)
	if err != nil {
		return err
	}
	s.text[name] = data
	if pkg == "arch" {
		s.files = append(s.files, f)
	}
	add := func(d *decl) {
		d.pkg, d.file = pkg, name
		s.decls[pkg+"."+d.name] = d
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(&decl{name: d.Name.Name, fn: d, doc: d.Doc})
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				v, ok := spec.(*ast.ValueSpec)
				if !ok {
					continue
				}
				doc := v.Doc
				if doc == nil && len(d.Specs) == 1 {
					doc = d.Doc
				}
				for i, id := range v.Names {
					if len(v.Values) == len(v.Names) {
						add(&decl{name: id.Name, value: v.Values[i], typ: v.Type, tok: d.Tok, doc: doc})
					}
				}
			}
		}
	}
	return nil
}

// findTables finds the literals of type table.Arch of a file.
func (s *source) findTables(f *ast.File) {
	name := s.fset.File(f.Pos()).Name()
	var variable string
	var calls []*ast.CallExpr
	var walk func(n ast.Node)
	walk = func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false // makes tables from others
			case *ast.ValueSpec:
				for i, v := range n.Values {
					if len(n.Names) == len(n.Values) {
						variable = n.Names[i].Name
					}
					walk(v)
				}
				return false
			case *ast.CallExpr:
				calls = append(calls, n)
				for _, arg := range n.Args {
					walk(arg)
				}
				calls = calls[:len(calls)-1]
				return false
			case *ast.CompositeLit:
				if sel, ok := n.Type.(*ast.SelectorExpr); ok && s.src(sel) == "table.Arch" {
					t := &literal{variable: variable, lit: n, file: name}
					if len(calls) > 0 {
						t.complete, t.more = s.completes(calls[len(calls)-1])
						t.strange = len(calls) > 1 || t.complete == nil
					}
					s.tables = append(s.tables, t)
				}
			}
			return true
		})
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			walk(g)
		}
	}
}

// completes returns the function of a call that sets fields of its argument, with their values; nil for any other.
func (s *source) completes(call *ast.CallExpr) (*ast.FuncDecl, map[string]ast.Expr) {
	id, ok := call.Fun.(*ast.Ident)
	if !ok || len(call.Args) != 1 {
		return nil, nil
	}
	d := s.decls["arch."+id.Name]
	if d == nil || d.fn == nil || len(d.fn.Type.Params.List) != 1 {
		return nil, nil
	}
	fields := map[string]ast.Expr{}
	for i, st := range d.fn.Body.List {
		if _, ok := st.(*ast.ReturnStmt); ok && i == len(d.fn.Body.List)-1 {
			return d.fn, fields
		}
		a, ok := st.(*ast.AssignStmt)
		if !ok || a.Tok != token.ASSIGN || len(a.Lhs) != 1 {
			break
		}
		sel, ok := a.Lhs[0].(*ast.SelectorExpr)
		if !ok || fields[sel.Sel.Name] != nil {
			break
		}
		fields[sel.Sel.Name] = a.Rhs[0]
	}
	return nil, nil
}

// src returns the text of a node.
func (s *source) src(n ast.Node) string {
	f := s.fset.File(n.Pos())
	return string(s.text[f.Name()][f.Offset(n.Pos()):f.Offset(n.End())])
}

// field returns the value of a field of a table, also in a section of it that is a literal of its own; nil if it is not
// set.
func (t *literal) field(name string) ast.Expr {
	if e := t.more[name]; e != nil {
		return e
	}
	return fieldOf(t.lit, name)
}

func fieldOf(lit *ast.CompositeLit, name string) ast.Expr {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, _ := kv.Key.(*ast.Ident)
		if key != nil && key.Name == name {
			return kv.Value
		}
		if sub, ok := kv.Value.(*ast.CompositeLit); ok {
			if sel, ok := sub.Type.(*ast.SelectorExpr); ok && sections.has(sel.Sel.Name) {
				if v := fieldOf(sub, name); v != nil {
					return v
				}
			}
		}
	}
	return nil
}

// sections are the types of table.Arch whose fields are fields of the table.
var sections = set("Checkpoint", "Metadata")

// literalOf returns the literal of a table, nil if a function makes it.
func (s *source) literalOf(a *table.Arch) *literal {
	for _, t := range s.tables {
		e := t.field("Classes")
		if e == nil || len(a.Classes) == 0 || t.strange || t.field("Encoder") != nil {
			continue
		}
		if lit, ok := e.(*ast.CompositeLit); ok && len(lit.Elts) == len(a.Classes) && s.str(lit.Elts[0]) == a.Classes[0] {
			s.current = t
			return t
		}
	}
	return nil
}

// str returns the value of a string literal or constant, "" for anything else.
func (s *source) str(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strings.Trim(e.Value, "`\"")
		}
	case *ast.Ident, *ast.SelectorExpr:
		if d := s.decl("arch", e); d != nil && d.tok == token.CONST {
			return s.str(d.value)
		}
	}
	return ""
}

// decl returns the declaration that a name of a package refers to, nil for names of other packages and for local ones.
func (s *source) decl(pkg string, e ast.Expr) *decl {
	switch e := e.(type) {
	case *ast.Ident:
		if d := s.decls[pkg+"."+e.Name]; d != nil && d.declares(e) {
			return d
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "parts" && pkg == "arch" {
			return s.decls["parts."+e.Sel.Name]
		}
	}
	return nil
}

// declares reports whether an identifier means the declaration, and not a local variable of that name.
func (d *decl) declares(id *ast.Ident) bool {
	if id.Obj == nil {
		return true
	}
	switch at := id.Obj.Decl.(type) {
	case *ast.ValueSpec:
		return slices.Contains(at.Values, d.value)
	case *ast.FuncDecl:
		return at == d.fn
	}
	return false
}

// expr is an expression of package arch or arch/parts.
type expr struct {
	pkg string
	ast.Expr
}

// rewrite returns the text of an expression as it is in package arch: names of parts have their package, and name
// replaces the others of package arch. An error is about a name that package arch cannot use.
func (s *source) rewrite(pkg string, n ast.Node, name func(*decl) (string, error)) (string, error) {
	if !n.Pos().IsValid() {
		return "", nil
	}
	f := s.fset.File(n.Pos())
	data := s.text[f.Name()]
	var b strings.Builder
	at := n.Pos()
	var first error
	replace := func(x ast.Node, text string) {
		b.Write(data[f.Offset(at):f.Offset(x.Pos())])
		b.WriteString(text)
		at = x.End()
	}
	var visit func(ast.Node) bool
	visit = func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.CompositeLit:
			if x.Type != nil {
				ast.Inspect(x.Type, visit)
			}
			_, isMap := x.Type.(*ast.MapType)
			for _, e := range x.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok && !isMap {
					if _, ok := kv.Key.(*ast.Ident); ok {
						e = kv.Value
					}
				}
				ast.Inspect(e, visit)
			}
			return false
		case *ast.SelectorExpr:
			if t := s.tableField(pkg, x); t != nil {
				text, err := s.rewrite(pkg, t, name)
				if err != nil && first == nil {
					first = err
				}
				replace(x, text)
				return false
			}
			ast.Inspect(x.X, visit)
			return false
		case *ast.Ident:
			d := s.decl(pkg, x)
			if d == nil {
				return true
			}
			text := d.name
			if d.pkg == "parts" {
				if !ast.IsExported(d.name) && first == nil {
					first = fmt.Errorf("parts.%s is not exported", d.name)
				}
				text = "parts." + d.name
			} else if name != nil {
				var err error
				if text, err = name(d); err != nil && first == nil {
					first = err
				}
			}
			replace(x, text)
		}
		return true
	}
	ast.Inspect(n, visit)
	b.Write(data[f.Offset(at):f.Offset(n.End())])
	return b.String(), first
}

// tableField returns the value of a field in x.Field, where x is a variable with a table, nil for other expressions.
func (s *source) tableField(pkg string, x *ast.SelectorExpr) ast.Expr {
	id, ok := x.X.(*ast.Ident)
	if !ok || pkg != "arch" {
		return nil
	}
	if t := s.current; t != nil && t.complete != nil && id.Obj != nil && id.Obj.Decl == t.complete.Type.Params.List[0] {
		return fieldOf(t.lit, x.Sel.Name)
	}
	for _, t := range s.tables {
		if t.variable == id.Name && !t.strange {
			return t.field(x.Sel.Name)
		}
	}
	return nil
}

// family is the new file: its names, and declarations that it takes from other families.
type family struct {
	src      *source
	variable string           // of the table
	names    map[*decl]string // of declarations that were copied
	copied   []*decl          // in the order of their first use
	text     map[*decl]string // of copied ones
}

// expr returns the text of an expression for the new file, and copies the declarations that it needs.
func (f *family) expr(e expr) (string, error) { return f.src.rewrite(e.pkg, e.Expr, f.name) }

// maxCopied bounds the declarations that are copied for one table.
const maxCopied = 12

// name returns the new name of a declaration of another family, which it copies.
func (f *family) name(d *decl) (string, error) {
	if name, ok := f.names[d]; ok {
		return name, nil
	}
	if slices.ContainsFunc(f.src.tables, func(t *literal) bool { return t.variable == d.name }) {
		return "", fmt.Errorf("%s is a table", d.name)
	}
	if len(f.copied) == maxCopied {
		return "", fmt.Errorf("%s needs more than %d declarations of other families", d.name, maxCopied)
	}
	name := f.newName(d)
	f.names[d] = name
	f.copied = append(f.copied, d)
	n := len(f.copied)
	var b strings.Builder
	if d.doc != nil {
		for _, c := range d.doc.List {
			b.WriteString(replaceWord(c.Text, d.name, name) + "\n")
		}
	}
	if d.fn != nil {
		rest := &ast.FuncDecl{Name: d.fn.Name, Type: d.fn.Type, Body: d.fn.Body}
		text, err := f.src.rewrite(d.pkg, rest, f.name)
		if err != nil {
			f.copied, f.names[d] = f.copied[:n-1], ""
			delete(f.names, d)
			return "", err
		}
		b.WriteString(text)
	} else {
		text, err := f.src.rewrite(d.pkg, d.value, f.name)
		if err != nil {
			f.copied = f.copied[:n-1]
			delete(f.names, d)
			return "", err
		}
		typ := ""
		if d.typ != nil {
			typ = " " + f.src.src(d.typ)
		}
		fmt.Fprintf(&b, "%s %s%s = %s", d.tok, name, typ, text)
	}
	f.text[d] = b.String()
	return name, nil
}

// newName returns the name that a copied declaration has in the new family: with the family's name at its beginning.
func (f *family) newName(d *decl) string {
	rest := d.name
	for _, t := range f.src.tables {
		if t.file == d.file && t.variable != "" && strings.HasPrefix(d.name, t.variable) {
			rest = strings.TrimPrefix(d.name, t.variable)
		}
	}
	if rest == d.name || rest == "" || !unicode.IsUpper(firstRune(rest)) {
		rest = upperFirst(d.name)
	}
	name := f.variable + rest
	for f.taken(name) {
		name += "Too"
	}
	return name
}

func (f *family) taken(name string) bool {
	if f.src.decls["arch."+name] != nil {
		return true
	}
	for _, other := range f.names {
		if other == name {
			return true
		}
	}
	return false
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// replaceWord replaces a whole word.
func replaceWord(text, word, with string) string {
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return text
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(word):])
		if i > 0 && isWord(before) || isWord(after) {
			at = i + len(word)
			continue
		}
		text = text[:i] + with + text[i+len(word):]
		at = i + len(with)
	}
}
