package mmap

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestCopyTo(t *testing.T) {
	data := make([]byte, 100_000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	path := write(t, data)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dst, err := os.Create(filepath.Join(t.TempDir(), "dst"))
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	want := make([]byte, 70_000)
	copy(want[33:], data[1001:61_001])
	if err := dst.Truncate(int64(len(want))); err != nil {
		t.Fatal(err)
	}
	if err := f.CopyTo(dst, 33, 1001, 60_000); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the file system of temporary files copies nothing")
	} else if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dst.Name()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("other bytes, %v", err)
	}
	if at, err := dst.Seek(0, 1); at != 0 || err != nil {
		t.Errorf("the file is at %d, %v", at, err)
	}
	for _, c := range [][2]int64{{-1, 5}, {0, -1}, {99_999, 2}, {1 << 62, 1 << 62}} {
		if err := f.CopyTo(dst, 0, c[0], c[1]); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%d bytes from %d: %v", c[1], c[0], err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := f.CopyTo(w, 0, 0, 10); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("to a pipe: %v", err)
	}
	if err := os.Truncate(path, 50_000); err != nil {
		t.Fatal(err)
	}
	if err := f.CopyTo(dst, 0, 40_000, 20_000); !errors.Is(err, ErrChanged) {
		t.Errorf("cut short: %v", err)
	}
}
