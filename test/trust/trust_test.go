package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestState reads a state again whose last line was cut off: slices of the same code add up, those of other code do not
// count.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.jsonl")
	s, err := openState(path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(r record) {
		t.Helper()
		r.Step, r.Time = "fuzz a FuzzB", at
		if err := s.add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(record{Code: "old", Done: 5, Failed: 1, Seconds: 1})
	add(record{Code: "new", Done: 10, Seconds: 2, Figures: map[string]int64{"new": 3, "inputs": 7}})
	add(record{Code: "new", Done: 20, Seconds: 2, Commit: "abc", Figures: map[string]int64{"new": 1, "inputs": 6}})
	s.close()
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, `{"step":"fuzz a FuzzB","co`...), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if s, err = openState(path); err != nil {
			t.Fatal(err)
		}
		p := &step{name: "fuzz a FuzzB", code: "new"}
		got := s.of(p)
		rate, last := s.rate(p)
		if got.Done != 30 || got.Slices != 2 || got.Failed != 0 || got.Figures["new"] != 4 || got.Figures["inputs"] != 7 ||
			got.Commit != "abc" || rate != 10 || last != 20 {
			t.Errorf("%+v, rate %v, last %d", got, rate, last)
		}
		if got := s.of(&step{name: p.name, code: "old"}); got.Failed != 1 {
			t.Errorf("with the old code: %+v", got)
		}
		add(record{Code: "third", Note: "not installed"})
		if got := s.of(&step{name: p.name, code: "third"}); got.Done != 0 || got.Note == "" {
			t.Errorf("not run: %+v", got)
		}
		add(record{Code: "old", Done: 1, Seconds: 0.5})
		if got := s.of(&step{name: p.name, code: "old"}); got.Failed != 0 {
			t.Errorf("a step that failed and was run again: %+v", got)
		}
		s.close()
		if data, err = os.ReadFile(path); err == nil {
			i := strings.Index(string(data), `"code":"third"`)
			i = strings.LastIndexByte(string(data[:i]), '\n') + 1
			err = os.WriteFile(path, data[:i], 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNext gives the step with the smallest share its slice, never more than is wanted.
func TestNext(t *testing.T) {
	s, err := openState(filepath.Join(t.TempDir(), "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	a, b := &step{name: "a", want: 100, first: 10}, &step{name: "b", want: 1000, first: 10}
	r := &runner{steps: []*step{a, b}, state: s, busy: map[string]bool{}, ended: map[string]bool{}, length: time.Second}
	all := regexp.MustCompile("")
	do := func(want *step, size, done int64, seconds float64) {
		t.Helper()
		got, n := r.next(all)
		if got != want || n != size {
			t.Fatalf("%+v of %d, want %+v of %d", got, n, want, size)
		}
		if got != nil {
			delete(r.busy, got.name)
			s.count(record{Step: got.name, Done: done, Seconds: seconds})
		}
	}
	do(a, 10, 10, 1)
	do(b, 10, 200, 1)
	do(a, 10, 30, 1)
	do(b, 200, 200, 2) // as much as a second takes
	do(a, 30, 60, 1)
	do(b, 100, 599, 1)
	do(b, 1, 1, 1)
	do(nil, 0, 0, 0)
	s.count(record{Step: "a", Failed: 1})
	a.want = 1000
	do(nil, 0, 0, 0)
	r.again = true
	do(a, 60, 0, 0)
}

// TestCode changes sources: the code of a package depends on its tests, on what it imports, and on what its tests
// import, not on the tests of those.
func TestCode(t *testing.T) {
	all := sources{}
	for name, imports := range map[string][3][]string{
		"a": {{"fmt", "ggforge/b"}, {"ggforge/c"}, {"ggforge/a"}}, "b": {nil, {"ggforge/d"}}, "c": {{"ggforge/e"}}, "d": {}, "e": {},
	} {
		all["ggforge/"+name] = &source{Imports: imports[0], TestImports: imports[1], XTestImports: imports[2], sum: []byte(name)}
	}
	t.Chdir("../..")
	code := func() string {
		t.Helper()
		s, err := all.code([]string{"ggforge/a"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := code()
	for name, changes := range map[string]bool{"a": true, "b": true, "c": true, "d": false, "e": true} {
		p := all["ggforge/"+name]
		p.sum = []byte("changed")
		if changed := code() != before; changed != changes {
			t.Errorf("a change of %s: %v, want %v", name, changed, changes)
		}
		p.sum = []byte(name)
	}
	if _, err := all.code([]string{"ggforge/x"}); err == nil {
		t.Error("no error for a package that is not there")
	}
}

// TestReport fills the tables of the document with those of the plan, and again: nothing else changes.
func TestReport(t *testing.T) {
	s, err := openState(filepath.Join(t.TempDir(), "state.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	steps := []*step{{name: "faults", group: "faults", want: 64}, {name: "make wine", group: "programs", want: 1},
		{name: "fuzz gguf FuzzParse", group: "fuzz", want: 10_000_000, unit: "executions", code: "x"}}
	s.count(record{Step: "make wine", Note: "wine: is not installed | here"})
	s.count(record{Step: "fuzz gguf FuzzParse", Code: "x", Done: 1_234_567, Seconds: 90, Commit: "abc",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Figures: map[string]int64{"inputs": 12}})
	document, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fill(string(document), steps, s, "abc")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `gguf` | FuzzParse | 1,234,567 | 10,000,000 | 12 | 2 min | none | 2026-01-02 | abc |\n",
		"| `make wine` | commands for Windows, under Wine | 0 | 0 | not run: wine: is not installed / here | 0 s |",
		"| fuzz, executions | 1 | 0 | 1,234,567 | 10,000,000 | 2 min | none | 2026-01-02 03:04 | abc |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the document", want)
		}
	}
	if again, err := fill(text, steps, s, "abc"); err != nil || again != text {
		t.Errorf("filled again, it differs: %v", err)
	}
	if _, err := fill("no tables", steps, s, "abc"); err == nil {
		t.Error("no error for a document without tables")
	}
}

// TestCases counts tests without subtests.
func TestCases(t *testing.T) {
	got := cases("--- PASS: TestA (0.1s)\n    --- PASS: TestA/x (0s)\n    --- SKIP: TestA/y (0s)\n--- FAIL: TestB (0s)\n")
	if got["pass"] != 1 || got["skip"] != 1 || got["fail"] != 1 {
		t.Errorf("%v", got)
	}
}
