package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/internal/io/disk"
)

// TestFolderSync makes the sync of the folder fail after the output got its name: a file that it replaced is restored,
// and otherwise the output is removed.
func TestFolderSync(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	for _, existed := range []bool{true, false} {
		folder := t.TempDir()
		out := filepath.Join(folder, "out.gguf")
		if existed {
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
		if existed != (err == nil) || existed && string(data) != "old" {
			t.Errorf("there was a file: %v; now %d bytes, %v", existed, len(data), err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) > 1 || len(entries) == 1 && !existed {
			t.Errorf("there was a file: %v; left %v, %v", existed, entries, err)
		}
	}
}
