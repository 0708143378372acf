// Package layers has the tests of the repository as a whole: imports between folders, an example in every public
// package, a README.md in every testdata folder, words and identifiers of documents, and a program of another module
// that imports the library.
package layers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// root is the repository, seen from this package.
const root = "../.."

// pkg is a package as go list describes it.
type pkg struct {
	ImportPath, Name, Dir     string
	Imports                   []string
	TestGoFiles, XTestGoFiles []string
}

// path is the import path without the module's.
func (p *pkg) path() string { return strings.TrimPrefix(p.ImportPath, module) }

const module = "ggforge/"

// public reports whether other modules can import the package.
func (p *pkg) public() bool {
	return p.Name != "main" && !strings.Contains(p.ImportPath+"/", "/internal/") && !p.test()
}

// test reports whether the package is for tests, measurements and generated files only.
func (p *pkg) test() bool {
	path := p.path()
	return strings.HasPrefix(path, "test/") || strings.HasSuffix(path, "test") || path == "quants/internal/widths"
}

// packages lists the packages of the module.
var packages = sync.OnceValues(func() ([]*pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Dir,Imports,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var all []*pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(pkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

func list(t *testing.T) []*pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 30 {
		t.Fatalf("go list names %d packages", len(all))
	}
	return all
}

// TestExamples fails for a public package without an example whose output go test
// compares.
func TestExamples(t *testing.T) {
	for _, p := range list(t) {
		if !p.public() {
			continue
		}
		var files []*ast.File
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		checked := 0
		for _, e := range doc.Examples(files...) {
			if e.Output != "" || e.EmptyOutput {
				checked++
			}
		}
		if checked == 0 {
			t.Errorf("package %s: no example with an output that is checked", p.path())
		}
	}
}

// TestReadmes fails for a testdata folder without a README.md.
func TestReadmes(t *testing.T) {
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case ".git":
			return fs.SkipDir
		case "testdata":
			entries, err := os.ReadDir(path)
			if err != nil {
				return err
			}
			if len(entries) == 1 && entries[0].Name() == "fuzz" { // inputs that failed, found by go test -fuzz
				return fs.SkipDir
			}
			found++
			if _, err := os.Stat(filepath.Join(path, "README.md")); err != nil {
				t.Errorf("%s: no README.md with the origin of the files and the command that makes them again",
					strings.TrimPrefix(path, root+"/"))
			}
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 8 {
		t.Errorf("%d testdata folders", found)
	}
}

// TestImporter builds and runs a program of another module, without a network.
func TestImporter(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	dir, out := t.TempDir(), t.TempDir()
	repo, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	copyFile := func(to, from string, change func(string) string) {
		data, err := os.ReadFile(filepath.Join(root, from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), []byte(change(string(data))), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	same := func(s string) string { return s }
	copyFile("main.go", "test/testdata/importer/main.go", same)
	copyFile("go.sum", "go.sum", same)
	copyFile("go.mod", "test/testdata/importer/go.mod", func(s string) string {
		moved := strings.Replace(s, "=> ../..", "=> "+repo, 1)
		if moved == s {
			t.Fatal("go.mod does not replace ggforge by ../..")
		}
		// With every requirement listed, as by "go mod tidy", go reads no go.mod files but those of modules that are
		// linked, which the module cache has.
		required, err := os.ReadFile(filepath.Join(root, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile(`(?s)\nrequire \(.*?\n\)\n`).FindAllString(string(required), -1) {
			moved += block
		}
		return moved
	})
	run := func(name string, argv ...string) {
		t.Helper()
		cmd := exec.Command(name, argv...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, argv, err, text)
		}
	}
	program := filepath.Join(dir, "importer.exe")
	run("go", "build", "-o", program, ".")
	run(program, filepath.Join(repo, "test", "testdata", "gollama"), out)

	sums, err := os.ReadFile(filepath.Join(root, "test", "testdata", "gollama.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		if f := strings.Fields(line); len(f) == 2 {
			want[f[1]] = f[0]
		}
	}
	for _, name := range []string{"gollama-f16.gguf", "gollama-Q4_K_M.gguf", "straight/gollama-Q4_K_M.gguf",
		"straight/gollama-Q8_0.gguf"} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		if got := hex.EncodeToString(sum[:]); got != want[filepath.Base(name)] {
			t.Errorf("%s: sha256 %s, want %s", name, got, want[filepath.Base(name)])
		}
	}
}
