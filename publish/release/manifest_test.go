package release

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/model/digest"
)

// oneFile returns a manifest of the current format with a file of a name, a size and a sum.
func oneFile(name string, size int64, sum string) string {
	data, err := json.Marshal(Manifest{Format: ManifestFormat,
		Files: []File{{File: digest.File{Name: name, Bytes: size, SHA256: sum}}}})
	if err != nil {
		panic(err) // never: strings and numbers
	}
	return string(data)
}

// TestReadManifest checks that ReadManifest accepts a manifest and refuses anything else.
func TestReadManifest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manifest.json")
	sum := strings.Repeat("aB", 32)
	read := func(text string) (*Manifest, error) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return ReadManifest(path)
	}
	m, err := read(oneFile("Q8_0/a.gguf", 3, sum))
	if err != nil || len(m.Files) != 1 || m.Files[0] != (File{File: digest.File{Name: "Q8_0/a.gguf", Bytes: 3,
		SHA256: strings.ToLower(sum)}}) {
		t.Fatalf("%+v, %v", m, err)
	}
	for _, c := range []struct {
		text, want string
		kind       error
	}{
		{"", "manifest.json", fault.Broken},
		{"{", "manifest.json", fault.Broken},
		{"{}", `format is ""`, fault.Unsupported},
		{`{"format": "ggforge release manifest 2", "files": 7}`, "release manifest 2", fault.Unsupported},
		{`{"format": "` + ManifestFormat + `", "files": 7}`, "files", fault.Broken},
		{`{"format": "` + ManifestFormat + `"}`, "no file in it", fault.Broken},
		{oneFile("a", 3, sum) + "x", "manifest.json", fault.Broken},
		{oneFile("", 3, sum), "files[0]: name", fault.Broken},
		{oneFile(".", 3, sum), "files[0]: name", fault.Broken},
		{oneFile("../a", 3, sum), "files[0]: name", fault.Broken},
		{oneFile("/a", 3, sum), "files[0]: name", fault.Broken},
		{oneFile("a//b", 3, sum), "files[0]: name", fault.Broken},
		{oneFile("a\x1b[2J", 3, sum), "files[0]: name", fault.Broken},
		{oneFile("a", -1, sum), "bytes is -1", fault.Broken},
		{oneFile("a", 3, sum[2:]), "want 64 hexadecimal digits", fault.Broken},
		{oneFile("a", 3, "x"+sum[1:]), "want 64 hexadecimal digits", fault.Broken},
		{strings.Replace(oneFile("a", 3, sum), "[{", `[{"name": "a", "sha256": "`+sum+`"}, {`, 1),
			`files[1]: "a" is there twice`, fault.Broken},
	} {
		if _, err := read(c.text); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q of kind %v", c.text, err, c.want, c.kind)
		}
	}
	if _, err := ReadManifest(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a folder: %v", err)
	}
	if err := os.Truncate(path, maxManifest+1); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifest(path); !errors.Is(err, fault.Usage) || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a large file: %v", err)
	}
}

// FuzzManifest reads any text as a manifest: no name in it leads out of the folder.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(oneFile("Q8_0/a.gguf", 3, strings.Repeat("ab", 32))))
	f.Add([]byte(oneFile("../a", -3, "")))
	f.Add([]byte(`{"format": "` + ManifestFormat + `", "options": [[[{}]]], "files": [{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseManifest("manifest", data)
		if err != nil {
			if !errors.Is(err, fault.Broken) && !errors.Is(err, fault.Unsupported) {
				t.Errorf("%q: %v", data, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, f := range m.Files {
			path := filepath.Join("x", filepath.FromSlash(f.Name))
			if !filepath.IsLocal(filepath.FromSlash(f.Name)) || path == "x" || seen[path] || f.Bytes < 0 ||
				len(f.SHA256) != 64 {
				t.Errorf("%+v", f)
			}
			seen[path] = true
		}
		if len(m.Files) == 0 {
			t.Errorf("%q: no files", data)
		}
	})
}
