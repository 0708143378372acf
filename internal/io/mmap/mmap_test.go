package mmap

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func write(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weights.bin")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 20} {
		want := make([]byte, size)
		for i := range want {
			want[i] = byte(i * 7)
		}
		path := write(t, want)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f.Sequential()
		if !bytes.Equal(f.Bytes(), want) || f.Size() != int64(size) || f.Path() != path {
			t.Errorf("size %d: got %d bytes, Size %d, Path %q", size, len(f.Bytes()), f.Size(), f.Path())
		}
		if size == 0 && f.Bytes() != nil {
			t.Error("empty file: want nil bytes")
		}
		for _, r := range []struct{ off, n int }{{0, size}, {0, size + 1}, {size / 2, size - size/2}, {size, 1},
			{size + 1, 1}, {size / 3, 0}} {
			p := make([]byte, r.n)
			n, err := f.ReadAt(p, int64(r.off))
			rest := want[min(r.off, size):min(r.off+r.n, size)]
			if !bytes.Equal(p[:n], rest) || (err == io.EOF) != (n < r.n) || err != nil && err != io.EOF {
				t.Errorf("size %d: ReadAt %d bytes from %d: got %d, %v, want %d", size, r.n, r.off, n, err, len(rest))
			}
		}
		if _, err := f.ReadAt(nil, -1); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("size %d: ReadAt before the start: %v", size, err)
		}
		for range 2 {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		if f.Bytes() != nil {
			t.Error("bytes are there after Close")
		}
		if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || err == nil {
			t.Errorf("ReadAt after Close: %d, %v", n, err)
		}
		f.Sequential()
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	var pe *fs.PathError
	if !errors.As(err, &pe) || pe.Path != dir || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}

func TestGuardPasses(t *testing.T) {
	sentinel := errors.New("from f")
	if err := Guard("p", func() error { return sentinel }); err != sentinel {
		t.Errorf("got %v, want the error of f", err)
	}
	if err := Guard("p", func() error { return nil }); err != nil {
		t.Error(err)
	}
}

// TestGuardRepanics checks that a panic other than a fault on a mapped address, which is a bug, stays a panic.
func TestGuardRepanics(t *testing.T) {
	for name, f := range map[string]func() error{
		"value":           func() error { panic("bug") },
		"index":           func() error { var s []byte; _ = s[len(t.Name())]; return nil },
		"nil dereference": func() error { var p *[8]byte; p[3]++; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
				if debug.SetPanicOnFault(false) {
					t.Error("the setting of SetPanicOnFault was not restored")
				}
			}()
			t.Errorf("Guard returned: %v", Guard("p", f))
		})
	}
}
