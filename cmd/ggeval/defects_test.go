package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/test/defects"
)

// TestDefects runs every broken GGUF file: the message names the defect, and nothing is written.
func TestDefects(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	text := textOf(t, strings.Repeat("some text of tokens, ", 300))
	out := filepath.Join(work, "out.gguf")
	for i, d := range defects.GGUF() {
		path := d.Write(t, dir, ".gguf")
		verbs := [][]string{{"perplexity", "-f", text, path}, {"imatrix", "-f", text, "-o", out, path}}
		if i%8 == 0 { // only some files, because all verbs open models in the same way
			verbs = append(verbs, []string{"compare", "-f", text, gollama, path},
				[]string{"compare", "-f", text, path, path}, []string{"embed", "-f", text, path},
				[]string{"sensitivity", "-f", text, path})
		}
		for _, args := range verbs {
			code, stdout, stderr, err := call(args...)
			text := stdout + stderr
			if err != nil {
				text += err.Error()
			}
			if code != d.Code || !strings.Contains(text, d.Text) || !strings.Contains(text, d.Name+".gguf") {
				t.Errorf("%s: %q: exit code %d, want %d and %q: %.300s", d.Name,
					slices.DeleteFunc(args, filepath.IsAbs), code, d.Code, d.Text, text)
			}
			if len(text) > 2000 {
				t.Errorf("%s: %d bytes of messages", d.Name, len(text))
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
