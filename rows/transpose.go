package rows

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
)

// Transpose returns s with its two innermost dimensions exchanged. The type must
// be plain.
func Transpose(s Source) (Source, error) {
	ne := slices.Clone(s.NE())
	if len(ne) < 2 || s.Type().BlockLen() != 1 {
		return nil, fmt.Errorf("dimensions %s in %v cannot be transposed", gguf.Shape(ne), s.Type())
	}
	if f, ok := s.(*Factors); ok {
		return f.transpose()
	}
	ne[0], ne[1] = ne[1], ne[0]
	return &transposed{s, ne}, nil
}

type transposed struct {
	Source
	ne []int64
}

func (t *transposed) NE() []int64 { return t.ne }

// tileSide is the number of rows and columns that are transposed at a time: few enough that
// a tile stays in the cache nearest to the CPU.
const tileSide = 64

func (t *transposed) Cost() int64 { return t.Source.Cost() + costTranspose }

func (t *transposed) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	size := t.Type().BlockBytes()
	rowLen, height := t.ne[0], t.ne[1] // of the result: the source's are the other way round
	out := buffer.Resize(buf, int((b-a)*rowLen*size))
	var row []byte
	tile := make([]byte, tileSide*tileSide*size)
	for c := a; c < b; {
		matrix := c / height
		end := min(b, c+tileSide, (matrix+1)*height) // columns [c, end) of one matrix of the source
		width := (end - c) * size
		for r := int64(0); r < rowLen; r += tileSide {
			n := min(tileSide, rowLen-r)
			for i := range n {
				from := (c - matrix*height) * size
				raw, err := part(t.Source, &row, matrix*rowLen+r+i, from, from+width)
				if err != nil {
					return nil, err
				}
				copy(tile[i*width:], raw)
			}
			for i := c; i < end; i++ {
				pick(out[((i-a)*rowLen+r)*size:], tile[(i-c)*size:], n, width, size)
			}
		}
		c = end
	}
	return out, nil
}

// pick copies n elements of a size, step bytes apart in src, to dst.
func pick(dst, src []byte, n, step, size int64) {
	switch size {
	case 2:
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:], binary.LittleEndian.Uint16(src[i*step:]))
		}
	case 4:
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:], binary.LittleEndian.Uint32(src[i*step:]))
		}
	default:
		for i := range n {
			copy(dst[i*size:(i+1)*size], src[i*step:])
		}
	}
}
