package writer

import (
	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Encoder makes the RowEncoder of one tensor whose type changes. A plan has one per tensor. Encoders are compared by
// ==: outputs of a tensor with the same Encoder share the RowEncoder.
type Encoder interface {
	// Begin is called once, at the start of the tensor, with its dimensions. It reads the importance, which is released
	// when the tensor is done.
	Begin(ne []int64) (RowEncoder, error)
	// Cost returns about how many picoseconds one core takes to encode an element
	// as type t: see quants.Codec.Cost.
	Cost(t gguf.Type) int64
}

// RowEncoder encodes the rows of one tensor, which all workers do at once.
type RowEncoder interface {
	// Encode encodes rows [a, b) as type t. Rows are counted over all dimensions but
	// the first: len(x) = (b-a)*NE[0], and len(dst) is the bytes of as many elements
	// of t. The bytes of a row must not depend on which rows come with it. s is the
	// calling worker's own.
	Encode(dst []byte, t gguf.Type, x []float32, a, b int64, s *Scratch) error
}

// Scratch is memory of one worker, which an encoder may use during one call. It
// is not cleared between calls.
type Scratch struct {
	f32   []float32
	bytes []byte
}

// Float32s returns n numbers, the same memory each time.
func (s *Scratch) Float32s(n int) []float32 {
	return buffer.Resize(&s.f32, n)
}

// Bytes returns n bytes, the same memory each time.
func (s *Scratch) Bytes(n int) []byte {
	return buffer.Resize(&s.bytes, n)
}

// Importance gives the weights of a tensor: one per column, NE[0] for all rows
// or, slice after slice, NE[0] for each of the NE[2] slices; nil for none.
type Importance interface {
	Values() ([]float32, error)
}

// Weighted returns the encoder of package quants with one vector of importance,
// or without importance if i is nil. Two of the same i are equal by ==.
func Weighted(i Importance) Encoder { return weighted{i} }

type weighted struct{ Importance }

func (w weighted) Cost(t gguf.Type) int64 { return quants.Lookup(t).Cost(w.Importance != nil) }

func (w weighted) Begin(ne []int64) (RowEncoder, error) {
	if w.Importance == nil {
		return vector{rowLen: gguf.RowLen(ne)}, nil
	}
	values, err := w.Values()
	if err != nil {
		return nil, err
	}
	return newVector(values, ne)
}

// vector is one weight per column, for all rows or for each slice of rows.
type vector struct {
	values    []float32 // nil for none
	rowLen    int64
	sliceRows int64 // 0 when values holds for all rows
	slices    int64
}

// newVector assigns the values to the rows of a tensor of dimensions ne.
func newVector(values []float32, ne []int64) (vector, error) {
	v := vector{values: values, rowLen: gguf.RowLen(ne)}
	switch n := int64(len(values)); {
	case n == 0:
		v.values = nil
	case n == v.rowLen:
	case len(ne) > 2 && n == ne[0]*ne[2]:
		v.sliceRows, v.slices = ne[1], ne[2]
	default:
		return v, fault.Errorf(fault.Refused, "%d importance values for dimensions %s", n, gguf.Shape(ne))
	}
	return v, nil
}

// at returns the weights for rows [a, end), end at most b. Slices along dimension 2 have weights of their own, which
// slices along dimension 3 share.
func (v vector) at(a, b int64) (w []float32, end int64) {
	if v.sliceRows == 0 {
		return v.values, b
	}
	slice := a / v.sliceRows
	off := slice % v.slices * v.rowLen
	return v.values[off : off+v.rowLen : off+v.rowLen], min(b, (slice+1)*v.sliceRows)
}

func (v vector) Encode(dst []byte, t gguf.Type, x []float32, a, b int64, _ *Scratch) error {
	to, rowBytes := quants.Lookup(t), t.RowBytes(v.rowLen)
	for i := a; i < b; {
		weights, end := v.at(i, b)
		rows := x[(i-a)*v.rowLen : (end-a)*v.rowLen]
		if err := to.Quantize(dst[(i-a)*rowBytes:(end-a)*rowBytes], rows, int(v.rowLen), weights); err != nil {
			return err
		}
		i = end
	}
	return nil
}
