package convert_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"ggforge/convert"
	"ggforge/fault"
)

// TestMissingFiles checks that the error for a checkpoint without a file that it needs is both fault.Broken and
// fs.ErrNotExist.
func TestMissingFiles(t *testing.T) {
	for _, name := range []string{"config.json", "model.safetensors", "tokenizer.model"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("../test/testdata/gollama")); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err := convert.Prepare(t.Context(), dir, convert.Options{})
		if !errors.Is(err, fault.Broken) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v: broken %v, does not exist %v", name, err, errors.Is(err, fault.Broken),
				errors.Is(err, fs.ErrNotExist))
		}
	}
}
