// Package rows carries tensors from where they lie to where they are written,
// a few rows at a time.
//
// A Source is one tensor. It hands out raw rows in one tensor type; float32
// rows come from decoding those (see Decode), so the bytes of a tensor that
// keeps its type are never touched. A tensor that has to be rearranged or
// computed is a Source built on other Sources (transform.go): nothing is ever
// held whole in memory.
package rows

import (
	"io"
	"slices"

	"ggforge/fault"
	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/safetensors"
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
}

// Decode fills dst with rows [a, b) of s as float32; len(dst) is their number
// of elements. buf is scratch, kept by the caller between calls.
func Decode(s Source, dst []float32, buf *[]byte, a, b int64) error {
	raw, err := s.Raw(buf, a, b)
	if err != nil {
		return err
	}
	return quants.Lookup(s.Type()).Dequantize(dst, raw)
}

// memory is a tensor whose raw rows lie in memory one after the other.
type memory struct {
	ne   []int64
	typ  gguf.Type
	data []byte
	file io.ReaderAt // of the same bytes, nil in memory
	swap bool        // data is big-endian
}

func (m *memory) NE() []int64     { return m.ne }
func (m *memory) Type() gguf.Type { return m.typ }

// readBytes is from how many bytes on rows of a file are read into the buffer. A
// copy into a buffer that stays in the cache takes a quarter of the time of the
// page faults that touching the mapping costs, and what is done with the rows is
// done in the cache; below, the call costs more.
const readBytes = 32 << 10

func (m *memory) Raw(buf *[]byte, a, b int64) ([]byte, error) {
	n := m.typ.RowBytes(gguf.RowLen(m.ne))
	raw := m.data[a*n : b*n]
	read := m.file != nil && len(raw) >= readBytes
	if !read && !m.swap {
		return raw, nil
	}
	out := grow(buf, len(raw))
	if !read {
		copy(out, raw)
	} else if _, err := m.file.ReadAt(out, a*n); err != nil {
		return nil, err
	}
	if m.swap {
		m.typ.SwapBytes(out)
	}
	return out, nil
}

// Part returns bytes [from, to) of row a, without reading the rest of it.
func (m *memory) Part(buf *[]byte, a, from, to int64) ([]byte, error) {
	if m.swap {
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

// grow returns *buf with length n and at least that capacity.
func grow(buf *[]byte, n int) []byte {
	*buf = slices.Grow((*buf)[:0], n)[:n]
	return *buf
}

// GGUF returns a tensor of a GGUF file, valid until the file is closed.
func GGUF(f *gguf.File, t *gguf.Tensor) Source {
	return &memory{ne: t.NE, typ: t.Type, data: f.Data(t), file: f.Reader(t), swap: f.BigEndian}
}

// plain pairs the safetensors types with the tensor types of the same bytes.
var plain = [...]struct {
	dtype safetensors.DType
	typ   gguf.Type
}{
	{safetensors.F32, gguf.TypeF32},
	{safetensors.F16, gguf.TypeF16},
	{safetensors.BF16, gguf.TypeBF16},
	{safetensors.F64, gguf.TypeF64},
	{safetensors.I8, gguf.TypeI8},
	{safetensors.I16, gguf.TypeI16},
	{safetensors.I32, gguf.TypeI32},
	{safetensors.I64, gguf.TypeI64},
}

// DType returns the safetensors type whose elements have the same bytes as those
// of t; ok is false when there is none.
func DType(t gguf.Type) (d safetensors.DType, ok bool) {
	for _, p := range plain {
		if p.typ == t {
			return p.dtype, true
		}
	}
	return 0, false
}

// typeOf is the inverse of DType.
func typeOf(d safetensors.DType) (t gguf.Type, ok bool) {
	for _, p := range plain {
		if p.dtype == d {
			return p.typ, true
		}
	}
	return 0, false
}

// Safetensors returns a tensor of a checkpoint, valid until the checkpoint is
// closed. A precision that is not decoded yet gives an error of kind
// fault.Unsupported.
func Safetensors(t *safetensors.Tensor) (Source, error) {
	typ, ok := typeOf(t.DType)
	if !ok || !quants.Lookup(typ).CanDequantize() {
		return nil, fault.Errorf(fault.Unsupported, "%s: tensor %q holds %v, want F32, F16 or BF16: other precisions are not converted yet", t.File(), t.Name, t.DType)
	}
	ne := slices.Clone(t.Shape)
	slices.Reverse(ne)
	return &memory{ne: ne, typ: typ, data: t.Data(), file: t.Reader()}, nil
}

// Float32s returns a one-dimensional tensor of the given values.
func Float32s(v []float32) Source {
	data := make([]byte, 4*len(v))
	if err := quants.Lookup(gguf.TypeF32).Quantize(data, v, len(v), nil); err != nil {
		panic(err) // F32 has an encoder that needs nothing
	}
	return &memory{ne: []int64{int64(len(v))}, typ: gguf.TypeF32, data: data}
}
