package disk

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHook checks that every call passes the hook, and returns the hook's result.
func TestHook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	var ops []string
	bad := errors.New("bad")
	fail := ""
	remove := Install(func(c Call, do func(int) (int, error)) (int, error) {
		ops = append(ops, c.Op)
		if c.Op != fail {
			return do(c.N)
		}
		n, _ := do(c.N / 2)
		return n, bad
	})
	defer remove()
	f, err := OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Write([]byte("abcdef")); n != 6 || err != nil {
		t.Fatal(n, err)
	}
	fail = OpWrite
	if n, err := f.WriteAt([]byte("ABCD"), 0); n != 2 || err != bad {
		t.Error(n, err)
	}
	fail = OpRead
	p := make([]byte, 6)
	if n, err := f.ReadAt(p, 0); n != 3 || err != bad || !bytes.Equal(p[:4], []byte("ABc\x00")) {
		t.Error(n, err, p)
	}
	fail = ""
	if at, err := f.Seek(1, io.SeekStart); at != 1 || err != nil {
		t.Error(at, err)
	}
	if n, err := f.Read(p); n != 5 || err != nil || string(p[:n]) != "Bcdef" {
		t.Error(n, err, p)
	}
	for _, c := range []struct {
		op   string
		call func() error
	}{
		{OpTruncate, func() error { return f.Truncate(1) }},
		{OpSync, f.Sync},
		{OpFstat, func() error { _, err := f.Stat(); return err }},
		{OpStat, func() error { _, err := Lstat(path); return err }},
		{OpStat, func() error { _, err := Readlink(path); return err }},
		{OpReadDir, func() error { _, err := ReadDir(filepath.Dir(path)); return err }},
		{OpLink, func() error { return Link(path, path+"2") }},
		{OpRename, func() error { return Rename(path+"2", path+"3") }},
		{OpRemove, func() error { return Remove(path + "3") }},
		{OpMkdir, func() error { return Mkdir(path+"4", 0o777) }},
		{OpLock, func() error { return Do(OpLock, path, func() error { return nil }) }},
		{OpOpen, func() error { _, err := Open(path); return err }},
	} {
		ops, fail = nil, c.op
		if err := c.call(); err != bad || !slices.Equal(ops, []string{c.op}) {
			t.Errorf("%s: %v, calls %v", c.op, err, ops)
		}
	}
	fail = OpClose
	if err := f.Close(); err != bad {
		t.Error(err)
	}
	if err := f.file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("open after its close failed: %v", err)
	}
	fail = ""
	if got, err := ReadFile(path); err != nil || string(got) != "A" {
		t.Errorf("%q, %v", got, err)
	}
}
