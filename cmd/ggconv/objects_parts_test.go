package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/test/buckettest"
	"ggforge/test/hubtest"
)

// TestObjectParts converts a model of the hub to shards in an object store, in parts, with no file on this machine.
func TestObjectParts(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	flags := []string{"--progress", "json", "--outtype", "f32", "--max-tensors", "20", "--model-name", "x"}
	s := buckettest.Serve(t, "", "")
	t.Setenv("HF_ENDPOINT", hubtest.Serve(t, "org/gollama", gollama).URL)
	if code, _, err := call(append(flags, "hf://org/gollama", filepath.Join(dir, "x.gguf"))...); code != 0 {
		t.Fatal(err)
	}
	shards, err := os.ReadDir(dir)
	if err != nil || len(shards) < 2 {
		t.Fatal(shards, err)
	}
	t.Setenv("TMPDIR", temp)
	flags = append(flags, "hf://org/gollama", "s3://out/m/x.gguf")
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, err := call(append(args, flags...)...)
		if code != want {
			t.Fatalf("%q: exit code %d, want %d: %s %v", args, code, want, out, err)
		}
		return fmt.Sprint(out, err)
	}
	t.Setenv("SLURM_ARRAY_TASK_ID", "2")
	run(0, "--part", "auto/3")
	if out := run(2, "--part", "1/3", "--verify"); !strings.Contains(out, "--verify") {
		t.Error(out)
	}
	if out := run(5, "--part", "1/3", "--bigendian"); !strings.Contains(out, "different run") {
		t.Error(out)
	}
	run(0, "--part", "1/3")
	if out := run(7, "--finish"); !strings.Contains(out, "run them again: 3") {
		t.Error(out)
	}
	run(2, "--finish", "--verify")
	run(0, "--part", "3/3")
	if out := run(0, "--finish"); !strings.Contains(out, `"event":"done","files":["s3://out/m/x-00001-of-`) {
		t.Error(out)
	}
	run(0, "--finish")
	run(0, "--part", "2/3")
	run(2, "--finish", "--bigendian")
	for _, e := range shards {
		want, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || !bytes.Equal(s.Get("out/m/"+e.Name()), want) {
			t.Errorf("%s is not the file that one process writes: %v", e.Name(), err)
		}
	}
	if names := s.Names(); len(names) != len(shards) || s.Uploads() > 0 {
		t.Errorf("left: %q, %d uploads", names, s.Uploads())
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}
