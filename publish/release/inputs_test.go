package release

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ggforge/imatrix"
	"ggforge/imatrix/imatrixtest"
)

// TestReadMatrix reads an importance matrix of either format: it is parsed once, and stays the same if the file
// changes.
func TestReadMatrix(t *testing.T) {
	var entries []imatrixtest.Entry
	for i := range 1000 {
		entries = append(entries, imatrixtest.Entry{Name: fmt.Sprintf("blk.%d.ffn_up.weight", i),
			Sums: []float32{float32(i), 2}, Counts: []float32{2}, Calls: 2})
	}
	for name, data := range map[string][]byte{
		"GGUF": imatrixtest.GGUF(entries, []string{"text"}, 3), "legacy": imatrixtest.Legacy(entries, nil),
	} {
		path := filepath.Join(t.TempDir(), "m")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		once := testing.AllocsPerRun(3, func() {
			m, err := imatrix.Load(path)
			if err != nil {
				t.Fatal(name, err)
			}
			m.Close()
		})
		var m *imatrix.Matrix
		if got := testing.AllocsPerRun(3, func() {
			var err error
			if m, _, err = readMatrix(t.Context(), path); err != nil {
				t.Fatal(name, err)
			}
		}); got > once+100 {
			t.Errorf("%s: %v allocations, and %v to parse it once", name, got, once)
		}
		if err := os.WriteFile(path, []byte("other"), 0o666); err != nil {
			t.Fatal(err)
		}
		e := m.Entry("blk.7.ffn_up.weight")
		if err := m.Unchanged(); err != nil || m.Len() != len(entries) || e == nil {
			t.Fatalf("%s: %d entries, %v", name, m.Len(), err)
		}
		if values, err := m.Values(e); err != nil || !slices.Equal(values, []float32{3.5, 1}) {
			t.Errorf("%s: values %v, %v", name, values, err)
		}
		if err := m.Close(); err != nil {
			t.Error(name, err)
		}
	}
}
