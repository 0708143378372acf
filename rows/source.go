// Package rows reads tensors a few rows at a time, as they are stored or rearranged or computed.
//
// A Source is one tensor. It hands out raw rows in one tensor type; float32
// rows come from decoding those (see Decode), so the bytes of a tensor that
// keeps its type are never touched. A tensor that has to be rearranged or
// computed is a Source built on other Sources (view.go, join.go, compute.go): nothing is ever
// held whole in memory.
package rows

import (
	"io"

	"ggforge/gguf"
	"ggforge/internal/kernel/buffer"
	"ggforge/quants"
)

// Source is one tensor, read by rows. Rows are numbered over all outer
// dimensions together, from 0 to gguf.Rows(NE()). A Source may be used by many
// goroutines at once.
type Source interface {
	// NE returns the dimensions, innermost first; NE()[0] is the row length.
	NE() []int64
	// Type returns the format of the raw rows.
	Type() gguf.Type
	// Raw returns rows [a, b) in that format, little-endian. The result is
	// valid until buf is used again and must not be written to; it may or may
	// not lie in buf.
	Raw(buf *[]byte, a, b int64) ([]byte, error)
	// Cost returns about how many picoseconds it takes one core to make an element of
	// Raw, beyond reading its bytes: 0 for rows that are handed out as they are stored.
	// It is for estimates of the remaining time only.
	Cost() int64
}

// Approximate costs of sources, in picoseconds per element; BenchmarkSources measures them.
const (
	costDecode    = 150    // to float32
	costSwap      = 100    // of bytes
	costGather    = 100    // copying rows
	costTranspose = 800    // reading columns
	costCompute   = 70_000 // a sine or a like function
)

// Decode fills dst with rows [a, b) of s as float32; len(dst) is their number
// of elements. buf is scratch, kept by the caller between calls.
func Decode(s Source, dst []float32, buf *[]byte, a, b int64) error {
	raw, err := s.Raw(buf, a, b)
	if err != nil {
		return err
	}
	return quants.Lookup(s.Type()).Dequantize(dst, raw)
}

// memory is a tensor whose raw rows are in memory one after the other.
type memory struct {
	ne   []int64
	typ  gguf.Type
	data []byte      // nil if they are in a file that is not mapped
	file io.ReaderAt // of the same bytes, nil in memory
	swap bool        // data is big-endian
}

func (m *memory) NE() []int64     { return m.ne }
func (m *memory) Type() gguf.Type { return m.typ }

func (m *memory) Cost() int64 {
	if m.swap {
		return costSwap
	}
	return 0
}

// readBytes is the size from which rows of a file are read into the buffer. A copy into a buffer that stays in the
// cache takes a quarter of the time of the page faults of the mapping, and the rows are then in the cache; for shorter
// runs the system call costs more.
const readBytes = 32 << 10

func (m *memory) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n := m.typ.RowBytes(gguf.RowLen(m.ne))
	read := m.file != nil && ((b-a)*n >= readBytes || m.data == nil)
	if !read && !m.swap {
		return m.data[a*n : b*n], nil
	}
	out := buffer.Resize(buf, int((b-a)*n))
	switch {
	case !read:
		copy(out, m.data[a*n:b*n])
	case len(out) > 0: // reading nothing at the end of a file is an error
		if _, err := m.file.ReadAt(out, a*n); err != nil {
			return nil, err
		}
	}
	if m.swap {
		m.typ.SwapBytes(out)
	}
	return out, nil
}

// Part returns bytes [from, to) of row a, without reading the rest of it.
func (m *memory) Part(buf *[]byte, a, from, to int64) ([]byte, error) {
	if !m.swap && m.data == nil && from < to {
		out := buffer.Resize(buf, int(to-from))
		if n, err := m.file.ReadAt(out, a*m.typ.RowBytes(gguf.RowLen(m.ne))+from); n < len(out) {
			return nil, err
		}
		return out, nil
	}
	if m.swap || m.data == nil {
		row, err := m.Raw(buf, a, a+1)
		if err != nil {
			return nil, err
		}
		return row[from:to], nil
	}
	start := a * m.typ.RowBytes(gguf.RowLen(m.ne))
	return m.data[start+from : start+to], nil
}

// part returns bytes [from, to) of row a of any source.
func part(s Source, buf *[]byte, a, from, to int64) ([]byte, error) {
	if p, ok := s.(interface {
		Part(buf *[]byte, a, from, to int64) ([]byte, error)
	}); ok {
		return p.Part(buf, a, from, to)
	}
	row, err := s.Raw(buf, a, a+1)
	if err != nil {
		return nil, err
	}
	return row[from:to], nil
}

// Stored returns a tensor whose raw rows are stored one after the other, little-endian: in mapped, the bytes of a
// mapped file, and in file, either of which may be nil. Long runs are read from file if it is not nil.
func Stored(ne []int64, t gguf.Type, mapped []byte, file io.ReaderAt) Source {
	return &memory{ne: ne, typ: t, data: mapped, file: file}
}

// GGUF returns a tensor of a GGUF file, valid until the file is closed.
func GGUF(f *gguf.File, t *gguf.Tensor) Source {
	return &memory{ne: t.NE, typ: t.Type, data: f.Data(t), file: f.Reader(t), swap: f.BigEndian}
}

// Bytes returns the stored bytes of a tensor of a GGUF file, whatever its type, as I8.
func Bytes(f *gguf.File, t *gguf.Tensor) Source {
	n, row := t.Bytes(), int64(1)
	for row < 64<<10 && n%(2*row) == 0 { // rows that are short enough for a buffer
		row *= 2
	}
	stored := *t
	stored.Type, stored.NE = gguf.TypeI8, []int64{row, n / row}
	return &memory{ne: stored.NE, typ: stored.Type, data: f.Data(t), file: f.Reader(t)}
}

// Float32s returns a one-dimensional tensor of the given values, of which there is at least one.
func Float32s(v []float32) Source {
	data := make([]byte, 4*len(v))
	if err := quants.Lookup(gguf.TypeF32).Quantize(data, v, len(v), nil); err != nil {
		panic(err) // F32 has an encoder that needs nothing
	}
	return &memory{ne: []int64{int64(len(v))}, typ: gguf.TypeF32, data: data}
}

// Each calls f with all elements of s in order, a few rows at a time; f may not
// keep them.
func Each(s Source, f func([]float32)) error {
	var buf []byte
	n := gguf.Rows(s.NE())
	step := max(1, equalStep/s.NE()[0])
	values := make([]float32, min(n, step)*s.NE()[0])
	for i := int64(0); i < n; i += step {
		part := values[:(min(n, i+step)-i)*s.NE()[0]]
		if err := Decode(s, part, &buf, i, min(n, i+step)); err != nil {
			return err
		}
		f(part)
	}
	return nil
}
