package flagtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tool "ggforge/cmd/internal/cli"
)

// ownMeaning are names of flags that have another meaning in each verb; the help of the verb explains it.
var ownMeaning = strings.Fields("base mmproj remove secret template type types")

// ownValue are flags whose kind of value or default differs from the table's: --ctx-size is one number for models older
// than GGUF, and several numbers for the estimate of memory.
var ownValue = map[string]string{"ggconv": "ctx-size", "ggtool inspect": "ctx-size", "ggtool export": "max-size"}

var placeholder = regexp.MustCompile("`([^`]*)`")

// shared checks that a verb's flags agree with the table of shared flags: names, kind of value, default.
func shared(t *testing.T, name string, v verb) {
	for _, f := range tool.Declarations(v.Command) {
		for _, one := range append([]string{f.Name}, f.Aliases...) {
			row := rowOf(one)
			if one == "parts" && f.Name == one {
				continue // submit: --parts has another meaning
			}
			switch {
			case row == nil && len(one) == 1:
				t.Errorf("-%s: letters are in the table of shared flags", one)
				continue
			case row == nil:
				continue
			}
			if f.Name != row.Name {
				t.Errorf("--%s: want the name --%s, with --%s as another", f.Name, row.Name, one)
				continue
			}
			if letter := letterOf(row); letter != "" && !slices.Contains(f.Aliases, letter) {
				t.Errorf("--%s: want -%s, too", row.Name, letter)
			}
			if one != row.Name || ownValue[name] == one {
				continue
			}
			if f.Value != row.Value || f.Unit != row.Unit {
				t.Errorf("--%s: value of kind %d %s, want %d %s", one, f.Value, f.Unit, row.Value, row.Unit)
			}
			if f.Default != row.Default {
				t.Errorf("--%s: its default is %v, want %v", one, f.Default, row.Default)
			}
		}
	}
}

// rowOf returns the row of a name, nil for none.
func rowOf(name string) *tool.Flag {
	rows := tool.SharedFlags()
	for i := range rows {
		if r := &rows[i]; r.Name == name || slices.Contains(r.Aliases, name) {
			return r
		}
	}
	return nil
}

// letterOf returns the letter of a flag, "" for none.
func letterOf(f *tool.Flag) string {
	for _, name := range f.Aliases {
		if len(name) == 1 {
			return name
		}
	}
	return ""
}

var defined = regexp.MustCompile(`Flag\{Name: "([a-z0-9-]+)"`)

// SharedNames checks that each flag that several commands define is in the table of shared flags, so that their
// definitions must agree.
func SharedNames(t *testing.T, root string) {
	places := map[string][]string{}
	for _, pattern := range []string{"cmd/*/*.go", "cmd/internal/*/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range defined.FindAllSubmatch(text, -1) {
				if name := string(m[1]); !strings.HasSuffix(path, "_test.go") {
					places[name] = append(places[name], path)
				}
			}
		}
	}
	if len(places) < 80 {
		t.Errorf("%d names found, want more: is the expression right?", len(places))
	}
	for name, list := range places {
		if row := rowOf(name); len(list) > 1 && (row == nil || row.Name != name) && !slices.Contains(ownMeaning, name) {
			t.Errorf("--%s is defined in %s: want a row in the table of shared flags", name, strings.Join(list, ", "))
		}
	}
}
