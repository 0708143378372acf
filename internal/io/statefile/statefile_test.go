package statefile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
)

var testKind = Kind{Name: "of a test", Version: 2, Max: 1 << 20}

// TestStateFile writes and reads a file, and refuses files that are not state files, damaged, of another kind or of
// another user.
func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state")
	if _, _, err := testKind.Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	for _, body := range []string{"", "one", "a longer one"} { // each in place of the other
		if err := os.WriteFile(path+".new", []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := testKind.Write(path, "model x", []byte(body)); err != nil {
			t.Fatal(err)
		}
		of, got, err := testKind.Read(path)
		if err != nil || of != "model x" || string(got) != body {
			t.Errorf("%q of %q, %v", got, of, err)
		}
	}
	if _, err := testKind.ReadOf(path, "model y"); !errors.Is(err, ErrOther) || !errors.Is(err, fault.Refused) {
		t.Errorf("of another: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, bad := range [][]byte{whole[:i], append(bytes.Clone(whole[:i]), whole[i]^1)} {
			if len(bad) == i+1 {
				bad = append(bad, whole[i+1:]...)
			}
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := testKind.Read(path); !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Refused) {
				t.Fatalf("%d: %v", i, err)
			}
		}
	}
	refused := func(what string, kind error, text string) {
		t.Helper()
		if _, _, err := testKind.Read(path); !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	write := func(data []byte) {
		t.Helper()
		os.Remove(path)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(append(bytes.Clone(whole), 0))
	refused("bytes after the end", ErrDamaged, "has ")
	old := testKind
	old.Version = 1
	os.Remove(path)
	if err := old.Write(path, "x", nil); err != nil {
		t.Fatal(err)
	}
	refused("another version", ErrOther, "made by another version")
	write([]byte("{}"))
	refused("another file", fault.Broken, "begins with")
	write(whole)
	if err := os.Truncate(path, 1<<40); err == nil {
		refused("a sparse one", ErrDamaged, "at most")
	}
	os.Remove(path)
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	refused("a folder", fault.Broken, "not a regular file")
	os.Remove(path)
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Symlink(other, path) == nil {
		if _, err := os.Lstat(path); err == nil {
			refused("a link", fault.Broken, "not a regular file")
		}
	}
	if err := testKind.Write(path, "", make([]byte, testKind.Max+1)); err == nil {
		t.Error("wrote more than can be read")
	}
	write(whole)
	if os.Geteuid() == 0 && os.Chown(path, 4321, 4321) == nil {
		refused("another user's", fault.Usage, "another user")
		if err := os.Chown(dir, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		if _, _, err := testKind.Read(path); err != nil { // as on a file system where all files have one owner
			t.Errorf("of the folder's owner: %v", err)
		}
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		refused("in a folder that all can write to", fault.Usage, "another user")
	}
}

// FuzzParse checks that accepted bytes are those that would have been written.
func FuzzParse(f *testing.F) {
	for _, body := range []string{"", "body"} {
		var b bytes.Buffer
		if _, err := testKind.File("model", int64(len(body)), strings.NewReader(body)).WriteTo(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte(testKind.Magic() + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		of, body, err := testKind.Parse("x", data)
		if err != nil {
			if !fault.Has(err) {
				t.Errorf("%v has no kind", err)
			}
			return
		}
		var b bytes.Buffer
		if _, err := testKind.File(of, int64(len(body)), bytes.NewReader(body)).WriteTo(&b); err != nil ||
			!bytes.Equal(b.Bytes(), data) {
			t.Errorf("%q of %q is written otherwise: %v", body, of, err)
		}
	})
}

// FuzzUnseal checks that accepted bytes are those that would have been written.
func FuzzUnseal(f *testing.F) {
	var b bytes.Buffer
	if _, err := Seal(strings.NewReader("body"), 4).WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := Unseal("x", data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%v", err)
			}
			return
		}
		var b bytes.Buffer
		s := Seal(bytes.NewReader(body), int64(len(body)))
		if n, err := s.WriteTo(&b); err != nil || n != s.Size || !bytes.Equal(b.Bytes(), data) {
			t.Errorf("%q is written otherwise: %v", body, err)
		}
	})
}
