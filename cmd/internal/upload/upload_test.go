package upload

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMake checks that others cannot write to the folder.
func TestMake(t *testing.T) {
	p := &Destination{Dir: filepath.Join(t.TempDir(), "work", "x")}
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	if err := p.Make(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if os.Getuid() < 0 {
		return // the system has no such permissions
	}
	if err := os.Chmod(p.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := p.Make(); err == nil {
		t.Error("a folder that all can write to is taken")
	}
	if err := os.Remove(p.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), p.Dir); err != nil {
		t.Fatal(err)
	}
	if err := p.Make(); err == nil {
		t.Error("a link is followed")
	}
}

// FuzzRecord checks that a parsed record names only files of its folder.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"files":[{"name":"a.gguf","size":3,"modified":"2006-01-02T15:04:05Z"}],"report":{}}`))
	f.Add([]byte(`{"files":[{"name":"../../../internal/a"}]}`))
	f.Add([]byte(`{"files":[{"name":"C:\\a"},{"name":""}]`))
	f.Add([]byte(`{"files":[{"name":"."}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, ok := parseRecord(data)
		for _, m := range r.Files {
			if ok && filepath.Dir(filepath.Join("d", m.Name)) != "d" {
				t.Errorf("%q", m.Name)
			}
		}
	})
}
