package writer

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/test/gen"
)

// TestEncoded compares rows that are encoded when they are read with those of a file.
func TestEncoded(t *testing.T) {
	const rowLen, nRows, slices = 256, 7, 5
	x, _ := gen.Input("normal/35x256")
	weights := gen.Importance("skew", rowLen*slices)
	calls := 0
	src := newMatrix(x, rowLen, nRows, slices)
	for name, c := range map[string]Tensor{
		"slices": {"t", gguf.TypeIQ2_XS, src, Weighted(&asked{func() ([]float32, error) {
			calls++
			return weights,
				nil
		}}), nil},
		"plain": {"t", gguf.TypeQ4_K, src, nil, nil},
		"encoder": {"t", gguf.TypeQ4_K, src, &twice{weights: [2][]float32{weights[:rowLen],
			weights[rowLen : 2*rowLen]}}, nil},
		"kept": {"t", gguf.TypeF32, src, nil, nil},
	} {
		f := &File{Path: filepath.Join(t.TempDir(), "out.gguf"), Tensors: []Tensor{c}}
		if _, err := Write(context.Background(), f, Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		out, err := gguf.Parse("out", read(t, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		s := Encoded(c)
		if s.Type() != c.Type || gguf.Shape(s.NE()) != gguf.Shape(src.NE()) {
			t.Errorf("%s: %v of %v", name, s.NE(), s.Type())
		}
		if kept := name == "kept"; kept != (s.Cost() == 0) || kept != (s == c.Source) {
			t.Errorf("%s: cost %d", name, s.Cost())
		}
		want, size := out.Data(&out.Tensors[0]), c.Type.RowBytes(rowLen)
		var buf []byte
		for a := int64(0); a < nRows*slices; a += 3 { // across slices, too
			b := min(a+3, nRows*slices)
			got, err := s.Raw(&buf, a, b)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want[a*size:b*size]) {
				t.Errorf("%s: rows %d to %d have other bytes than the file", name, a, b)
			}
			if a == 6 {
				runtime.GC()
			}
		}
		if name == "slices" && (calls < 1 || calls > 3) {
			t.Errorf("importance read %d times", calls)
		}
	}
}

// TestEncodedErrors checks that errors that end the writing of a file are errors of a read, too.
func TestEncodedErrors(t *testing.T) {
	x, _ := gen.Input("normal/8x256")
	x[5*256+3] = 1e30
	broken := errors.New("file breaks")
	bad := newMatrix(x, 256, 8)
	bad.err, bad.at = broken, 2
	for _, c := range []struct {
		t    Tensor
		kind error
		want string
	}{
		{Tensor{Type: gguf.TypeQ8_0, Source: bad}, broken, "breaks"},
		{Tensor{Type: gguf.TypeF16, Source: newMatrix(x, 256, 8)}, fault.Broken,
			"row 5, column 3: weights too large for F16"},
		{Tensor{Type: gguf.TypeIQ2_XXS, Source: newMatrix(x, 256, 8)}, quants.ErrNeedsImportance, "importance"},
		{Tensor{Type: gguf.TypeQ4_K, Source: newMatrix(x, 256, 8),
			Encoder: Weighted(&asked{func() ([]float32, error) { return nil, broken }})}, broken, "breaks"},
	} {
		if _, err := Encoded(c.t).Raw(new([]byte), 0, 8); !errors.Is(err, c.kind) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %v: %s", err, c.kind, c.want)
		}
	}
}
