package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestState reads a state again whose last line was cut off, before and after its slices are added up: slices of the
// same code add up, those of other code do not count.
func TestState(t *testing.T) {
	dir := t.TempDir()
	kept, path := filepath.Join(dir, "state.jsonl"), filepath.Join(dir, "slices.jsonl")
	s, err := openState(kept, path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(r record) {
		t.Helper()
		at = at.Add(time.Second)
		r.Step, r.Time = "fuzz a FuzzB", at
		if err := s.add(r); err != nil {
			t.Fatal(err)
		}
	}
	add(record{Code: "old", Done: 5, Failed: 1, Seconds: 1, Processor: 1})
	add(record{Code: "new", Done: 10, Seconds: 9, Processor: 2,
		Figures: map[string]int64{"new": 3, "inputs": 7, "guided": 10, "guided_ms": 2000}})
	add(record{Code: "new", Done: 20, Seconds: 2, Processor: 2, Commit: "abc",
		Figures: map[string]int64{"new": 1, "inputs": 6}})
	add(record{Code: "new", Note: "not installed", Commit: "abc"})
	s.close()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, `{"step":"fuzz a FuzzB","co`...), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &step{name: "fuzz a FuzzB", code: "new"}
	for i := range 4 {
		if s, err = openState(kept, path); err != nil {
			t.Fatal(err)
		}
		got := s.of(p)
		rate, done := s.rate(p, false)
		guided, first := s.rate(p, true)
		if got.Done != 30 || got.Slices != 3 || got.Failed != 0 || got.Figures["new"] != 4 || got.Figures["inputs"] != 7 ||
			got.Commit != "abc" || got.Seconds != 11 || got.Processor != 4 || rate != 10 || done != 20 ||
			guided != 5 || first != 10 {
			t.Errorf("%d: %+v, rates %v and %v of %d and %d", i, got, rate, guided, done, first)
		}
		if got := s.of(&step{name: p.name, code: "old"}); i == 0 && got.Failed != 1 {
			t.Errorf("with the old code: %+v", got)
		}
		switch i {
		case 1: // added up, and killed before the slices were removed
			err = s.fold([]*step{p, {name: "other"}})
			if err == nil {
				err = os.WriteFile(path, text, 0o666)
			}
		case 2:
			err = s.fold([]*step{p})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.close()
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("slices are left: %q, %v", text, err)
	}

	// Of a step whose code has changed the last record stays, until there is one of the new code.
	if s, err = openState(kept, path); err != nil {
		t.Fatal(err)
	}
	p.code = "third"
	for _, want := range []string{"abc", "def"} {
		if want == "def" {
			add(record{Code: "third", Done: 1, Commit: want})
			add(record{Code: "third", Failed: 1, Commit: want})
			add(record{Code: "third", Done: 1, Commit: want})
		}
		if err := s.fold([]*step{p}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(kept)
		if err != nil || strings.Count(string(text), "\n") != 1 || !strings.Contains(string(text), want) {
			t.Errorf("%q, want commit %s: %v", text, want, err)
		}
	}
	if got := s.of(p); got.Done != 2 || got.Failed != 0 {
		t.Errorf("a step that failed and was run again: %+v", got)
	}
	s.close()
	if err := os.WriteFile(kept, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(kept, path); err == nil {
		t.Error("no error for a damaged state")
	}
}

// TestNext gives the step with the smallest share its slice, never more than is wanted. Steps that wait are another
// lane's.
func TestNext(t *testing.T) {
	s := newState(t)
	a, b := &step{name: "a", want: 100, first: 10}, &step{name: "b", want: 1000, first: 10, guided: 100}
	r := &runner{steps: []*step{{name: "c", want: 1, waits: true}, a, b}, state: s, busy: map[string]bool{},
		ended: map[string]bool{}, length: time.Second}
	all := regexp.MustCompile("")
	do := func(want *step, size, done int64, seconds float64) {
		t.Helper()
		got, n := r.next(all, false)
		if got != want || n != size {
			t.Fatalf("%+v of %d, want %+v of %d", got, n, want, size)
		}
		if got != nil {
			delete(r.busy, got.name)
			figures := map[string]int64{}
			if got.guided > s.of(got).Figures["guided"] {
				figures["guided"], figures["guided_ms"] = done, int64(seconds*1000)
			}
			s.count(record{Step: got.name, Done: done, Processor: seconds, Figures: figures})
		}
	}
	do(a, 10, 10, 1)
	do(b, 10, 20, 1)
	do(b, 20, 20, 1) // as much as a second takes
	do(b, 20, 60, 1)
	do(a, 10, 40, 1)
	do(b, 10, 50, 1) // the first that are not guided
	do(b, 50, 800, 1)
	do(a, 25, 50, 1)
	do(b, 50, 50, 1)
	do(nil, 0, 0, 0)
	s.count(record{Step: "a", Failed: 1})
	a.want = 1000
	do(nil, 0, 0, 0)
	r.again = true
	do(a, 33, 0, 0)
	if got, n := r.next(all, true); got != r.steps[0] || n != 1 {
		t.Errorf("%+v of %d, want the step that waits", got, n)
	}
}

// newState returns a state without records.
func newState(t *testing.T) *state {
	t.Helper()
	s, err := openState(filepath.Join(t.TempDir(), "state.jsonl"), filepath.Join(t.TempDir(), "slices.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// TestCode changes sources: the code of a step depends on the tests that it runs, and on what they and the packages that
// it builds import, not on the tests of those.
func TestCode(t *testing.T) {
	all := sources{}
	for name, imports := range map[string][3][]string{
		"a": {{"fmt", "ggforge/b"}, {"ggforge/c"}, {"ggforge/a"}}, "b": {nil, {"ggforge/d"}}, "c": {{"ggforge/e"}}, "d": {}, "e": {},
		"f": {{"ggforge/g"}, {"ggforge/d"}}, "g": {},
	} {
		all["ggforge/"+name] = &source{Imports: imports[0], TestImports: imports[1], XTestImports: imports[2], sum: []byte(name)}
	}
	t.Chdir("../..")
	code := func() string {
		t.Helper()
		s, err := all.code(uses{tests: []string{"ggforge/a"}, built: []string{"ggforge/f"}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	before := code()
	for name, changes := range map[string][2]bool{"a": {true, true}, "b": {true, false}, "c": {true, false}, "d": {},
		"e": {true, false}, "f": {true, false}, "g": {true, false}} {
		p := all["ggforge/"+name]
		for i, sum := range []*[]byte{&p.sum, &p.testSum} {
			old := *sum
			*sum = []byte("changed")
			if changed := code() != before; changed != changes[i] {
				t.Errorf("a change of %s, tests %v: %v, want %v", name, i > 0, changed, changes[i])
			}
			*sum = old
		}
	}
	if _, err := all.code(uses{built: []string{"ggforge/x"}}); err == nil {
		t.Error("no error for a package that is not there")
	}
}

// TestReport fills the tables of the document with those of the plan, and again: nothing else changes.
func TestReport(t *testing.T) {
	s := newState(t)
	steps := []*step{{name: "faults", group: "faults", want: 64}, {name: "make wine", group: "programs", want: 1},
		{name: "fuzz gguf FuzzParse", group: "fuzz", want: 10_000_000, unit: "executions", code: "x"}}
	s.count(record{Step: "make wine", Note: "wine: is not installed | here"})
	s.count(record{Step: "fuzz gguf FuzzParse", Code: "x", Done: 1_234_567, Seconds: 99, Processor: 90, Commit: "abc",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Figures: map[string]int64{"guided": 1000, "inputs": 12}})
	document, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := fill(string(document), steps, s, "abc")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| `gguf` | FuzzParse | 1,234,567 | 10,000,000 | 1,000 | 12 | 2 min | none | 2026-01-02 | abc |\n",
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

// TestRecorded finds in the document what the state of the repository has.
func TestRecorded(t *testing.T) {
	document, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := openState("state.jsonl", filepath.Join(t.TempDir(), "slices.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for name, r := range s.last {
		row := ""
		switch kind, rest, _ := strings.Cut(name, " "); kind {
		case "fuzz":
			pkg, target, _ := strings.Cut(rest, " ")
			row = "| `" + pkg + "` | " + target + " | " + group(r.Done) + " |"
		case "parity", "kills:":
			row = "| " + rest + " | " + group(r.Done) + " |"
		case "make":
			row = "| `" + name + "` |"
		case "faults":
			row = group(r.Figures["faults"]) + " faults in "
		case "mutants":
			row = "| mutants | "
		default:
			t.Errorf("a record of %q", name)
		}
		if !strings.Contains(string(document), row) {
			t.Errorf("docs/reliability.md has no %q", row)
		}
	}
}

// TestCases counts tests without subtests.
func TestCases(t *testing.T) {
	got := cases("--- PASS: TestA (0.1s)\n    --- PASS: TestA/x (0s)\n    --- SKIP: TestA/y (0s)\n--- FAIL: TestB (0s)\n")
	if got["pass"] != 1 || got["skip"] != 1 || got["fail"] != 1 {
		t.Errorf("%v", got)
	}
}
