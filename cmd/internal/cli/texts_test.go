package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLibrariesNameNoFlags checks that the texts of the libraries, which other
// programs show to their users, name no flags of our commands. Package submit writes
// command lines, and arch/diffusion has those of another program.
func TestLibrariesNameNoFlags(t *testing.T) {
	flag := regexp.MustCompile(`(^|[^-!<])--[a-z]`)
	root := filepath.Join("..", "..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if e.IsDir() {
			if name := e.Name(); rel == "cmd" || rel == "internal" || rel == "test" ||
				rel == filepath.Join("publish", "submit") || name == "testdata" ||
				strings.HasPrefix(name, ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		if rel == filepath.Join("arch", "diffusion", "use.go") {
			return nil // flags of stable-diffusion.cpp, for cards
		}
		files++
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && flag.MatchString(lit.Value) {
				t.Errorf("%s: %s", set.Position(lit.Pos()), lit.Value)
			}
			return true
		})
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files, %v", files, err)
	}
}
