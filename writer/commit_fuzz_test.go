package writer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzCommit lets a later run find any journal in the output's directory, which
// is untrusted: files elsewhere stay as they are.
func FuzzCommit(f *testing.F) {
	f.Add([]byte(`{"format":"ggforge commit 1","files":[{"name":"a.gguf","size":3,"leader":true,"replaces":true},{"name":"b.gguf","size":3}]}`))
	f.Add([]byte(`{"format":"ggforge commit 1","files":[{"name":"a.gguf","size":9}]}`))
	f.Add([]byte(`{"format":"ggforge commit 1","files":[{"name":"a.gguf","size":3},{"name":"../outside","size":3}]}`))
	f.Add([]byte(`{"format":"ggforge commit 1","files":[{"name":"a.gguf`))
	f.Add([]byte(`{"files":[{"name":"a.gguf","size":3,"id":"1"}]}`))
	// All executions have the same files where they leave them as they are: making new ones takes longer than reading a
	// journal.
	root := f.TempDir()
	dir := filepath.Join(root, "out")
	c := &commit{dir: dir, token: "0123456789abcdef"}
	if !commitName.MatchString(filepath.Base(c.path())) {
		f.Fatalf("%s is not the name of a journal", c.path())
	}
	outside := filepath.Join(root, "outside")
	texts := map[string]string{filepath.Join(dir, "a.gguf"): "old", filepath.Join(dir, "a.gguf"+Suffix): "new",
		filepath.Join(dir, "b.gguf"+Suffix): "new", outside: "kept", outside + Suffix: "kept"}
	files := map[string]os.FileInfo{}
	write := func(tb testing.TB, path string) {
		err := os.WriteFile(path, []byte(texts[path]), 0o666)
		if err == nil {
			files[path], err = os.Lstat(path)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	same := func(path string) bool {
		old, now := files[path], os.FileInfo(nil)
		if old != nil {
			now, _ = os.Lstat(path)
		}
		return now != nil && os.SameFile(old, now) && old.Size() == now.Size() && old.ModTime().Equal(now.ModTime())
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		f.Fatal(err)
	}
	for path := range texts {
		write(f, path)
	}
	names, err := os.Lstat(root)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, journal []byte) {
		if len(journal)%2 == 0 { // with the right checksum
			var b bytes.Buffer
			if _, err := commitKind.File("", int64(len(journal)), bytes.NewReader(journal)).WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			journal = b.Bytes()
		}
		if err := os.WriteFile(c.path(), journal, 0o666); err != nil {
			t.Fatal(err)
		}
		recoverCommits([]string{filepath.Join(dir, "a.gguf")}, nil)
		for _, path := range []string{outside, outside + Suffix} {
			if !same(path) {
				t.Fatalf("%s has changed", path)
			}
		}
		if now, err := os.Lstat(root); err != nil || !names.ModTime().Equal(now.ModTime()) {
			t.Fatalf("names outside of the directory have changed: %v", err)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			if path := filepath.Join(dir, e.Name()); !same(path) {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
		for path := range texts {
			if !same(path) {
				write(t, path)
			}
		}
	})
}
