package rows

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
)

// PadRows returns a matrix with rows of zeros after its own, n in all; s itself if it
// has as many.
func PadRows(s Source, n int64) (Source, error) {
	ne := s.NE()
	if len(ne) != 2 {
		return nil, fmt.Errorf("dimensions %s, want a matrix", gguf.Shape(ne))
	}
	if ne[1] >= n {
		return s, nil
	}
	return Concat([]Source{s, &zeros{[]int64{ne[0], n - ne[1]}, s.Type()}})
}

// Scatter returns a matrix of n rows: row i is row from[i] of s, one of zeros where from
// has none.
func Scatter(s Source, n int64, from map[int64]int64) (Source, error) {
	ne := s.NE()
	if len(ne) != 2 || n < 1 {
		return nil, fmt.Errorf("dimensions %s among %d rows, want a matrix", gguf.Shape(ne), n)
	}
	for to, i := range from {
		if to < 0 || to >= n || i < 0 || i >= ne[1] {
			return nil, fmt.Errorf("row %d of %d becomes row %d of %d", i, ne[1], to, n)
		}
	}
	padded, err := PadRows(s, ne[1]+1)
	if err != nil {
		return nil, err
	}
	return Gather(padded, []int64{ne[0], n}, func(i int64) int64 {
		if at, ok := from[i]; ok {
			return at
		}
		return ne[1]
	})
}

// zeros are rows whose bytes are 0.
type zeros struct {
	ne  []int64
	typ gguf.Type
}

func (z *zeros) NE() []int64 { return z.ne }

func (z *zeros) Type() gguf.Type { return z.typ }

func (z *zeros) Cost() int64 { return costGather }

func (z *zeros) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	raw := buffer.Resize(buf, int((b-a)*z.typ.RowBytes(z.ne[0])))
	clear(raw)
	return raw, nil
}
