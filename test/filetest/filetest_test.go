package filetest_test

import (
	"os"
	"path/filepath"
	"testing"

	"ggforge/test/filetest"
)

// TestRefill fills a file with fewer bytes, and finds that another file has its name.
func TestRefill(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, text := range []string{"first", "two", ""} {
		filetest.Refill(t, file, []byte(text))
		at := make([]byte, len(text))
		if n, err := file.Read(at); len(text) > 0 && (err != nil || string(at[:n]) != text) {
			t.Errorf("read %q, %v, want %q", at[:n], err, text)
		}
		if got := filetest.Read(t, file); string(got) != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	other := &failed{TB: t}
	if err := os.Rename(file.Name(), file.Name()+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file.Name(), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		filetest.Refill(other, file, nil)
	}()
	if !other.failed {
		t.Error("no error for another file of that name")
	}
}

// failed is a test that notes a failure, and goes no further.
type failed struct {
	testing.TB
	failed bool
}

func (f *failed) Helper() {}

func (f *failed) Fatal(...any) { f.Fatalf("") }

func (f *failed) Fatalf(string, ...any) {
	f.failed = true
	panic("failed")
}
