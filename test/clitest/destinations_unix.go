//go:build unix

package clitest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Output is a file that a command writes.
type Output struct {
	// Name is the name of the file.
	Name string
	// Run runs the command so that it writes the file at path, with --force, and returns its exit code and what it
	// printed.
	Run func(path string) (code int, text string)
	// Folder: path may be a directory, in which a file of another name is written.
	Folder bool
	// Kept: an existing file is read and never replaced; anything else of that name is refused.
	Kept bool
	// Makes: the directory of path is created if it is missing.
	Makes bool
}

// Destinations checks that outputs replace only regular files, and links to one or to nothing. Anything else is refused
// with exit code 2, and nothing changes.
func Destinations(t *testing.T, outputs map[string]Output) {
	open, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for name, o := range outputs {
		t.Run(name, func(t *testing.T) {
			for kind, d := range map[string]struct {
				make func(path, elsewhere string) error
				text string // of the error
				skip bool
			}{
				"a pipe": {text: "a named pipe", make: func(path, _ string) error {
					return syscall.Mkfifo(path, 0o600)
				}},
				"a directory": {text: "a directory", skip: o.Folder, make: func(path, _ string) error {
					return os.Mkdir(path, 0o777)
				}},
				"a link to a device": {text: "a link to a device", make: func(path, _ string) error {
					return os.Symlink(os.DevNull, path)
				}},
				"a link to a pipe": {text: "a link to a named pipe", make: func(path, elsewhere string) error {
					if err := syscall.Mkfifo(elsewhere, 0o600); err != nil {
						return err
					}
					return os.Symlink(elsewhere, path)
				}},
				"a link to a directory": {text: "a link to a directory", skip: o.Folder,
					make: func(path, elsewhere string) error {
						if err := os.Mkdir(elsewhere, 0o777); err != nil {
							return err
						}
						return os.Symlink(elsewhere, path)
					}},
				"a link to a link to a device": {text: "a link to a device", make: func(path, elsewhere string) error {
					if err := os.Symlink(os.DevNull, elsewhere); err != nil {
						return err
					}
					return os.Symlink(elsewhere, path)
				}},
				"a link to an open file": {text: "a link to a file that a process has open",
					skip: runtime.GOOS != "linux", make: func(path, _ string) error {
						return os.Symlink(fmt.Sprintf("/proc/self/fd/%d", open.Fd()), path)
					}},
			} {
				if d.skip {
					continue
				}
				dir := t.TempDir()
				folder := filepath.Join(dir, "folder")
				path := filepath.Join(folder, o.Name)
				if err := os.Mkdir(folder, 0o777); err != nil {
					t.Fatal(err)
				}
				if err := d.make(path, filepath.Join(dir, "elsewhere")); err != nil {
					t.Fatal(err)
				}
				before := listing(t, dir)
				if code, text := o.Run(path); code == 0 || !strings.Contains(text, path) ||
					!o.Kept && (code != 2 || !strings.Contains(text, d.text)) {
					t.Errorf("%s: exit code %d, %.500s; want 2 and %q", kind, code, text, d.text)
				}
				if after := listing(t, dir); after != before {
					t.Errorf("%s: there is\n%swant\n%s", kind, after, before)
				}
			}
			for _, exists := range []bool{true, false} {
				if o.Kept {
					break
				}
				dir := t.TempDir()
				folder, elsewhere := filepath.Join(dir, "folder"), filepath.Join(dir, "elsewhere")
				path := filepath.Join(folder, o.Name)
				if err := os.Mkdir(folder, 0o777); err != nil {
					t.Fatal(err)
				}
				if exists {
					if err := os.WriteFile(elsewhere, []byte("kept"), 0o666); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink(elsewhere, path); err != nil {
					t.Fatal(err)
				}
				code, text := o.Run(path)
				st, err := os.Lstat(path)
				if code != 0 || err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
					t.Errorf("a link to a file, exists %v: exit code %d, %.500s, %v; want a file in its place",
						exists, code, text, err)
				}
				if data, err := os.ReadFile(elsewhere); exists != (err == nil) || exists && string(data) != "kept" {
					t.Errorf("a link to a file, exists %v: the file has %q, %v", exists, data, err)
				}
			}
			if o.Makes {
				return
			}
			dir := t.TempDir()
			missing := filepath.Join(dir, "none")
			if code, text := o.Run(filepath.Join(missing, o.Name)); code != 2 ||
				!strings.Contains(text, missing+": no such directory") {
				t.Errorf("no directory: exit code %d, %.500s; want 2", code, text)
			}
			if left := listing(t, dir); left != listing(t, t.TempDir()) {
				t.Errorf("no directory: there is\n%s", left)
			}
		})
	}
}

// listing returns the names, modes, sizes and targets of links of all files in a folder.
func listing(t *testing.T, dir string) string {
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		to, _ := os.Readlink(path)
		st, err := e.Info()
		if err != nil {
			return err
		}
		size := int64(0)
		if st.Mode().IsRegular() {
			size = st.Size()
		}
		fmt.Fprintf(&b, "%s %v %d %s\n", name, st.Mode(), size, to)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
