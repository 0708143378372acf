package rows

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// PermuteRope reorders the rows of a query or key projection from the layout of
// Hugging Face checkpoints, where RoPE rotates the two halves of a head against
// each other, to the one of GGUF, where it rotates neighbours: within each head,
// output row 2i is row i of the head and output row 2i+1 is row i + half.
//
// s is a matrix of heads*headDim rows, or a bias of heads*headDim elements,
// with an even headDim. Source of the rule: the permute step of the reference's
// Llama conversion.
func PermuteRope(s Source, heads int64) (Source, error) { return permute(s, heads, false) }

// UnpermuteRope undoes PermuteRope.
func UnpermuteRope(s Source, heads int64) (Source, error) { return permute(s, heads, true) }

func permute(s Source, heads int64, inverse bool) (Source, error) {
	ne := s.NE()
	n := gguf.Rows(ne) // the rows or, of a bias, the elements to permute
	if len(ne) == 1 {
		n = ne[0]
	}
	if len(ne) > 2 || heads <= 0 || n%(2*heads) != 0 {
		return nil, fmt.Errorf("dimensions %v, want a multiple of 2*%d rows for %d heads", ne, heads, heads)
	}
	headDim := n / heads
	return Regroup(s, func(i int64) int64 {
		in, half := i%headDim, headDim/2
		if inverse {
			return i - in + in%half*2 + in/half
		}
		return i - in + in/2 + in%2*half
	})
}

// Convert returns s with its rows rounded to type t, overflow included.
func Convert(s Source, t gguf.Type) Source {
	if s.Type() == t {
		return s
	}
	return &converted{Source: s, typ: t}
}

type converted struct {
	Source
	typ gguf.Type
}

func (c *converted) Type() gguf.Type { return c.typ }

func (c *converted) Cost() int64 {
	return c.Source.Cost() + costDecode + quants.Lookup(c.typ).Cost(false)
}

func (c *converted) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	rowLen := gguf.RowLen(c.NE())
	n := int((b - a) * rowLen)
	scratch.f32 = slices.Grow(scratch.f32[:0], n)[:n]
	if err := Decode(c.Source, scratch.f32, &scratch.raw, a, b); err != nil {
		return nil, err
	}
	out := buffer.Resize(buf, int(c.typ.RowBytes(int64(n))))
	return out, quants.Lookup(c.typ).Quantize(out, scratch.f32, int(rowLen), nil)
}

// Integers returns s, of a type of integers, with its rows in the integer type t. A
// number that does not fit t is an error when its row is read, of kind fault.Broken.
func Integers(s Source, t gguf.Type) Source {
	if s.Type() == t {
		return s
	}
	return &integers{s, t}
}

type integers struct {
	Source
	typ gguf.Type
}

func (n *integers) Type() gguf.Type { return n.typ }
func (n *integers) Cost() int64     { return n.Source.Cost() + costDecode }

func (n *integers) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	scratch := floats.Get().(*scratch)
	defer floats.Put(scratch)
	raw, err := n.Source.Raw(&scratch.raw, a, b)
	if err != nil {
		return nil, err
	}
	from, to := int(n.Source.Type().BlockBytes()), int(n.typ.BlockBytes())
	count := len(raw) / from
	out := buffer.Resize(buf, count*to)
	var word [8]byte
	for i := range count {
		copy(word[:], raw[i*from:(i+1)*from])
		v := int64(binary.LittleEndian.Uint64(word[:])) << (64 - 8*from) >> (64 - 8*from) // the sign
		if top := v >> (8*to - 1); top != 0 && top != -1 {
			rowLen := gguf.RowLen(n.NE())
			return nil, fault.Errorf(fault.Broken, "row %d, column %d: %d, want a number that %v holds",
				a+int64(i)/rowLen, int64(i)%rowLen, v, n.typ)
		}
		binary.LittleEndian.PutUint64(word[:], uint64(v))
		copy(out[i*to:(i+1)*to], word[:])
	}
	return out, nil
}

// scratch is the buffers of one conversion.
type scratch struct {
	raw []byte
	f32 []float32
}

var floats = sync.Pool{New: func() any { return new(scratch) }}
