package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"ggforge/internal/hftest"
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
		t.Error("the table of architectures in README.md is old: run go generate ./arch")
	}
}

// TestEveryNameListed looks in the table for what made-up checkpoints become, in the row of the
// class that they have.
func TestEveryNameListed(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range slices.Concat(hftest.Specs(), hftest.Towers()) {
		golden, err := os.ReadFile("../../../convert/testdata/arch/" + s.Name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		class := regexp.QuoteMeta(s.Class())
		if first := regexp.MustCompile(`"architectures": \["(.*?)"`).FindStringSubmatch(s.Config); first != nil {
			class += "|" + regexp.QuoteMeta(first[1]) // the model's, not that of its part for language
		}
		for _, m := range regexp.MustCompile(`(?m)^general\.architecture str "(.*)"$`).FindAllSubmatch(golden, -1) {
			row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| `%s` \\|.*[ ,](%s)[ ,].*$", regexp.QuoteMeta(string(m[1])), class))
			if !row.Match(text) {
				t.Errorf("%s: README.md has no row of %s with class %s", s.Name, m[1], class)
			}
			seen++
		}
	}
	if seen < 300 {
		t.Errorf("%d names", seen)
	}
}

func TestNoTable(t *testing.T) {
	for _, text := range []string{"", begin, end + begin} {
		if _, err := replace([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
