package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInstalled evaluates a checkpoint in LM Studio's folder.
func TestInstalled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("makes a link to a folder")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".lmstudio", "models", "pub")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	model, err := filepath.Abs(gollama)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(model, filepath.Join(dir, "gollama")); err != nil {
		t.Fatal(err)
	}
	args := []string{"perplexity", "--json", "-f", "testdata/text.txt", "-c", "16", "--chunks", "1", "--progress", "none"}
	code, got, log, err := call(append(args, "lmstudio://pub/gollama")...)
	if code != 0 {
		t.Fatalf("%d %s %v", code, log, err)
	}
	_, want, _, _ := call(append(args, filepath.Join(dir, "gollama"))...)
	got, _, _ = strings.Cut(got, `"seconds"`)
	if want, _, _ = strings.Cut(want, `"seconds"`); got != want || want == "" {
		t.Errorf("%s, want %s", got, want)
	}
}
