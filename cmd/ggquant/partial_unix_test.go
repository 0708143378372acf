//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	tool "ggforge/cmd/internal/cli"
	"ggforge/writer"
)

// TestHostilePartial writes several outputs while the temporary name of one is a link to a file of the user: none is
// written.
func TestHostilePartial(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	victim := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, link := range map[string]func(old, new string) error{"symbolic link": os.Symlink, "2 names": os.Link} {
		dir := t.TempDir()
		partial := filepath.Join(dir, "Q8_0.gguf"+writer.Suffix)
		if err := link(victim, partial); err != nil {
			t.Fatal(err)
		}
		code, _, err := call("--progress", "none", "--force", "--out-dir", dir, "--name-template", "{FTYPE}.gguf", in,
			"Q4_K_M", "Q8_0")
		if code != 2 || !strings.Contains(err.Error(), partial) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: exit code %d, %v", what, code, err)
		}
		if b, err := os.ReadFile(victim); string(b) != "precious" {
			t.Errorf("%s: the file outside holds %q, %v", what, b, err)
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
			t.Errorf("%s: leftover: %v, %v", what, list, err)
		}
	}
}

// TestInterruptedPlan ends the context before anything is written.
func TestInterruptedPlan(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, args := range [][]string{{"--dry-run", "../../test/testdata/gollama", "x.gguf", "Q8_0"},
		{in, filepath.Join(t.TempDir(), "x.gguf"), "Q8_0"}} {
		if err := tool.Run(ctx, command(), append([]string{"ggquant"}, args...)); tool.Code(err) != 130 {
			t.Errorf("%q: exit code %d, %v", args, tool.Code(err), err)
		}
	}
}

// TestRulesAreAFile names a pipe and a device as the file of tensor rules: both are refused without being read.
func TestRulesAreAFile(t *testing.T) {
	in := ggufModel(t, filepath.Join(t.TempDir(), "in.gguf"), 256, nil)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero"} {
		code, _, err := call("--dry-run", "--tensor-type-file", path, in, "Q8_0")
		if code != 1 || !strings.Contains(err.Error(), path+": is not a regular file") {
			t.Errorf("%s: exit code %d, %v", path, code, err)
		}
	}
}
