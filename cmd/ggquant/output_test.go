package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestOutputFlag checks that --output is the same as OUT, that a folder there is the same as --out-dir, and that
// former names of flags and those of the reference work.
func TestOutputFlag(t *testing.T) {
	dir := t.TempDir()
	in := ggufModel(t, filepath.Join(dir, "in.gguf"), 256, nil)
	run := func(code int, args ...string) {
		t.Helper()
		if got, text, err := call(append(args, "--progress", "none")...); got != code {
			t.Errorf("%q: exit code %d, want %d: %v %s", args, got, code, err, text)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return data
	}
	run(0, in, filepath.Join(dir, "a.gguf"), "Q8_0")
	for _, flag := range []string{"-o", "--output", "--outfile"} {
		run(0, "--force", flag, filepath.Join(dir, "b.gguf"), in, "q8_0", "2")
		if !bytes.Equal(read("a.gguf"), read("b.gguf")) {
			t.Errorf("%s: other bytes", flag)
		}
	}
	run(2, "-o", filepath.Join(dir, "c.gguf"), in, filepath.Join(dir, "d.gguf"), "Q8_0")
	run(2, "-o", filepath.Join(dir, "c.gguf"), "--out-dir", dir, in, "Q8_0")
	for _, folder := range []string{filepath.Join(dir, "made") + "/", filepath.Join(dir, "made")} {
		run(0, "--force", "-o", folder, in, "Q8_0", "Q4_0")
		if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
			t.Errorf("%s: %d files, %v", folder, len(files), err)
		}
	}
	run(0, in, filepath.Join(dir, "s.gguf"), "Q8_0", "--max-size", "1K")
	run(0, in, filepath.Join(dir, "s.gguf"), "Q8_0", "--split-max-size", "1K", "--force")
}
