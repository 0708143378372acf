//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	tool "ggforge/internal/cli"
	"ggforge/writer"
)

// TestHostilePartial converts a checkpoint that holds, under the temporary name of
// the default output, what leads to a file of the user.
func TestHostilePartial(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
		t.Fatal(err)
	}
	_, plan, err := call("--dry-run", dir)
	if err != nil {
		t.Fatal(err)
	}
	out := plan[strings.LastIndex(strings.TrimSpace(plan), "\n")+1 : len(plan)-1]
	if filepath.Dir(out) != dir {
		t.Fatalf("the default output is %q", out)
	}
	victim := filepath.Join(t.TempDir(), "id_ed25519")
	for name, plant := range map[string]func(path string) error{
		"symbolic link":      func(path string) error { return os.Symlink(victim, path) },
		"file with 2 names":  func(path string) error { return os.Link(victim, path) },
		"named pipe":         func(path string) error { return unix.Mkfifo(path, 0o666) },
		"directory":          func(path string) error { return os.Mkdir(path, 0o777) },
		"a symbolic link to": func(path string) error { return os.Symlink(filepath.Join(dir, "config.json"), path) },
	} {
		if err := os.WriteFile(victim, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := plant(out + writer.Suffix); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{dir}, {"--force", dir}} {
			code, _, err := call(append([]string{"--progress", "none"}, args...)...)
			if code != 2 || !strings.Contains(err.Error(), out+writer.Suffix) {
				t.Errorf("%s: exit code %d, %v", name, code, err)
			}
		}
		if b, err := os.ReadFile(victim); string(b) != "secret" {
			t.Errorf("%s: the file outside holds %q, %v", name, b, err)
		}
		if st, err := os.Stat(filepath.Join(dir, "config.json")); err != nil || st.Size() == 0 {
			t.Errorf("%s: config.json: %v", name, err)
		}
		if err := os.Remove(out + writer.Suffix); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInterruptedPlan ends the context before anything is written.
func TestInterruptedPlan(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := tool.Run(ctx, command(), []string{"ggconv", "--dry-run", gollama}); tool.Code(err) != 130 {
		t.Errorf("exit code %d, %v", tool.Code(err), err)
	}
}
