package main

import (
	"crypto/sha256"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A unit is everything that a package declares under one name, in the files for every system and build. Methods belong
// to the unit of their type.
type unit struct {
	text     string   // tokens, without comments
	refs     []string // names that occur: "name" of the same package, "path.name" of another one of the module
	changes  []string // names to which something is assigned, or that have a method called
	variable bool
}

// Names of units that run without being named.
const (
	initialized = "init" // init functions, and calls whose values are assigned to _
	called      = "="    // variables whose values are calls
)

// units has the units of a package, or of its tests.
type units map[string]*unit

// The units of a package are of its files, of tests in the same package, and of tests in package x_test.
const (
	files = iota
	innerTests
	outerTests
)

// parse reads the declarations of the package's files.
func (p *source) parse(names map[string]string) error {
	list, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
	if err != nil {
		return err
	}
	p.units = [3]units{{}, {}, {}}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		layer := files
		switch {
		case f.Name.Name == p.Name+"_test":
			layer = outerTests
		case f.Name.Name != p.Name: // a program that the build ignores
			continue
		case strings.HasSuffix(name, "_test.go"):
			layer = innerTests
		}
		if err := p.units[layer].add(set, f, text, names); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// add adds the declarations of a file. names has the names of the module's packages by their paths.
func (u units) add(set *token.FileSet, f *ast.File, text []byte, names map[string]string) error {
	imports := map[string]string{}
	for _, s := range f.Imports {
		path, err := strconv.Unquote(s.Path.Value)
		if err != nil {
			return err
		}
		name, own := names[path]
		if s.Name != nil {
			name = s.Name.Name
		}
		switch {
		case name == ".":
			return fmt.Errorf("a dot before the import of %s hides which names are of it", path)
		case own:
			imports[name] = path
		}
	}
	// Build constraints, embedded files and other directives count for all of the file.
	head := filepath.Base(set.File(f.Pos()).Name()) + "\n"
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "//go:") {
			head += line
		}
	}
	put := func(name string, node ast.Node) {
		x := u[name]
		if x == nil {
			x = &unit{}
			u[name] = x
		}
		from, to := set.Position(node.Pos()).Offset, set.Position(node.End()).Offset
		x.text += head + tokens(text[from:to])
		var names func(n ast.Node) bool
		names = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr: // what follows the point is a field, a method, or a name of another package
				if id, ok := n.X.(*ast.Ident); ok && imports[id.Name] != "" {
					x.refs = append(x.refs, imports[id.Name]+"."+n.Sel.Name)
				}
				ast.Inspect(n.X, names)
				return false
			case *ast.Ident:
				x.refs = append(x.refs, n.Name)
			case *ast.AssignStmt:
				for _, l := range n.Lhs {
					x.changes = append(x.changes, base(l))
				}
			case *ast.IncDecStmt:
				x.changes = append(x.changes, base(n.X))
			case *ast.CallExpr:
				if m, ok := n.Fun.(*ast.SelectorExpr); ok {
					x.changes = append(x.changes, base(m.X))
				}
			}
			return true
		}
		ast.Inspect(node, names)
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv != nil:
				put(base(d.Recv.List[0].Type), d)
			case d.Name.Name == "init":
				put(initialized, d)
			default:
				put(d.Name.Name, d)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					put(s.Name.Name, s)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						var node ast.Node = s
						if d.Tok == token.CONST {
							node = d // a constant depends on those above it
						}
						runs := d.Tok == token.VAR && slices.ContainsFunc(s.Values, calls)
						switch {
						case id.Name != "_":
							put(id.Name, node)
							u[id.Name].variable = d.Tok == token.VAR
							if runs {
								put(called, node)
							}
						case runs:
							put(initialized, node)
						}
					}
				}
			}
		}
	}
	return nil
}

// base returns the name with which an expression begins, such as that of a variable of which it is a part, or of the type
// of a receiver; "" if there is none.
func base(x ast.Expr) string {
	for {
		switch t := x.(type) {
		case *ast.StarExpr:
			x = t.X
		case *ast.ParenExpr:
			x = t.X
		case *ast.IndexExpr:
			x = t.X
		case *ast.IndexListExpr:
			x = t.X
		case *ast.SelectorExpr:
			x = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

// calls reports whether an expression calls something when it is evaluated.
func calls(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			conversion := false // (*T)(nil)
			if paren, ok := n.Fun.(*ast.ParenExpr); ok {
				_, conversion = paren.X.(*ast.StarExpr)
			}
			found = found || !conversion
		case *ast.FuncLit:
			return false
		}
		return true
	})
	return found
}

