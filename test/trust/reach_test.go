package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module of made-up packages: a is fuzzed, b, c, d and f are reached, e is imported only
var made = map[string]string{
	"go.mod": "module ggforge\n\ngo 1.26\n",
	"go.sum": "",
	"a/a.go": `package a

import (
	"embed"

	"ggforge/b"
	"ggforge/e"
)

//go:embed data.txt
var data embed.FS

var table = map[string]func(b.Shape) int{"x": area}

func Parse(text string) int { return table["x"](b.New(len(text))) }

func area(s b.Shape) int {
	return s.Area() // by an interface
}

func unused() int { return e.Unused() }
`,
	"a/data.txt": "data\n",
	"a/a_linux.go": `package a

func system() int { return 1 }
`,
	"a/a_windows.go": `package a

func system() int { return 2 }
`,
	"a/export_test.go": `package a

func System() int { return system() }
`,
	"a/fuzz_test.go": `package a_test

import (
	"testing"

	"ggforge/a"
)

` + "func FuzzParse(f *testing.F) {" + `
	f.Fuzz(func(t *testing.T, s string) { check(t, a.Parse(s)+a.System()) })
}

func check(t *testing.T, n int) {}

func TestOther(t *testing.T) {}
`,
	"b/b.go": `package b

import "ggforge/c"

type Shape interface{ Area() int }

type square struct{ side int }

func (s *square) Area() int { return s.side * c.Side }

func (s *square) Named() string { return "square" }

func New(n int) Shape { return &square{n} }

var limit = compute()

func compute() int { return 1 }

var plain = 7

var hook func()

func Provide(f func()) { hook = f }
`,
	"b/b_test.go": `package b

func helper() {}
`,
	"c/c.go": `package c

const (
	Zero = iota
	Side
)

func Other() {}
`,
	"d/d.go": `package d

import "ggforge/b"

func init() { b.Provide(provided) }

func provided() {}

func D() {}
`,
	"e/e.go": `package e

import (
	"ggforge/d"
	"ggforge/f"
)

func init() { own() }

func own() {}

func Unused() int {
	d.D()
	return f.F()
}
`,
	"f/f.go": "package f\n\nfunc F() int { return 1 }\n",
}

// TestReached changes sources: the code of a fuzz target depends on declarations that it can reach by their names.
func TestReached(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write := func(name, text string) {
		t.Helper()
		err := os.MkdirAll(filepath.Dir(name), 0o777)
		if err == nil {
			err = os.WriteFile(name, []byte(text), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range made {
		write(name, text)
	}
	code := func() string {
		t.Helper()
		all, err := listSources()
		if err != nil {
			t.Fatal(err)
		}
		s, err := all.reached("ggforge/a", "FuzzParse")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := code()
	for _, c := range []struct {
		file, old, new string
		changes        bool
	}{
		{"a/a.go", "len(text)", "len(text)+1", true},
		{"a/a.go", "s.Area()", "s.Area()+1", true},
		{"a/a.go", "by an interface", "by any type", false},
		{"a/a.go", "e.Unused()", "e.Unused()+1", false},
		{"a/data.txt", "data", "more", true},
		{"a/a_linux.go", "1", "3", true},
		{"a/a_windows.go", "2", "3", true},
		{"a/export_test.go", "system()", "system() + 1", true},
		{"a/fuzz_test.go", "a.Parse(s)", "-a.Parse(s)", true},
		{"a/fuzz_test.go", "n int) {}", "n int) { t.Log(n) }", true},
		{"a/fuzz_test.go", "TestOther(t *testing.T) {}", "TestOther(t *testing.T) { t.Log() }", false},
		{"a/fuzz_test.go", "func TestOther(", "func TestMain(m *testing.M) {}\n\nfunc TestOther(", true},
		{"b/b.go", "s.side *", "s.side +", true},
		{"b/b.go", `"square"`, `"quad"`, true},
		{"b/b.go", "int { return 1 }", "int { return 2 }", true},
		{"b/b.go", "plain = 7", "plain = 8", false},
		{"b/b_test.go", "helper() {}", "helper() { println() }", false},
		{"c/c.go", "iota", "iota + 1", true},
		{"c/c.go", "Other() {}", "Other() { println() }", false},
		{"d/d.go", "provided() {}", "provided() { println() }", true},
		{"d/d.go", "D() {}", "D() { println() }", false},
		{"e/e.go", "own() {}", "own() { println() }", false},
		{"f/f.go", "return 1", "return 2", false},
		{"go.sum", "", "\n", true},
	} {
		text := strings.Replace(made[c.file], c.old, c.new, 1)
		if text == made[c.file] {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		write(c.file, text)
		if changed := code() != before; changed != c.changes {
			t.Errorf("%s, %q instead of %q: %v, want %v", c.file, c.new, c.old, changed, c.changes)
		}
		write(c.file, made[c.file])
	}
	if code() != before {
		t.Error("the same sources have another code")
	}
	write("f/f.go", "package f\n\nimport . \"ggforge/c\"\n\nvar X = Side\n")
	if _, err := listSources(); err == nil || !strings.Contains(err.Error(), "a dot before the import of ggforge/c") {
		t.Errorf("a dot: %v", err)
	}
	write("f/f.go", made["f/f.go"])
	all, err := listSources()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.reached("ggforge/a", "FuzzNothing"); err == nil {
		t.Error("no error for a target that is not there")
	}
}
