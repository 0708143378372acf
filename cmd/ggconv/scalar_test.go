package main

import (
	"path/filepath"
	"strings"
	"testing"

	"ggforge/quants"
)

// TestScalarNote checks that a scalar build prints one note that it is slow, unless vectors were switched off.
func TestScalarNote(t *testing.T) {
	dir := t.TempDir()
	for godebug, want := range map[string]int{"": 1, "simd=0": 0} {
		t.Setenv("GODEBUG", godebug)
		code, out, err := call("--progress", "none", "--force", gollama, filepath.Join(dir, "out.gguf"))
		if code != 0 {
			t.Fatal(err)
		}
		if quants.Kernels() != "scalar" {
			want = 0
		}
		if got := strings.Count(out, "scalar version"); got != want {
			t.Errorf("GODEBUG=%s: %d notes, want %d: %s", godebug, got, want, out)
		}
	}
}
