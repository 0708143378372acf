package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestReserved writes new files from one with reserved room in its header: they equal those made from the file
// without.
func TestReserved(t *testing.T) {
	dir := t.TempDir()
	plain, roomy := vocabulary(t, dir), filepath.Join(dir, "roomy.gguf")
	if code, _, err := call("meta", "--reserve", "4k", "--output", roomy, plain); code != 0 {
		t.Fatal(err)
	}
	for name, verb := range map[string]func(in, out string) []string{
		"endian":    func(in, out string) []string { return []string{"endian", in, out} },
		"pad-vocab": func(in, out string) []string { return []string{"pad-vocab", "--multiple", "8", in, out} },
		"split":     func(in, out string) []string { return []string{"split", "--max-tensors", "1", in, out} },
	} {
		var files [2][]byte
		for i, in := range []string{plain, roomy} {
			out := filepath.Join(t.TempDir(), "x")
			if code, _, err := call(verb(in, out)...); code != 0 {
				t.Fatal(err)
			}
			list, err := filepath.Glob(out + "*")
			if err != nil || len(list) == 0 {
				t.Fatal(list, err)
			}
			if files[i], err = os.ReadFile(list[0]); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: files of %d bytes, and of %d with reserved room, differ", name, len(files[0]), len(files[1]))
		}
	}
}
