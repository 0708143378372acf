package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"ggforge/internal/io/disk"
	"ggforge/internal/kernel/cpu"
	"ggforge/publish/release"
	"ggforge/publish/sign/signtest"
	"ggforge/test/hftest"
)

// checkpointAndText writes a checkpoint that ggeval can run, and a text.
func checkpointAndText(t *testing.T) (source, text string) {
	t.Helper()
	spec := hftest.Lookup("llama")
	source, err := spec.Write(t.TempDir(), spec.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	text = filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("The cat sat on the mat, and the dog ran. ", 4)),
		0o666); err != nil {
		t.Fatal(err)
	}
	return source, text
}

// published returns all files in the folder of a release, also temporary ones, except its state.
func published(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			if err == nil && e.Name() == ".ggtool-release" {
				return fs.SkipDir
			}
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

// whole checks that SHA256SUMS, manifest.json and the signature, if they exist, match the files that they list.
func whole(files map[string]string) error {
	sums, ok1 := files["SHA256SUMS"]
	manifest, ok2 := files["manifest.json"]
	if !ok1 || !ok2 {
		return nil
	}
	var m release.Manifest
	if err := json.Unmarshal([]byte(manifest), &m); err != nil {
		return err
	}
	want := ""
	for _, f := range m.Files {
		want += f.SHA256 + "  " + f.Name + "\n"
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(files[f.Name]))); got != f.SHA256 {
			return fmt.Errorf("%s: SHA-256 is %s, want %s", f.Name, got, f.SHA256)
		}
	}
	if sums != want {
		return fmt.Errorf("SHA256SUMS is %q, want %q", sums, want)
	}
	var b struct{ DSSEEnvelope struct{ Payload []byte } }
	var s struct {
		Predicate struct {
			Resources []struct{ Name, Digest string }
		}
	}
	signature, ok := files["model.sig"]
	if !ok {
		return nil
	}
	if err := json.Unmarshal([]byte(signature), &b); err != nil {
		return err
	}
	if err := json.Unmarshal(b.DSSEEnvelope.Payload, &s); err != nil {
		return err
	}
	for _, r := range s.Predicate.Resources {
		if got := fmt.Sprintf("%x", sha256.Sum256([]byte(files[r.Name]))); got != r.Digest {
			return fmt.Errorf("%s: SHA-256 is %s, and was signed as %s", r.Name, got, r.Digest)
		}
	}
	return nil
}

var errKilled = errors.New("the process is dead")

// names reports whether a call adds, removes or renames a file. Other calls need no test of their own: a process killed
// in a write leaves an incomplete file, as one killed before the write.
func names(c disk.Call) bool {
	return slices.Contains([]string{disk.OpMkdir, disk.OpLink, disk.OpRename, disk.OpRemove}, c.Op) ||
		c.Op == disk.OpOpen && c.Flag&os.O_CREATE != 0
}

// unsynced runs a command without waiting for the disk: only the process is killed, not the machine.
func unsynced(args []string) (code int, out string) {
	remove := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
		if c.Op == disk.OpSync {
			return 0, nil
		}
		return do(c.N)
	})
	defer remove()
	code, out, err := call(args...)
	if err != nil {
		out += err.Error()
	}
	return code, out
}

// killed runs a command whose process ends after at calls for which names is true, and reports whether there were
// more.
func killed(t *testing.T, at int, args []string) bool {
	t.Helper()
	var calls atomic.Int64
	remove := disk.Install(func(c disk.Call, do func(int) (int, error)) (int, error) {
		n := calls.Load()
		if names(c) && n <= int64(at) {
			n = calls.Add(1)
		}
		switch {
		case n <= int64(at) && c.Op == disk.OpSync:
			return 0, nil
		case n <= int64(at):
			return do(c.N)
		case c.Op == disk.OpClose:
			do(0)
		}
		return 0, errKilled
	})
	defer remove()
	code, out, err := call(args...)
	if calls.Load() > int64(at) && code == 0 {
		t.Errorf("call %d: exit code 0 after the end: %s", at, out)
	}
	if calls.Load() <= int64(at) && code != 0 {
		t.Errorf("without a fault: exit code %d: %s%v", code, out, err)
	}
	return calls.Load() > int64(at)
}

// TestReleaseKilled kills a release at each call that makes, renames or removes a file: the same command, without
// --force, then makes the outputs of an undisturbed run, and meanwhile no folder has wrong sums or a wrong manifest.
func TestReleaseKilled(t *testing.T) {
	source, text := checkpointAndText(t)
	key, _ := signtest.Keys(t)
	dir := t.TempDir()
	flags := func(more ...string) []string {
		return append([]string{"release", "--source", source, "--output", filepath.Join(dir, "out"), "--chunks", "1",
			"--ctx-size", "16", "--threads", "1", "--progress", "none", "--quiet", "--provenance", "--key", key}, more...)
	}
	first := flags("--type", "Q8_0", "--type", "F16,name=quality", "--calibrate", text, "--evaluate", text,
		"--evaluate-chunks", "1", "--pages", "--layout", "folders")
	second := flags("--type", "Q8_0,name=quality", "--type", "Q4_0", "--type", "F16", "--calibrate", text,
		"--split-max-size", "100K")
	out, kept := filepath.Join(dir, "out"), filepath.Join(dir, "kept")
	for _, c := range []struct {
		name string
		args []string
	}{{"new", first}, {"changed plan", second}} {
		t.Run(c.name, func(t *testing.T) {
			reset := func() {
				if err := os.RemoveAll(out); err != nil {
					t.Fatal(err)
				}
				if c.name != "new" {
					if err := os.CopyFS(out, os.DirFS(kept)); err != nil {
						t.Fatal(err)
					}
				}
			}
			reset()
			if code, text, err := call(c.args...); code != 0 {
				t.Fatalf("exit code %d: %s%v", code, text, err)
			}
			want := published(t, out)
			if err := whole(want); err != nil || want["manifest.json"] == "" {
				t.Fatal(err)
			}
			step := 1
			if !cpu.HasVectors || testing.Short() {
				step = 7
			}
			at, points := 0, 0
			for ; ; at += step {
				reset()
				if !killed(t, at, c.args) {
					break
				}
				points++
				if err := whole(published(t, out)); err != nil {
					t.Errorf("killed at call %d: %v", at, err)
				}
				if code, text := unsynced(c.args); code != 0 {
					t.Errorf("killed at call %d, the next run: exit code %d: %s", at, code, text)
					continue
				}
				if got := published(t, out); !maps.Equal(got, want) {
					t.Errorf("killed at call %d, the next run made %q, want %q", at, different(got, want),
						slices.Sorted(maps.Keys(want)))
				}
			}
			t.Logf("killed at %d calls of %d", points, at)
			reset()
			if code, text, err := call(c.args...); code != 0 {
				t.Fatalf("exit code %d: %s%v", code, text, err)
			}
			if err := os.CopyFS(kept, os.DirFS(out)); err != nil && c.name == "new" {
				t.Fatal(err)
			}
		})
	}
}

// different lists the names of files that differ or that only one of two folders has.
func different(a, b map[string]string) (names []string) {
	for name, data := range a {
		if other, ok := b[name]; !ok {
			names = append(names, name+" (not wanted)")
		} else if other != data {
			names = append(names, fmt.Sprintf("%s (differs: %d and %d bytes)", name, len(data), len(other)))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name+" (missing)")
		}
	}
	slices.Sort(names)
	return names
}
