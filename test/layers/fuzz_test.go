package layers

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	fuzzRow    = regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\| (Fuzz\\w+) \\|(?: [\\d,]+ \\|){4} [\\d.]+ (?:s|min|h) \\|")
)

// TestFuzzTargets compares the tables of the recorded run in docs/reliability.md with the fuzz targets of the code.
func TestFuzzTargets(t *testing.T) {
	targets := map[string]bool{} // PACKAGE TARGET
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "out" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			targets[filepath.ToSlash(dir)+" "+m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range fuzzRow.FindAllStringSubmatch(string(text), -1) {
		name := m[1] + " " + m[2]
		if rows[name] {
			t.Errorf("docs/reliability.md: %s has two rows", name)
		}
		rows[name] = true
		if !targets[name] {
			t.Errorf("docs/reliability.md: %s is not in the code", name)
		}
	}
	for name := range targets {
		if !rows[name] {
			t.Errorf("docs/reliability.md: no row for %s: make trust TRUST='-for 1m -run %q'", name,
				"^fuzz "+name+"$")
		}
	}
	if len(targets) < 100 {
		t.Errorf("%d fuzz targets", len(targets))
	}
}
