package writer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ggforge/fault"
)

func TestWriteBytes(t *testing.T) {
	dir := t.TempDir()
	path, input := filepath.Join(dir, "page.html"), filepath.Join(dir, "input")
	if err := os.WriteFile(input, []byte("kept"), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, data := range [][]byte{bytes.Repeat([]byte("text "), 50_000), []byte("another"), {}} {
		opt := Options{Force: i > 0}
		if err := Writable(path, opt); err != nil {
			t.Fatal(err)
		}
		if err := WriteBytes(t.Context(), path, data, opt); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(data))
		}
	}
	for name, c := range map[string]struct {
		path string
		opt  Options
		kind error
	}{
		"exists":      {path, Options{}, fs.ErrExist},
		"input":       {input, Options{Force: true, Inputs: []string{input}}, fault.Usage},
		"a directory": {dir, Options{Force: true}, fault.Usage},
		"no folder":   {filepath.Join(dir, "none", "page.html"), Options{}, fs.ErrNotExist},
	} {
		if err := Writable(c.path, c.opt); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
		if err := WriteBytes(t.Context(), c.path, []byte("x"), c.opt); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v, %v: want the page and the input", entries, err)
	}
}
