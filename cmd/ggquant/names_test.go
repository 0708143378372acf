package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/gguf"
)

// TestHostileNames quantizes a file whose metadata hold names with separators,
// control characters and the like: {model} makes a harmless name of them, and
// nothing is written outside the output directory.
func TestHostileNames(t *testing.T) {
	for _, key := range []string{gguf.KeyName, gguf.KeyBasename, gguf.KeySizeLabel, gguf.KeyFinetune, gguf.KeyVersion} {
		for _, value := range []string{"../../../escape", "/etc/escape", `..\..\x`, "a\nb", "a\x1b[2Jb", "a\x00b",
			".hidden", "--force", "nul", strings.Repeat("long", 100)} {
			root := t.TempDir()
			out := filepath.Join(root, "a", "b", "c", "out")
			if err := os.MkdirAll(out, 0o777); err != nil {
				t.Fatal(err)
			}
			m := gguf.Metadata{
				{Key: gguf.KeyArchitecture, Value: gguf.String("llama")},
				{Key: "llama.block_count", Value: gguf.Uint32(1)},
				{Key: "llama.attention.head_count", Value: gguf.Uint32(4)},
			}
			m.Set(key, gguf.String(value))
			tensors := []gguf.Tensor{{Name: "output.weight", NE: []int64{32, 4}, Type: gguf.TypeF32}}
			b := append(gguf.AppendHeader(nil, m, tensors, 32), make([]byte, gguf.Layout(tensors, 32))...)
			in := filepath.Join(t.TempDir(), "in.gguf")
			if err := os.WriteFile(in, b, 0o666); err != nil {
				t.Fatal(err)
			}
			if code, _, err := call(in, "--out-dir", out, "--name-template", "{model}.gguf", "--progress", "none",
				"Q8_0"); code != 0 {
				t.Errorf("%s %q: %v", key, value, err)
				continue
			}
			n := 0
			err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				n++
				name := e.Name()
				if filepath.Dir(path) != out || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "-") ||
					strings.HasPrefix(name, "nul.") ||
					strings.ContainsAny(name, "\\\n\x1b\x00") {
					t.Errorf("%s %q: written: %q", key, value, path)
				}
				return nil
			})
			if err != nil || n != 1 {
				t.Errorf("%s %q: %d files, %v, want 1", key, value, n, err)
			}
		}
	}
}
