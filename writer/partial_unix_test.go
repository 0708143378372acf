//go:build unix

package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/test/gen"
)

// untrusted are files under a temporary name that no run of ours makes.
var untrusted = []struct {
	name string
	make func(partial, victim string) error
	what string // in the error
}{
	{"symlink", func(partial, victim string) error { return os.Symlink(victim, partial) }, "a symbolic link"},
	{"dangling-symlink", func(partial, victim string) error { return os.Symlink(victim+"-none", partial) },
		"a symbolic link"},
	{"hard-link", func(partial, victim string) error { return os.Link(victim, partial) }, "a file with 2 names"},
	{"pipe", func(partial, _ string) error { return unix.Mkfifo(partial, 0o666) }, "a named pipe"},
	{"directory", func(partial, _ string) error { return os.Mkdir(partial, 0o777) }, "a directory"},
}

// TestUntrusted checks that nothing is opened, followed or removed that an untrusted
// checkpoint holds under the temporary name of an output.
func TestUntrusted(t *testing.T) {
	for _, s := range untrusted {
		for _, force := range []bool{false, true} {
			dir, outside := t.TempDir(), t.TempDir()
			victim := filepath.Join(outside, "precious")
			if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
				t.Fatal(err)
			}
			outs := map[string]func() error{
				filepath.Join(dir, "out.gguf"): func() error {
					_, err := Write(context.Background(), testFile(filepath.Join(dir, "out.gguf")),
						Options{Force: force})
					return err
				},
				filepath.Join(dir, "model.safetensors.index.json"): func() error {
					_, err := WriteCheckpoint(context.Background(), testCheckpoint(dir), Options{Force: force})
					return err
				},
				filepath.Join(dir, gguf.ShardName("m", 2, 3)): func() error {
					_, err := WriteAll(context.Background(), shardSet(dir), Options{Force: force})
					return err
				},
			}
			for out, write := range outs {
				partial := out + Suffix
				if err := s.make(partial, victim); err != nil {
					t.Fatal(err)
				}
				if err := write(); !errors.Is(err, fault.Usage) ||
					!strings.Contains(err.Error(), partial+": is "+s.what) {
					t.Errorf("%s, force %v: got %v", s.name, force, err)
				}
				if left := entries(t, dir); len(left) != 1 {
					t.Errorf("%s: leftover files: %v", s.name, left)
				}
				if got := string(read(t, victim)); got != "precious" || len(entries(t, outside)) != 1 {
					t.Errorf("%s: the file outside holds %q; %v", s.name, got, entries(t, outside))
				}
				if err := os.Remove(partial); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestCutLink checks that a commit by links that was killed between its two links
// does not keep the next run from writing.
func TestCutLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.gguf")
	if _, err := Write(context.Background(), testFile(path), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+Suffix); err != nil {
		t.Skip(err)
	}
	if _, err := Write(context.Background(), testFile(path), Options{Force: true}); err != nil {
		t.Error(err)
	}
}

// TestNoReplace lets an output appear while the run writes: it is not replaced
// without Force, by either way to rename.
func TestNoReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.gguf")
	appear := func(string) error { return os.WriteFile(path, []byte("other"), 0o666) }
	if _, err := Write(context.Background(), testFile(path), Options{step: appear}); !errors.Is(err, fault.Usage) ||
		!errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if got := string(read(t, path)); got != "other" || len(entries(t, dir)) != 1 {
		t.Errorf("the file that appeared holds %q; %v", got, entries(t, dir))
	}
	files := shardSet(dir)
	for _, f := range files {
		appear := func(step string) error {
			if strings.HasPrefix(step, "rename "+filepath.Base(f.Path)) {
				return os.WriteFile(f.Path, []byte("other"), 0o666)
			}
			return nil
		}
		if _, err := WriteAll(context.Background(), files, Options{step: appear}); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s appears: got %v", f.Path, err)
		}
		if left := entries(t, dir); len(left) != 2 || string(read(t, f.Path)) != "other" {
			t.Errorf("%s appears: leftover files: %v", f.Path, left)
		}
		if err := os.Remove(f.Path); err != nil {
			t.Fatal(err)
		}
	}
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for name, rename := range map[string]func(from, to string) error{"system": renameNew, "links": linkNew} {
		for _, p := range []string{a, b} {
			if err := os.WriteFile(p, []byte(p), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := rename(a, b); !errors.Is(err, os.ErrExist) || string(read(t, b)) != b {
			t.Errorf("%s: got %v", name, err)
		}
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
		if err := rename(a, b); err != nil || string(read(t, b)) != a {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Lstat(a); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the old name is still there: %v", name, err)
		}
	}
}

// TestManyShards writes more shards than a process may have open.
func TestManyShards(t *testing.T) {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	low := old
	low.Cur = 128
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	const n = 300
	var files []*File
	dir := t.TempDir()
	values, _ := gen.Input("normal/8x32")
	x := newMatrix(values, 32, 8)
	for i := range n {
		f := &File{Path: filepath.Join(dir, gguf.ShardName("m", i, n))}
		for k := range 3 {
			f.Tensors = append(f.Tensors, Tensor{Name: fmt.Sprintf("t%d.%d", i, k), Type: gguf.TypeF32, Source: x})
		}
		files = append(files, f)
	}
	if _, err := WriteAll(context.Background(), files, Options{Workers: 4}); err != nil {
		t.Fatal(err)
	}
	if got := len(entries(t, dir)); got != n {
		t.Errorf("%d files, want %d", got, n)
	}
	for _, f := range files {
		got, err := gguf.Parse(f.Path, read(t, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Tensors {
			if !bytes.Equal(got.Data(&got.Tensors[i]), x.data) {
				t.Errorf("%s: tensor %d has other data", f.Path, i)
			}
		}
	}
}
