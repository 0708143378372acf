package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/test/defects"
)

// TestDefects gives every broken GGUF file to every verb that reads such files: the exit code and the message are
// those of the defect, the message is one short line, and nothing is written.
func TestDefects(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	whole := write(t, dir, "whole.gguf", 0)
	out := filepath.Join(work, "out")
	verbs := [][]string{
		{"inspect", "FILE"}, {"inspect", "--json", "FILE"}, {"verify", "FILE"}, {"verify", "--header-only", "FILE"},
		{"hash", "--sha256", "FILE"},
		{"diff", "FILE", whole}, {"diff", whole, "FILE"}, {"quality", "FILE", whole}, {"quality", whole, "FILE"},
		{"meta", "--set", "a=u32:1", "FILE"}, {"meta", "--set", "a=u32:1", "--output", out, "FILE"},
		{"split", "--max-tensors", "1", "FILE", out}, {"merge", "FILE", out}, {"endian", "FILE", out},
		{"pad-vocab", "--size", "64", "FILE", out}, {"export", "FILE", out},
		{"imatrix", "check", "--model", "FILE", whole}, {"name", "--build", "FILE"},
	}
	for _, d := range defects.GGUF() {
		path := d.Write(t, dir, ".gguf")
		for _, verb := range verbs {
			args := slices.Clone(verb)
			args[slices.Index(args, "FILE")] = path
			code, text, err := call(args...)
			if err != nil {
				text += err.Error()
			}
			want := d.Code
			if verb[0] == "verify" {
				want = 3 // verify reports every defect with exit code 3
			}
			if code != want || !strings.Contains(text, d.Text) || !strings.Contains(text, d.Name+".gguf") {
				t.Errorf("%s: %q: exit code %d, want %d and %q: %.300s", d.Name, verb, code, want, d.Text, text)
			}
			if len(text) > 2000 && (verb[0] != "verify" || len(text) > 1<<18) {
				t.Errorf("%s: %q: %d bytes of messages", d.Name, verb, len(text))
			}
		}
		if d.Size == 0 {
			if data, err := os.ReadFile(path); err != nil || string(data) != string(d.Data) {
				t.Errorf("%s: the file has changed", d.Name)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if here, _ := os.ReadDir(dir); len(here) != 1 {
		t.Errorf("next to the files: %v", here)
	}
}
