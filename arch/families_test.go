package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFamiliesKeepApart checks that no family's file uses a name of another family's: shared names belong in package
// parts. The registry may use all.
func TestFamiliesKeepApart(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files, home := map[string]*ast.File{}, map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
		for _, d := range f.Decls {
			for _, id := range declared(d) {
				home[id.Name] = name
			}
		}
	}
	if home["llama"] != "llama.go" || home["registry"] != "arch.go" {
		t.Fatalf("names of the package: %v", home)
	}
	for name, f := range files {
		if name == "arch.go" {
			continue
		}
		for _, id := range f.Unresolved { // those that the file itself does not declare
			if home[id.Name] != "" {
				t.Errorf("%s uses %s of %s", name, id.Name, home[id.Name])
			}
		}
	}
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
