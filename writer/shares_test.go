package writer

import (
	"path/filepath"
	"testing"

	"ggforge/gguf"
)

// TestShares compares the shares of parts with what the parts write.
func TestShares(t *testing.T) {
	dir := t.TempDir()
	f := &File{Path: filepath.Join(dir, "x.gguf"), Tensors: []Tensor{
		{Name: "a", Type: gguf.TypeQ8_0, Source: newMatrix(make([]float32, 64*40), 64, 40)},
		{Name: "b", Type: gguf.TypeF32, Source: newMatrix(make([]float32, 64*3), 64, 3)},
		{Name: "c", Type: gguf.TypeQ4_0, Source: newMatrix(make([]float32, 64*100), 64, 100)},
	}}
	const n = 3
	shares := Shares([][]*File{{f}}, n)
	var read, written int64
	for k, s := range shares {
		var own, elements int64
		for _, r := range s {
			own, elements, read = own+r.Written, elements+r.Elements, read+r.Read
			if r.Work <= 0 {
				t.Errorf("part %d: %+v", k+1, r)
			}
		}
		r, err := Write(t.Context(), f, Options{Journal: &Journal{Part: k + 1, Parts: n}})
		if err != nil {
			t.Fatal(err)
		}
		if r.DataBytes != own || r.Elements != elements {
			t.Errorf("part %d writes %d bytes of %d elements, its share has %d of %d", k+1, r.DataBytes, r.Elements, own, elements)
		}
		written += own
	}
	if want := int64(64 * 143 * 4); read != want {
		t.Errorf("%d bytes are read, want %d", read, want)
	}
	if want := int64(40*68 + 3*256 + 100*36); written != want {
		t.Errorf("%d bytes are written, want %d", written, want)
	}
}
