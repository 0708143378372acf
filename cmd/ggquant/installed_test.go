package main

import (
	"os"
	"path/filepath"
	"testing"

	"ggforge/checkpoint/installed/installedtest"
)

// TestInstalled quantizes a model of Ollama's store: the output without a name goes to the current directory, with the
// bytes of a run on the file.
func TestInstalled(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	t.Setenv("OLLAMA_MODELS", home)
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	data, err := os.ReadFile(in)
	if err != nil {
		t.Fatal(err)
	}
	blob := installedtest.Ollama(t, home, "hf.co/org/tiny/F32", "model", data)
	t.Chdir(dir)
	for _, args := range [][]string{{"ollama://hf.co/org/tiny:F32", "Q4_0"}, {in, "want.gguf", "Q4_0"},
		{"--dry-run", "ollama://hf.co/org/tiny:F32", "Q4_0"}} {
		if code, out, err := call(append(args, "--progress", "none")...); code != 0 {
			t.Fatalf("%q: %d %s %v", args, code, out, err)
		}
	}
	got, err := os.ReadFile("ggml-model-Q4_0.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile("want.gguf"); err != nil || string(got) != string(want) {
		t.Errorf("the output is another than that of the file: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(blob))
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
	if code, out, err := call("ollama://none", "Q4_0"); code != 2 {
		t.Errorf("%d %s %v, want 2", code, out, err)
	}
}
