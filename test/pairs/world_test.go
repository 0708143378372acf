package pairs

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// bin is the folder of the commands.
var bin string

// build makes the commands, as this test was built.
func build(t *testing.T) {
	t.Helper()
	bin = t.TempDir()
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "ggforge/cmd/...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// command returns a command that runs in a folder: its name, and its arguments.
func command(dir string, argv []string) *exec.Cmd {
	name := filepath.Join(bin, argv[0])
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	cmd := exec.Command(name, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // pairs run side by side
	return cmd
}

// run runs a command in a folder and returns its exit code and what it printed.
func run(dir string, argv []string) (code int, stdout, stderr string, err error) {
	cmd := command(dir, argv)
	var a, b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &a, &b
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = nil
	}
	if err == nil {
		code = cmd.ProcessState.ExitCode()
	}
	return code, a.String(), b.String(), err
}

// killed runs a command and kills it once when(dir) returns true. It reports whether that was before the command's end,
// and the exit code if not.
func killed(dir string, argv []string, when func(dir string) bool) (dead bool, code int, err error) {
	cmd := command(dir, argv)
	if err := cmd.Start(); err != nil {
		return false, 0, err
	}
	gone := make(chan struct{})
	go func() { cmd.Wait(); close(gone) }()
	for {
		select {
		case <-gone:
			return false, cmd.ProcessState.ExitCode(), nil
		default:
		}
		if when(dir) {
			cmd.Process.Kill()
			<-gone
			return !cmd.ProcessState.Exited(), cmd.ProcessState.ExitCode(), nil
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// buffers are as large as the largest files here: pairs read and write thousands of them.
var buffers = sync.Pool{New: func() any { b := make([]byte, 8<<20); return &b }}

// content calls f with what is in a file. The bytes are f's until it returns.
func content(path string, f func([]byte) error) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	n, err := io.ReadFull(in, *buf)
	if err == nil {
		return fmt.Errorf("%s: as large as the buffers", path)
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return f((*buf)[:n])
}

// copyTree copies a folder with modes and times.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(name, info.Mode().Perm())
		case !d.Type().IsRegular():
			return fmt.Errorf("%s: %v", path, d.Type())
		}
		if err := content(path, func(b []byte) error { return os.WriteFile(name, b, info.Mode().Perm()) }); err != nil {
			return err
		}
		return os.Chtimes(name, time.Time{}, info.ModTime())
	})
}

// snapshot is the content of a folder: a hash or the like for each path, with slashes.
type snapshot map[string]string

var seed = maphash.MakeSeed()

func snap(dir string) (snapshot, error) {
	s := snapshot{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !d.Type().IsRegular() {
			s[name] = d.Type().String()
			return nil
		}
		return content(path, func(b []byte) error {
			s[name] = fmt.Sprintf("%d bytes, %x", len(b), maphash.Bytes(seed, b))
			return nil
		})
	})
	return s, err
}

// differences lists paths that are new, gone or changed, each after one of these words.
func differences(before, after snapshot) (list []string) {
	for name, was := range before {
		if is, ok := after[name]; !ok {
			list = append(list, "gone "+name)
		} else if is != was {
			list = append(list, "changed "+name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			list = append(list, "new "+name)
		}
	}
	slices.Sort(list)
	return list
}

// covered reports whether a path is one of those that patterns name: with the * and ? of path.Match; one that ends in
// a slash is for a folder and all in it.
func covered(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if folder, ok := strings.CutSuffix(p, "/"); ok {
			return name == folder || strings.HasPrefix(name, p)
		}
		ok, err := filepath.Match(p, name)
		return ok && err == nil
	})
}
