package writer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// body is written piece by piece.
type body []string

func (b body) WriteTo(w io.Writer) (total int64, err error) {
	for _, s := range b {
		n, err := io.WriteString(w, s)
		if total += int64(n); err != nil {
			return total, err
		}
	}
	return total, nil
}

func TestWriteFrom(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	long := strings.Repeat("0123456789", 60_000)
	for i, b := range []body{{"a", "", "bc"}, {}, {long, "x", long}} {
		want := strings.Join(b, "")
		checked := false
		check := func(name string) error {
			data, err := os.ReadFile(name)
			checked = err == nil && string(data) == want && name != path
			return err
		}
		if err := WriteFrom(t.Context(), path, int64(len(want)), b, check, Options{Force: i > 0}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want || !checked {
			t.Errorf("%d bytes, %v, want %d; read back: %v", len(got), err, len(want), checked)
		}
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	bad := errors.New("bad")
	for name, c := range map[string]struct {
		ctx   context.Context
		size  int64
		check func(string) error
		kind  error
	}{
		"too short":   {t.Context(), 7, nil, nil},
		"too long":    {t.Context(), 5, nil, nil},
		"check":       {t.Context(), 6, func(string) error { return bad }, bad},
		"interrupted": {done, 6, nil, context.Canceled},
	} {
		if err := WriteFrom(c.ctx, filepath.Join(dir, "other"), c.size, body{"abc", "def"}, c.check,
			Options{}); err == nil || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v: want one file", entries, err)
	}
}
