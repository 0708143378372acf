package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/test/gen"
)

// TestPieces checks that one Source gives each of several outputs the rows of its
// type, one that keeps the type included, in blocks of any size.
func TestPieces(t *testing.T) {
	const rowLen = 1024
	x, _ := gen.Input("normal/70x256")
	var big []float32
	for len(big) < blockElements+pieceElements+5*rowLen {
		big = append(big, x...)
	}
	n := int64(len(big) / rowLen)
	big = big[:n*rowLen]
	src := newMatrix(big, rowLen, n)
	for _, types := range [][]gguf.Type{{gguf.TypeF32}, {gguf.TypeBF16}, {gguf.TypeQ8_0, gguf.TypeF32, gguf.TypeF16}} {
		for _, opt := range []Options{{Workers: 2}, {Workers: 1, MaxBuffer: 1},
			{Workers: 1, MaxBuffer: 5 * pieceElements * 4}} {
			dir := t.TempDir()
			var models [][]*File
			for _, typ := range types {
				models = append(models, []*File{{Path: filepath.Join(dir, typ.String()),
					Tensors: []Tensor{{"t", typ, src, nil, nil}}}})
			}
			if _, err := WriteSets(context.Background(), models, opt); err != nil {
				t.Fatal(err)
			}
			for i, typ := range types {
				f, err := gguf.Parse("out", read(t, models[i][0].Path))
				if err != nil {
					t.Fatal(err)
				}
				want := make([]byte, n*typ.RowBytes(rowLen))
				if err := quants.Lookup(typ).Quantize(want, big, rowLen, nil); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(f.Data(&f.Tensors[0]), want) {
					t.Errorf("%v of %v, %+v: other bytes than the codec's", typ, types, opt)
				}
			}
		}
	}
}

// TestPlaceInPiece checks that a number that is not finite, or becomes so, is
// named by its place in the tensor, in whichever piece it is.
func TestPlaceInPiece(t *testing.T) {
	const rowLen, n = 1000, 500
	for _, row := range []int64{0, 32, 33, 261, 262, n - 1} {
		for _, c := range []struct {
			value float32
			typ   gguf.Type
			want  string
		}{
			{float32(math.NaN()), gguf.TypeF32, "NaN"},
			{float32(math.Inf(-1)), gguf.TypeF16, "-Inf"},
			{1e6, gguf.TypeF16, "too large"},
		} {
			x := make([]float32, rowLen*n)
			x[row*rowLen+7] = c.value
			f := &File{Path: filepath.Join(t.TempDir(), "out"),
				Tensors: []Tensor{{"t", c.typ, newMatrix(x, rowLen, n), nil, nil}}}
			_, err := Write(context.Background(), f, Options{})
			if !errors.Is(err, fault.Broken) || !strings.Contains(err.Error(), fmt.Sprintf("row %d, ", row)) ||
				!strings.Contains(err.Error(), "column 7") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("row %d, %v to %v: %v", row, c.value, c.typ, err)
			}
		}
	}
}

// TestRowBuffer checks that the blocks keep to the bound.
func TestRowBuffer(t *testing.T) {
	const rowLen = 512
	x := make([]float32, 64*rowLen)
	j := &job{source: newMatrix(x, rowLen, 64), ne: []int64{rowLen, 64}}
	for _, typ := range []gguf.Type{gguf.TypeF32, gguf.TypeF16, gguf.TypeQ8_0} {
		j.outputs = append(j.outputs, &placed{Tensor: Tensor{Type: typ}})
	}
	const perRow = rowLen * (4 + 4 + 2 + 1.0625)
	if n := j.rowBuffer(); n != perRow {
		t.Errorf("a row takes %d bytes, want %v", n, perRow)
	}
	for rows, buffer := range map[int64]int64{1: 1, 7: 7*perRow + 10, 64: 1 << 40} {
		var blocks []block
		if err := j.cut(buffer, []span{{a: 0, b: 64}},
			func(b block) error { blocks = append(blocks, b); return nil }); err != nil {
			t.Fatal(err)
		}
		next := int64(0)
		for _, b := range blocks {
			if b.a != next || b.b != min(next+rows, 64) {
				t.Errorf("buffer of %d: rows %d to %d, want %d rows from %d on", buffer, b.a, b.b, rows, next)
			}
			next = b.b
		}
		if next != 64 {
			t.Errorf("buffer of %d: rows end at %d", buffer, next)
		}
	}
}