// tokens returns the tokens of a text, one in a line.
func tokens(text []byte) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	var b strings.Builder
	for {
		_, t, literal := s.Scan()
		if t == token.EOF {
			return b.String()
		}
		b.WriteString(t.String())
		if literal != "" && literal != "\n" {
			b.WriteString(" " + literal)
		}
		b.WriteByte('\n')
	}
}

// provides reports whether what runs before a program changes variables of other packages: such a package counts for all
// that import it.
func (all sources) provides(path string) bool {
	seen, queue := map[string]bool{initialized: true}, []string{initialized}
	own := all[path].units[files]
	for len(queue) > 0 {
		u := own[queue[0]]
		queue = queue[1:]
		if u == nil {
			continue
		}
		for _, ref := range u.refs {
			i := strings.LastIndexByte(ref, '.')
			if i < 0 {
				if !seen[ref] {
					seen[ref] = true
					queue = append(queue, ref)
				}
				continue
			}
			other := all[ref[:i]].units[files]
			if f := other[ref[i+1:]]; f != nil && slices.ContainsFunc(f.changes, func(name string) bool {
				return other[name] != nil && other[name].variable
			}) {
				return true
			}
		}
	}
	return false
}

// reached returns the SHA-256 of the declarations that a fuzz target can run, by the names that occur in them: the target
// itself, what it names, what that names, and so on. All methods of a type that is named count, as an interface may
// call any of them. If anything in a package counts, so do its init functions, its variables that are initialized by
// calls, and its embedded files. Scopes are ignored: a local variable that has the name of a declaration makes that
// declaration count.
func (all sources) reached(path, target string) (string, error) {
	type key struct {
		path  string
		layer int
		name  string
	}
	seen, queue := map[key]bool{}, []key{}
	used := map[string]bool{}
	visit := func(path string, layer int, name string) {
		p := all[path]
		if p == nil || p.units[layer][name] == nil {
			return
		}
		if k := (key{path, layer, name}); !seen[k] {
			seen[k] = true
			queue = append(queue, k)
		}
	}
	name := func(from string, layer int, name string) {
		visit(from, layer, name)
		if layer == files && from == path || layer == innerTests { // one package
			visit(from, files, name)
			visit(from, innerTests, name)
		}
	}
	imported, err := all.imports([]string{path}, nil)
	if err != nil {
		return "", err
	}
	for p := range imported {
		if all[p].provides {
			visit(p, files, initialized)
		}
	}
	for _, layer := range []int{innerTests, outerTests} {
		for _, n := range []string{initialized, called, "TestMain", target} {
			visit(path, layer, n)
		}
	}
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		if k.layer == files && k.name != initialized && !used[k.path] {
			used[k.path] = true
			visit(k.path, files, initialized)
			visit(k.path, files, called)
		}
		for _, ref := range all[k.path].units[k.layer][k.name].refs {
			if i := strings.LastIndexByte(ref, '.'); i >= 0 {
				to := ref[:i]
				visit(to, files, ref[i+1:])
				if to == path && k.layer == outerTests {
					visit(to, innerTests, ref[i+1:])
				}
				continue
			}
			name(k.path, k.layer, ref)
		}
	}
	if !seen[key{path, innerTests, target}] && !seen[key{path, outerTests, target}] {
		return "", fmt.Errorf("%s has no %s", path, target)
	}
	h := sha256.New()
	for _, k := range slices.SortedFunc(maps.Keys(seen), func(a, b key) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}) {
		fmt.Fprintf(h, "%v\n%s\n", k, all[k.path].units[k.layer][k.name].text)
	}
	for _, p := range slices.Sorted(maps.Keys(used)) {
		fmt.Fprintf(h, "%s %x\n", p, all[p].embedSum)
	}
	fmt.Fprintf(h, "%s %x\n", path, all[path].testEmbedSum)
	return hexSum(h, nil)
}
