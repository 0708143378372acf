package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ggforge/internal/buckettest"
)

// TestObjects quantizes a checkpoint of objects to objects, two types at once.
func TestObjects(t *testing.T) {
	const checkpoint = "../../testdata/gollama"
	dir, work := t.TempDir(), t.TempDir()
	s := buckettest.Serve(t, checkpoint, "models/gollama/")
	types := []string{"Q8_0", "Q4_0"}
	if code, _, err := call(append([]string{"--progress", "none", "--name-template", "x-{ftype}.gguf", "--out-dir", dir, checkpoint}, types...)...); code != 0 {
		t.Fatal(err)
	}
	if code, out, err := call(append([]string{"--progress", "none", "--name-template", "x-{ftype}.gguf", "--work-dir", work, "--out-dir", "s3://out/quants", "s3://models/gollama"}, types...)...); code != 0 {
		t.Fatalf("%s %v", out, err)
	}
	for _, name := range []string{"x-q8_0.gguf", "x-q4_0.gguf"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(s.Get("out/quants/"+name), want) {
			t.Errorf("%s is not the file that the directory gives: %v, objects %v", name, err, s.Names())
		}
	}
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left in the work folder: %v %v", left, err)
	}
	if code, _, _ := call("s3://models/gollama", "s3://out/quants/", "Q8_0"); code != 2 {
		t.Errorf("a folder as output: exit code %d", code)
	}
}
