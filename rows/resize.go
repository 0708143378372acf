package rows

import (
	"encoding/binary"
	"math"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/internal/kernel/torchmath"
)

// Resize returns rows in F32 for a grid of to*to points, line by line, from the rows of s for a grid of
// side*side points: each is interpolated (bilinear) between the four rows around its place, with the
// corners of both grids in the same places. Rows are
// multiples of torchmath.VectorWidth long. If side is to, the result is s.
func Resize(s Source, side, to int64) (Source, error) {
	ne := s.NE()
	if side < 1 || side > math.MaxInt32 || to < 1 || to > math.MaxInt32 || gguf.Rows(ne) != side*side {
		return nil, fault.Errorf(fault.Broken, "dimensions %s, want a row for each of %d x %d points",
			gguf.Shape(ne), side, side)
	}
	if side == to {
		return s, nil
	}
	if ne[0]%torchmath.VectorWidth != 0 {
		return nil, fault.Errorf(fault.Unsupported,
			"dimensions %s, want rows of a multiple of %d numbers to interpolate between", gguf.Shape(ne),
			torchmath.VectorWidth)
	}
	return &resized{s, []int64{ne[0], to * to}, side, to}, nil
}

type resized struct {
	s        Source
	ne       []int64
	side, to int64
}

func (r *resized) NE() []int64     { return r.ne }
func (r *resized) Type() gguf.Type { return gguf.TypeF32 }
func (r *resized) Cost() int64     { return 4 * (r.s.Cost() + costDecode + costMultiply) }

func (r *resized) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	around := floats.Get().(*scratch)
	defer floats.Put(around)
	n := r.ne[0]
	around.f32 = slices.Grow(around.f32[:0], int(5*n))[:5*n]
	part := func(i int64) []float32 { return around.f32[i*n:][:n] }
	out := buffer.Resize(buf, int((b-a)*n*4))
	for i := a; i < b; i++ {
		y0, y1, down := torchmath.Between(i/r.to, r.to, r.side)
		x0, x1, right := torchmath.Between(i%r.to, r.to, r.side)
		for j, row := range []int64{y0*r.side + x0, y0*r.side + x1, y1*r.side + x0, y1*r.side + x1} {
			if err := Decode(r.s, part(int64(j)), &around.raw, row, row+1); err != nil {
				return nil, err
			}
		}
		dst := part(4)
		torchmath.Blend(dst, part(0), part(1), part(2), part(3), down, right)
		for j, v := range dst {
			binary.LittleEndian.PutUint32(out[((i-a)*n+int64(j))*4:], math.Float32bits(v))
		}
	}
	return out, nil
}
