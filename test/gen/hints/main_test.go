package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHints checks that the help has the figures of docs/quality.md.
func TestHints(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "quality.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "cmd", "ggquant", "hints_gen.go"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("cmd/ggquant/hints_gen.go does not match docs/quality.md: run go generate ./cmd/ggquant (%v)", err)
	}
}

func TestGenerate(t *testing.T) {
	const good = "\n## gollama\n\nLlama. Text: Go, 3 chunks. F16: perplexity 46.\n\n| type | method | bits | ggeval: " +
		"divergence |\n| --- | --- | --- | --- |\n" +
		"| Q4_0 | reference | 4.8 | 0.0044 ± 0.0001 |\n| Q4_0 | high | 4.8 | 0.0009 ± 0.0001 |\n| IQ2_XS | " +
		"reference, importance | 2.9 | 0.05 ± 0.01 |\n| Q5_0 | reference | 5 | - |\n\n## other\n"
	code, err := generate(good)
	for _, want := range []string{`"Q4_0":   {"0.0044", "0.0009"},`, `"IQ2_XS": {"0.05", ""},`,
		`measuredText  = "Go, 3 chunks"`} {
		if err != nil || !strings.Contains(string(code), want) || strings.Contains(string(code), "Q5_0") {
			t.Errorf("%v, %q is not in\n%s", err, want, code)
		}
	}
	for _, bad := range []string{"", strings.ReplaceAll(good, "gollama", "x"), strings.ReplaceAll(good, "ggeval: ", ""),
		strings.ReplaceAll(good, "±", "+"), strings.ReplaceAll(good, "Text: ", "")} {
		if code, err := generate(bad); err == nil {
			t.Errorf("%q gives\n%s", bad, code)
		}
	}
}
