package layers

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	namedTest = regexp.MustCompile("^`([a-z][\\w/]*) ((?:Test|Fuzz)\\w+)`$")
	anyTest   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.`)
)

// TestThreatModel looks for the tests that docs/security.md names: each row has some, and all of them exist.
func TestThreatModel(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]map[string]bool{} // by package
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "input" || cells[0] == "---" {
			continue
		}
		if rows++; len(cells) != 4 {
			t.Errorf("docs/security.md: %s: %d cells", cells[0], len(cells))
			continue
		}
		for name := range strings.SplitSeq(cells[3], ", ") {
			m := namedTest.FindStringSubmatch(name)
			if m == nil {
				t.Errorf("docs/security.md: %s: want `PACKAGE TEST`, not %s", cells[0], name)
				continue
			}
			if tests[m[1]] == nil {
				tests[m[1]] = testsOf(t, m[1])
			}
			if !tests[m[1]][m[2]] {
				t.Errorf("docs/security.md: %s: package %s has no %s", cells[0], m[1], m[2])
			}
		}
	}
	if rows < 20 {
		t.Errorf("docs/security.md: %d rows", rows)
	}
}

// testsOf returns the tests and fuzz targets of a package.
func testsOf(t *testing.T, path string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(root, path, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range anyTest.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}
