package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	inCode     = regexp.MustCompile("`[^`\n]+`")
	identifier = regexp.MustCompile(`^([a-z][a-z0-9]*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?$`)
	sourcePath = regexp.MustCompile(`^[a-z][\w/.-]*/[\w<>.*-]*$`)
)

// TestIdentifiersOfDocuments looks for the exported identifiers and the paths that the documents for developers name.
func TestIdentifiersOfDocuments(t *testing.T) {
	all := list(t)
	declared := map[string]map[string]bool{} // by the last part of the path of a package
	for _, p := range all {
		if p.test() || p.Name == "main" {
			continue
		}
		names := declared[p.Name]
		if names == nil {
			names = map[string]bool{}
			declared[p.Name] = names
		}
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			exported(f, names)
		}
	}
	found := 0
	for _, name := range []string{"docs/design.md", "docs/library.md", "docs/exactness.md", ".github/CONTRIBUTING.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range inCode.FindAllString(string(text), -1) {
			span = strings.Trim(span, "`")
			if m := identifier.FindStringSubmatch(span); m != nil && declared[m[1]] != nil {
				found++
				want := m[2]
				if m[3] != "" {
					want += "." + m[3]
				}
				if !declared[m[1]][want] {
					t.Errorf("%s: %s: package %s has no %s", name, span, m[1], want)
				}
			} else if sourcePath.MatchString(span) && !strings.ContainsAny(span, "<*") {
				top, _, _ := strings.Cut(span, "/")
				if info, err := os.Stat(filepath.Join(root, top)); err != nil || !info.IsDir() {
					continue
				}
				found++
				if _, err := os.Stat(filepath.Join(root, span)); err != nil {
					t.Errorf("%s: %s is not there", name, span)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("%d identifiers and paths", found)
	}
}

// TestPublicPackages checks that the table of docs/library.md has a row for every public package or a folder above it.
func TestPublicPackages(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/library.md"))
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			rows.WriteString(line)
		}
	}
	for _, p := range list(t) {
		if !p.public() {
			continue
		}
		found := false
		for folder := p.path(); folder != "." && !found; folder = path.Dir(folder) {
			found = strings.Contains(rows.String(), "`"+folder+"`")
		}
		if !found {
			t.Errorf("docs/library.md has no row for package %s", p.path())
		}
	}
}

// exported adds the exported identifiers of a file: functions, types, values, and Type.Method and Type.Field.
func exported(f *ast.File, names map[string]bool) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				recv := d.Recv.List[0].Type
				if star, ok := recv.(*ast.StarExpr); ok {
					recv = star.X
				}
				if of, ok := recv.(*ast.Ident); ok {
					name = of.Name + "." + name
				}
			}
			names[name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				case *ast.TypeSpec:
					names[s.Name.Name] = true
					var fields *ast.FieldList
					switch u := s.Type.(type) {
					case *ast.StructType:
						fields = u.Fields
					case *ast.InterfaceType:
						fields = u.Methods
					default:
						continue
					}
					for _, field := range fields.List {
						for _, n := range field.Names {
							names[s.Name.Name+"."+n.Name] = true
						}
					}
				}
			}
		}
	}
}
