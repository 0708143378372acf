package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFamiliesKeepApart checks that no family's files use a name of another family's: shared names belong in package
// parts. The files of a family are NAME.go and NAME_*.go. Only arch.go may use names of all.
func TestFamiliesKeepApart(t *testing.T) {
	files := parseFiles(t)
	home := map[string]string{}
	for name, f := range files {
		for _, d := range f.Decls {
			for _, id := range declared(d) {
				home[id.Name] = name
			}
		}
	}
	if home["llama"] != "llama.go" || home["register"] != "arch.go" {
		t.Fatalf("names of the package: %v", home)
	}
	for name, f := range files {
		if name == "arch.go" {
			continue
		}
		for _, id := range f.Unresolved { // those that the file itself does not declare
			other := home[id.Name]
			if other != "" && other != "arch.go" && family(name) != family(other) {
				t.Errorf("%s uses %s of %s", name, id.Name, other)
			}
		}
	}
}

// TestTablesAreRegistered checks that the files of a table's family register it, or use it as a variant.
func TestTablesAreRegistered(t *testing.T) {
	files, used := parseFiles(t), map[string]int{}
	for name, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				used[family(name)+" "+id.Name]++
			}
			return true
		})
	}
	tables := 0
	for name, f := range files {
		for _, d := range f.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || d.Tok != token.VAR {
				continue
			}
			for _, s := range d.Specs {
				s := s.(*ast.ValueSpec)
				for i, v := range s.Values {
					if v, ok := v.(*ast.UnaryExpr); !ok || v.Op != token.AND {
						continue
					}
					tables++
					// For and EncoderFor know the tables of Mistral's format.
					if id := s.Names[i].Name; used[family(name)+" "+id] < 2 && used["arch "+id] == 0 {
						t.Errorf("%s: %s is not registered", name, id)
					}
				}
			}
		}
	}
	if tables < 100 {
		t.Errorf("%d tables", tables)
	}
}

// parseFiles parses the files of the package except tests.
func parseFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	return files
}

// family returns the family to which a file belongs.
func family(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(file, ".go"), "_")
	return name
}

// declared returns the names that a declaration adds to the package.
func declared(d ast.Decl) (ids []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			ids = append(ids, d.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				ids = append(ids, s.Names...)
			case *ast.TypeSpec:
				ids = append(ids, s.Name)
			}
		}
	}
	return ids
}
