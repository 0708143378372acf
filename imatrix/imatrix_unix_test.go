//go:build unix

package imatrix_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
	"ggforge/internal/io/mmap"
)

// A file that shrinks while it is open gives errors, not a crash.
func TestFileShrinks(t *testing.T) {
	const n = 1 << 18
	e := []imatrixtest.Entry{{Name: "w", Sums: make([]float32, n), Counts: []float32{1}}}
	for name, file := range map[string][]byte{"legacy": imatrixtest.Legacy(e, nil),
		"gguf": imatrixtest.GGUF(e, nil, 0)} {
		path := filepath.Join(t.TempDir(), name)
		if err := imatrixtest.Write(path, file); err != nil {
			t.Fatal(err)
		}
		m, err := imatrix.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := os.Truncate(path, 100); err != nil {
			t.Fatal(err)
		}
		_, _, lookup := m.Lookup("w", []int64{n})
		_, sums := m.Sums(m.Entry("w"))
		for what, err := range map[string]error{"Lookup": lookup, "Sums": sums,
			"Validate": m.Validate(t.Context(), nil)} {
			if !errors.Is(err, mmap.ErrChanged) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
}
