package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/internal/kernel/cpu"
)

// files returns the contents of the files in a directory, by name.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

// TestParts makes several outputs of a checkpoint in parts, as in an array job of a scheduler.
func TestParts(t *testing.T) {
	if !cpu.HasVectors {
		t.Skip("takes long without vector kernels, which change no byte")
	}
	want := t.TempDir()
	args := func(out string, more ...string) []string {
		return append(append([]string{"--progress", "none", "--out-dir", out, "--name-template", "{FTYPE}.gguf"},
			more...), "../../test/testdata/gollama", "Q4_0", "Q5_K_S", "F16")
	}
	run := func(code int, text string, args []string) {
		t.Helper()
		got, out, err := call(args...)
		if err != nil {
			out += err.Error()
		}
		if got != code || !strings.Contains(out, text) {
			t.Fatalf("%q: exit code %d, %s; want %d, %q", args, got, out, code, text)
		}
	}
	run(0, "", args(want, "--verify"))
	out := filepath.Join(t.TempDir(), "out")
	t.Setenv("JOB_COMPLETION_INDEX", "2")
	run(7, "no part has begun", args(out, "--finish"))
	run(0, "part 3 of 3 is done", args(out, "--part", "auto/3"))
	run(0, "part 1 of 3 is done", args(out, "--part", "1/3", "--threads", "1"))
	run(7, "1 of 3 parts are incomplete, run them again: 2", args(out, "--finish"))
	run(5, "parts was 3, and is 4", args(out, "--part", "2/4"))
	run(5, "--pure is true, and was not set", args(out, "--part", "2/3", "--pure"))
	run(2, "an unfinished run in parts exists", args(out))
	run(2, "want one of them", args(out, "--part", "2/3", "--finish"))
	run(2, "--part-files goes with", args(out, "--part-files", out))
	run(2, "runs the model", args(out, "--part", "2/3", "--calibrate", "main.go"))
	run(0, "part 2 of 3 is done", args(out, "--part", "2/3"))
	run(0, "", args(out, "--finish"))
	if !maps.Equal(files(t, out), files(t, want)) {
		t.Errorf("the files differ from those of one run: %v", files(t, out))
	}
	run(2, "exists already", args(out, "--part", "1/2")) // and leaves no files
	if !maps.Equal(files(t, out), files(t, want)) {
		t.Errorf("a part over outputs that exist leaves %v", slices.Sorted(maps.Keys(files(t, out))))
	}
	apart, parts := t.TempDir(), t.TempDir()
	run(0, "part 2 of 2", args(apart, "--part", "2/2", "--part-files", parts))
	run(0, "part 1 of 2", args(apart, "--part", "1/2", "--part-files", parts))
	run(0, "", args(apart, "--finish", "--part-files", parts, "--verify"))
	if !maps.Equal(files(t, apart), files(t, want)) || len(files(t, parts)) > 0 {
		t.Error("the files differ from those of one run")
	}
}
