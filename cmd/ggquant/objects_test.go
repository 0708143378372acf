package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ggforge/internal/buckettest"
	"ggforge/internal/hubtest"
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

// TestRemoteFiles quantizes GGUF files of servers: one file, and the shards of a model, which are read by ranges.
func TestRemoteFiles(t *testing.T) {
	folder := t.TempDir()
	in, shards := filepath.Join(folder, "in.gguf"), filepath.Join(folder, "s")
	for _, args := range [][]string{{"../../testdata/gollama", in, "F16"}, {"--split-max-tensors", "9", in, shards, "F16"}, {in, filepath.Join(folder, "want"), "Q4_0"}} {
		if code, _, err := call(append([]string{"--progress", "none"}, args...)...); code != 0 {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(filepath.Join(folder, "want"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := filepath.Glob(shards + "-00001-of-*")
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	buckettest.Serve(t, folder, "models/")
	hub := hubtest.Serve(t, "org/name", folder)
	t.Setenv("HF_ENDPOINT", hub.URL)
	cache := t.TempDir()
	for i, args := range [][]string{
		{"s3://models/in.gguf"},
		{"s3://models/" + filepath.Base(first[0])},
		{"hf://org/name/in.gguf"},
		{"--cache", cache, "hf://org/name/" + filepath.Base(first[0])},
		{"--cache", cache, "--remote", "org/name/" + filepath.Base(first[0])},
		{hub.Host + "/in.gguf"},
	} {
		out := filepath.Join(t.TempDir(), "o")
		if code, text, err := call(append(append([]string{"--progress", "none"}, args...), out, "Q4_0")...); code != 0 {
			t.Errorf("%q: %s %v", args, text, err)
			continue
		}
		if got, err := os.ReadFile(out); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: %q gives another file than the one here: %v", i, args, err)
		}
	}
	for _, args := range [][]string{{"--pre", "x", "s3://models/in.gguf", "o", "Q4_0"}, {"--cache", cache, in, "o", "Q4_0"}} {
		if code, _, err := call(args...); code != 2 {
			t.Errorf("%q: exit code %d, %v", args, code, err)
		}
	}
	if code, _, err := call("s3://models/want.gguf", filepath.Join(cache, "o"), "Q4_0"); code != 1 {
		t.Errorf("an object that is not there: exit code %d, %v", code, err)
	}
}
