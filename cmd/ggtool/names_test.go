package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ggforge/cmd/internal/flagtest"
)

// TestSharedNames checks that flags which several verbs define are in the table of shared flags.
func TestSharedNames(t *testing.T) { flagtest.SharedNames(t, filepath.Join("..", "..")) }

// TestOutputNamed checks that every verb which writes a file or folder takes its name as the last argument and as
// -o and --output, with the same bytes.
func TestOutputNamed(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir, "in.gguf", 3)
	run := expect(t)
	run(0, "", "split", "--max-tensors", "1", in, filepath.Join(dir, "s"))
	for _, verb := range [][]string{{"endian", "--to", "big", in},
		{"merge", filepath.Join(dir, "s-00001-of-00001.gguf")}} {
		last := filepath.Join(dir, verb[0]+".gguf")
		run(0, "", append(verb, last)...)
		want, err := os.ReadFile(last)
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"-o", "--output"} {
			out := filepath.Join(dir, verb[0]+flag+".gguf")
			run(0, "", append(verb, flag, out)...)
			if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s %s: bytes differ, %v", verb[0], flag, err)
			}
		}
		run(2, "named twice", append(verb, last, "-o", last)...)
	}
	run(0, "", "split", "-o", filepath.Join(dir, "o"), in)
	if _, err := os.Stat(filepath.Join(dir, "o-00001-of-00001.gguf")); err != nil {
		t.Error(err)
	}
	run(0, "", "export", "-o", filepath.Join(dir, "folder"), in)
	run(2, "-c", "hash", "-c", "list", in) // -c is --ctx-size, which hash does not have
}
