//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	tool "ggforge/cmd/internal/cli"
	"ggforge/internal/io/statefile"
	"ggforge/writer"
)

// TestHostilePartial converts a checkpoint that holds, under the temporary name of the default output, a link to a
// file of the user.
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
		"symbolic link":       func(path string) error { return os.Symlink(victim, path) },
		"file with 2 names":   func(path string) error { return os.Link(victim, path) },
		"named pipe":          func(path string) error { return unix.Mkfifo(path, 0o666) },
		"directory":           func(path string) error { return os.Mkdir(path, 0o777) },
		"link to config.json": func(path string) error { return os.Symlink(filepath.Join(dir, "config.json"), path) },
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

// TestHostileJournal converts a checkpoint that came with a rename journal: the run ignores or refuses it, and renames
// no file in the directory. If the journal belongs to a different user, as is possible in /tmp, the file that it names
// is not removed either.
func TestHostileJournal(t *testing.T) {
	const token = "0123456789abcdef"
	inode := func(path string) string {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(st.Sys().(*syscall.Stat_t).Ino)
	}
	for name, c := range map[string]struct {
		files func(dir string) string // an entry of the journal
		user  int
	}{
		"aside": {func(string) string { return `{"name":".git","size":1,"id":"1","replaces":"1"}` }, os.Geteuid()},
		"placed": {func(dir string) string {
			return `{"name":"config.json","size":1,"id":"` + inode(dir+"/config.json") + `"}`
		}, 65534},
	} {
		t.Run(name, func(t *testing.T) {
			if c.user != os.Geteuid() && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			dir := filepath.Join(t.TempDir(), "model")
			if err := os.CopyFS(dir, os.DirFS(gollama)); err != nil {
				t.Fatal(err)
			}
			aside := filepath.Join(dir, "ggforge-"+token+"-1.old", "hooks")
			if err := os.MkdirAll(aside, 0o777); err != nil {
				t.Fatal(err)
			}
			journal := filepath.Join(dir, "ggforge-"+token+".commit")
			for _, format := range []string{"1", "2", "3"} {
				files := `"files":[{"name":"x.gguf","size":1,"id":"1"},` + c.files(dir) + `]}`
				err := os.WriteFile(journal, []byte(`{"format":"ggforge commit `+format+`",`+files), 0o666)
				if format == "3" {
					err = (statefile.Kind{Name: "of a change of names", Version: 3, Max: 1 << 20}).Write(journal, "",
						[]byte("{"+files))
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Chown(journal, c.user, -1); err != nil {
					t.Fatal(err)
				}
				code, _, err := call("--progress", "none", "--force", dir, "--outfile", filepath.Join(dir, "x.gguf"))
				want := map[string]int{"1": 0, "2": 5, "3": 2}[format]
				if format == "2" && c.user != os.Geteuid() {
					want = 0
				}
				if code != want || want != 0 && !strings.Contains(err.Error(), journal) {
					t.Errorf("format %s: exit code %d, %v; want %d", format, code, err, want)
				}
				for _, path := range []string{aside, journal, filepath.Join(dir, "config.json")} {
					if _, err := os.Lstat(path); err != nil {
						t.Error(err)
					}
				}
				if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
					t.Error("the directory was renamed")
				}
			}
		})
	}
}
