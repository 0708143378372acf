package main

import (
	"os"
	"path/filepath"
	"testing"

	"ggforge/publish/release"
	"ggforge/writer"
)

// TestCleanPush lists and removes what a push keeps that has not ended, unless a process pushes.
func TestCleanPush(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, release.StateDir, "push")
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	clean := expect(t, "clean")
	for _, name := range []string{"sums", "mine.txt"} {
		put(t, filepath.Join(state, name), "x")
	}
	if out := clean(0, "", dir); out != "" {
		t.Errorf("without a permission: %s", out)
	}
	grant := filepath.Join(state, "0123abcd.grant")
	put(t, grant, "secret")
	put(t, filepath.Join(state, "0123abcd.tags"), "1 2 3")
	clean(0, "push that has not ended, of which a permission is kept, 11 B", dir)
	clean(0, `"kind": "push"`, "--json", dir)
	release, err := writer.LockNew(filepath.Join(state, "held"))
	if err != nil {
		t.Fatal(err)
	}
	clean(0, "a process works on it", "--remove", dir)
	if _, err := os.Stat(grant); err != nil {
		t.Error(err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	clean(0, "removed", "--remove", dir)
	clean(0, "", dir)
	entries, err := os.ReadDir(state)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v, want what is not the push's", entries, err)
	}
}
