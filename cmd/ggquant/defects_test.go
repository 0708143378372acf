package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/test/defects"
)

// TestDefects quantizes every broken GGUF file, and uses it as an importance matrix: the message names the defect,
// and nothing is written.
func TestDefects(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	model := ggufFile(t, nil, 32, gguf.Tensor{Name: "t.weight", NE: []int64{32}, Type: gguf.TypeF32})
	out := filepath.Join(work, "out.gguf")
	for _, d := range defects.GGUF() {
		path := d.Write(t, dir, ".gguf")
		for _, args := range [][]string{{path, out, "Q8_0"}, {path, out, "COPY"}, {"--dry-run", path, "Q4_K_M"},
			{"--out-dir", work, path, "Q8_0", "Q4_0"}, {"--imatrix", path, model, out, "Q8_0"}} {
			code, text, err := call(append([]string{"--progress", "none"}, args...)...)
			if err != nil {
				text += err.Error()
			}
			want := d.Text
			if args[0] == "--imatrix" && !strings.HasPrefix(string(d.Data), "GGUF") {
				want = "" // it is read as a matrix in the legacy format
			}
			if code != d.Code || !strings.Contains(text, want) || !strings.Contains(text, d.Name+".gguf") {
				t.Errorf("%s: %q: exit code %d, want %d and %q: %.300s", d.Name,
					slices.DeleteFunc(args, filepath.IsAbs), code, d.Code, want, text)
			}
			if len(text) > 2000 {
				t.Errorf("%s: %d bytes of messages", d.Name, len(text))
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{dir, work} {
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}
