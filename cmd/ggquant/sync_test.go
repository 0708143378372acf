package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/internal/io/disk"
)

// TestFolderSync has the sync of the folder fail after the output has its name: the file that it replaces is back, and
// where there was none there is none.
func TestFolderSync(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	for _, there := range []bool{true, false} {
		folder := t.TempDir()
		out := filepath.Join(folder, "out.gguf")
		if there {
			if err := os.WriteFile(out, []byte("old"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		failed := 0
		remove := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
			if c.Op == disk.OpSync && c.Path == folder {
				failed++
				return 0, errors.New("the disk is gone")
			}
			return do(c.N)
		})
		code, _, err := call("--force", in, out, "Q4_0", "--progress", "none")
		remove()
		if code != 1 || failed != 1 {
			t.Errorf("exit code %d, %v, after %d syncs", code, err, failed)
		}
		data, err := os.ReadFile(out)
		if there != (err == nil) || there && string(data) != "old" {
			t.Errorf("there was a file: %v; now %d bytes, %v", there, len(data), err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) > 1 || len(entries) == 1 && !there {
			t.Errorf("there was a file: %v; left %v, %v", there, entries, err)
		}
	}
}
