package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// copyOf returns a copy of the checkpoint under the given name.
func copyOf(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// metadata returns the value of a key of a file as text, "" for none.
func metadata(t *testing.T, path, key string) string {
	t.Helper()
	f, err := gguf.Open(path)
	must(t, err)
	defer f.Close()
	v, _ := f.Metadata.Get(key)
	s, _ := v.Str()
	return s
}

// fails runs ggconv and expects the exit code, an error with the text, and no output.
func fails(t *testing.T, want int, text string, args ...string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.gguf")
	code, printed, err := call(append([]string{"--progress", "none", "--outfile", out}, args...)...)
	if code != want || !strings.Contains(fmt.Sprint(err), text) {
		t.Errorf("exit code %d, %v; want %d and %q\n%s", code, err, want, text, printed)
	}
	if left, _ := filepath.Glob(out + "*"); len(left) > 0 {
		t.Errorf("leftover: %q", left)
	}
}
