package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/arch"
	"ggforge/eval"
	"ggforge/test/hftest"
)

func TestReadme(t *testing.T) {
	old, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := replace(old)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, old) {
		t.Error("the counts of architectures in README.md are old: run go generate ./arch")
	}
}

func TestGraphs(t *testing.T) {
	old, err := os.ReadFile(architectures)
	if err != nil {
		t.Fatal(err)
	}
	text, err := replaceGraphs(old)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, old) {
		t.Error("the graphs in docs/architectures.md are old: run go generate ./arch")
	}
	const table = tableHead + "yes |\n| --- | --- | --- | --- |\n"
	got, err := replaceGraphs([]byte(table +
		"| gpt2 | A, B | old | yes | no |\n| none | A | old | yes |\n\n| gpt2 | A | b | c |\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := table + "| gpt2 | A, B | attention; GELU MLP; layer norm, learned positions | yes | no |\n" +
		"| none | A | - | yes |\n\n| gpt2 | A | b | c |\n"
	if string(got) != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The documents with a table of architectures, which make architectures and make evaluation write.
const (
	architectures = "../../../docs/architectures.md"
	evaluation    = "../../../docs/evaluation.md"
)

// rowsOf returns the cells of the rows of a table, by their first cell without marks of code, after
// a line that begins with title.
func rowsOf(t *testing.T, file, title string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n"+title)
	if !ok {
		t.Fatalf("%s: no line that begins with %q", file, title)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(rest[strings.Index(rest, "\n")+1:]) {
		row, ok := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !ok {
			break
		}
		if strings.HasPrefix(row, "---") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		name := strings.Trim(cells[0], "`")
		if rows[name] != nil {
			t.Errorf("%s: two rows of %s", file, name)
		}
		rows[name] = cells[1:]
	}
	return rows
}

// TestEveryNameListed looks in the tables for the architectures that made-up checkpoints become, in the rows of their
// classes.
func TestEveryNameListed(t *testing.T) {
	checked, run := rowsOf(t, architectures, "| architecture |"), rowsOf(t, evaluation, "| architecture |")
	encoders := rowsOf(t, architectures, "| Hugging Face classes |")
	seen := 0
	for _, s := range slices.Concat(hftest.Specs(), hftest.Encoders()) {
		golden, err := os.ReadFile("../../../convert/testdata/arch/" + s.Name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		classes := []string{s.Class()}
		if first := regexp.MustCompile(`"architectures": \["(.*?)"`).FindStringSubmatch(s.Config); first != nil {
			classes = append(classes, first[1]) // the class of the whole model, not of its language model
		}
		has := func(cell string) bool {
			return slices.ContainsFunc(strings.Split(cell, ", "),
				func(class string) bool { return slices.Contains(classes, class) })
		}
		for variant, name := range hftest.Architectures(string(golden)) {
			seen++
			if s.Encoder {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(encoders)), has) {
					t.Errorf("%s: docs/architectures.md has no row of class %s among vision and audio encoders",
						s.Name, classes)
				}
				continue
			}
			if row := checked[name]; row == nil || !has(row[0]) {
				t.Errorf("%s, %s: docs/architectures.md has no row of %s with class %s", s.Name, variant, name, classes)
			}
			if run[name] == nil && slices.Contains(eval.Supported(), name) {
				t.Errorf("%s, %s: docs/evaluation.md has no row of %s", s.Name, variant, name)
			}
		}
	}
	for _, class := range arch.EncoderClasses() {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(encoders)),
			func(cell string) bool { return slices.Contains(strings.Split(cell, ", "), class) }) {
			t.Errorf("docs/architectures.md has no row of class %s among vision and audio encoders", class)
		}
	}
	if seen < 900 {
		t.Errorf("%d files of made-up checkpoints, want at least 900", seen)
	}
}

// TestEveryNameChecked compares the names in the tables of docs with those that the converter can write, and their
// classes.
func TestEveryNameChecked(t *testing.T) {
	checked, run := rowsOf(t, architectures, "| architecture |"), rowsOf(t, evaluation, "| architecture |")
	classes := map[string][]string{}
	for _, class := range arch.Classes() {
		for _, name := range arch.Names(class) {
			classes[name] = append(classes[name], class)
		}
	}
	for name, list := range classes {
		if row := checked[name]; row == nil {
			t.Errorf("docs/architectures.md has no row of %s: make architectures writes it", name)
		} else if want := strings.Join(list, ", "); row[0] != want {
			t.Errorf("docs/architectures.md: %s has classes %s, want %s", name, row[0], want)
		}
		if slices.Contains(eval.Supported(), name) && run[name] == nil {
			t.Errorf("docs/evaluation.md has no row of %s: make evaluation writes it", name)
		}
	}
	for name := range checked {
		if classes[name] == nil {
			t.Errorf("docs/architectures.md has a row of %s, to which no class converts", name)
		}
	}
	for name := range run {
		if !slices.Contains(eval.Supported(), name) {
			t.Errorf("docs/evaluation.md has a row of %s, which ggeval does not support", name)
		}
	}
}

func TestNoTable(t *testing.T) {
	for _, text := range []string{"", begin, end + begin} {
		if _, err := replace([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
		if _, err := replaceGraphs([]byte(text)); err == nil {
			t.Errorf("%q: no error about graphs", text)
		}
	}
}
