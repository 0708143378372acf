package writer

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
)

// TestOverwrite replaces the beginning of a file, and recovers from a crash at any point of it.
func TestOverwrite(t *testing.T) {
	header := func(word string) []byte {
		return gguf.AppendHeader(nil, gguf.Metadata{{Key: "k", Value: gguf.String(strings.Repeat(word, 500))}},
			[]gguf.Tensor{{Name: "t", Type: gguf.TypeI8, NE: []int64{8}}}, gguf.DefaultAlignment)
	}
	old, replacement := header("old."), header("new!")
	rest := []byte("the rest")
	path := filepath.Join(t.TempDir(), "f")
	name := path + overwriteSuffix
	write := func(path string, parts ...[]byte) {
		t.Helper()
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, want ...[]byte) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, bytes.Join(want, nil)) {
			t.Errorf("%s: %v, %d bytes: %.20q", what, err, len(got), got)
		}
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s: the record is left", what)
		}
	}
	write(path, old, rest)
	if err := Overwrite(t.Context(), path, old, replacement); err != nil {
		t.Fatal(err)
	}
	check("whole", replacement, rest)
	if err := Overwrite(t.Context(), path, old, replacement); !errors.Is(err, fault.Broken) {
		t.Errorf("another beginning: %v", err)
	}
	check("another beginning", replacement, rest)

	whole := recordOf(t, changed(int64(len(old)+len(rest)), old, replacement))
	for cut := 0; cut < len(whole); cut += 97 { // while the record was written
		write(path, old, rest)
		write(name, whole[:cut])
		if done, err := Recover(path); done || err != nil {
			t.Fatalf("%d bytes of a record: %v, %v", cut, done, err)
		}
		check("a part of a record", old, rest)
	}
	for cut := 0; cut <= len(old); cut += 97 { // while the file was
		write(path, replacement[:cut], old[cut:], rest)
		write(name, whole)
		if err := Unrecovered(path); !errors.Is(err, fault.Broken) {
			t.Errorf("%d bytes changed: %v", cut, err)
		}
		if done, err := Recover(path); !done || err != nil {
			t.Fatalf("%d bytes changed: %v, %v", cut, done, err)
		}
		check("a part of the file", replacement, rest)
	}
	if done, err := Recover(path); done || err != nil || Unrecovered(path) != nil {
		t.Errorf("nothing to do: %v, %v", done, err)
	}

	for what, file := range map[string][]byte{"another file": bytes.Repeat([]byte("x"), len(old)+len(rest)),
		"another size": old} {
		write(path, file)
		write(name, whole)
		if _, err := Recover(path); !errors.Is(err, fault.Refused) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", what, err)
		}
		os.Remove(name)
		check(what, file)
	}
}

// TestChanged checks that a change consists of the sectors that differ, and that writing them replaces one header by
// the other.
func TestChanged(t *testing.T) {
	old := bytes.Repeat([]byte("0123456789"), 300)
	for at := range old {
		for _, n := range []int{0, 1, 600} {
			end := min(at+n, len(old))
			replacement := bytes.Clone(old)
			for i := at; i < end; i++ {
				replacement[i] ^= 0xff
			}
			c := changed(5000, old, replacement)
			got, before := bytes.Clone(old), make([]byte, c.n)
			if c.n > 0 {
				c.after.ReadAt(got[c.off:][:c.n], 0)
				c.before.ReadAt(before, 0)
			}
			most := 0
			if n > 0 {
				most = (end+sector-1)/sector*sector - at/sector*sector
			}
			if !bytes.Equal(got, replacement) || c.off%sector != 0 || c.n > int64(most) ||
				!bytes.Equal(old[c.off:c.off+c.n], before) {
				t.Fatalf("%d bytes from %d: %d from %d", n, at, c.n, c.off)
			}
		}
	}
}

// TestOverwriteLinks checks that other names of a file are not changed.
func TestOverwriteLinks(t *testing.T) {
	dir := t.TempDir()
	path, hard, soft := filepath.Join(dir, "f"), filepath.Join(dir, "hard"), filepath.Join(dir, "soft")
	if err := os.WriteFile(path, []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(path, soft) != nil || os.Link(path, hard) != nil {
		t.Skip("no links here")
	}
	if _, err := os.Lstat(soft); err != nil { // Wine makes none and reports success
		t.Skip(err)
	}
	for _, p := range []string{soft, hard} {
		if err := Overwrite(t.Context(), p, []byte("ab"), []byte("xy")); !errors.Is(err, fault.Usage) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Symlink(path, path+"2"+overwriteSuffix); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"2", []byte("abc"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Overwrite(t.Context(), path+"2", []byte("ab"), []byte("xy")); !errors.Is(err, fault.Usage) {
		t.Errorf("a link in the place of the record: %v", err)
	}
}
