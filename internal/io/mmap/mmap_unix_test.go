//go:build unix

package mmap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ggforge/fault"
)

func TestGuardTruncated(t *testing.T) {
	const page = 1 << 16 // at least the page size of every system
	path := write(t, make([]byte, 4*page))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, page); err != nil {
		t.Fatal(err)
	}

	sum, dst := 0, make([]byte, page)
	for name, read := range map[string]func(){
		"load": func() { sum += int(f.Bytes()[3*page]) },
		"copy": func() { sum += copy(dst, f.Bytes()[2*page:]) },
	} {
		err := Guard(path, func() error {
			err := Guard("inner", func() error { return nil })
			read()
			return err
		})
		var pe *fs.PathError
		if !errors.Is(err, ErrChanged) || !errors.As(err, &pe) || pe.Path != path {
			t.Errorf("%s: got %v, want ErrChanged with the path", name, err)
		}
		if debug.SetPanicOnFault(false) {
			t.Errorf("%s: the setting of SetPanicOnFault was not restored", name)
		}
	}
	n, err := f.ReadAt(dst, page/2)
	var pe *fs.PathError
	if n != page/2 || !errors.Is(err, ErrChanged) || !errors.As(err, &pe) || pe.Path != path {
		t.Errorf("ReadAt: got %d bytes, %v, want %d and ErrChanged with the path", n, err, page/2)
	}
	if err := Guard(path, func() error { sum += int(f.Bytes()[0]); return nil }); err != nil {
		t.Errorf("bytes still in the file: %v", err)
	}
}

func TestOpenPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

// TestManyFiles maps more files than stay open: the last ones are read through
// their mappings, and report lost bytes.
func TestManyFiles(t *testing.T) {
	const size = 1 << 16
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(i * 5)
	}
	path := write(t, want)
	var files []*File
	for range maxOpen + 2 {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	last := files[len(files)-1]
	if last.file != nil {
		t.Fatalf("%d files stay open, want %d", len(files), maxOpen)
	}
	got := make([]byte, size)
	for _, off := range []int64{0, 1, size - 1, size} {
		n, err := last.ReadAt(got, off)
		if !bytes.Equal(got[:n], want[off:]) || (err == nil) != (off == 0) {
			t.Errorf("from %d: %d bytes, %v", off, n, err)
		}
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := last.ReadAt(got, 0); !errors.Is(err, ErrChanged) || !errors.Is(err, fault.Broken) {
		t.Errorf("file that has become shorter: %v", err)
	}
	for _, f := range files {
		f.Close()
	}
	f, err := Open(write(t, want))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.file == nil {
		t.Error("files that were closed still count")
	}
}
