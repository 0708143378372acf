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
	f.Fuzz(func(t *testing.T, journal []byte) {
		if len(journal)%2 == 0 { // with the right checksum
			var b bytes.Buffer
			if _, err := commitKind.File("", int64(len(journal)), bytes.NewReader(journal)).WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			journal = b.Bytes()
		}
		root := t.TempDir()
		dir := filepath.Join(root, "out")
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		write := func(path, text string) {
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		c := &commit{dir: dir, token: "0123456789abcdef"}
		if !commitName.MatchString(filepath.Base(c.path())) {
			t.Fatalf("%s is not the name of a journal", c.path())
		}
		write(c.path(), string(journal))
		write(filepath.Join(dir, "a.gguf"), "old")
		write(filepath.Join(dir, "a.gguf"+Suffix), "new")
		write(filepath.Join(dir, "b.gguf"+Suffix), "new")
		notLeftover := filepath.Join(root, "outside")
		write(notLeftover, "kept")
		write(notLeftover+Suffix, "kept")
		recoverCommits([]string{filepath.Join(dir, "a.gguf")}, nil)
		for _, path := range []string{notLeftover, notLeftover + Suffix} {
			if text, err := os.ReadFile(path); err != nil || string(text) != "kept" {
				t.Errorf("%s: %q, %v", path, text, err)
			}
		}
		entries, err := os.ReadDir(root)
		if err != nil || len(entries) != 3 {
			t.Errorf("%d files outside the directory, want 2: %v", len(entries)-1, err)
		}
	})
}
