package gguf

import (
	"encoding/binary"
	"slices"
)

// AppendHeader appends to b the header of a file of version 3, little-endian:
// everything up to and with the padding before the data. Offsets of the tensors
// are written as they are; see Layout for the ones the reference would give.
func AppendHeader(b []byte, m Metadata, tensors []Tensor, alignment int64) []byte {
	start := len(b)
	b = slices.Grow(b, int(HeaderBytes(m, tensors, alignment)))
	b = appendHeader(b, m, tensors, binary.LittleEndian)
	return pad(b, start, alignment)
}

// AppendHeaderBE is AppendHeader for a big-endian file.
func AppendHeaderBE(b []byte, m Metadata, tensors []Tensor, alignment int64) []byte {
	start := len(b)
	b = slices.Grow(b, int(HeaderBytes(m, tensors, alignment)))
	b = appendHeader(b, m, tensors, binary.BigEndian)
	return pad(b, start, alignment)
}

// HeaderBytes returns how many bytes AppendHeader appends.
func HeaderBytes(m Metadata, tensors []Tensor, alignment int64) int64 {
	n := int64(len(magic) + 4 + 8 + 8)
	for _, kv := range m {
		n += int64(8+len(kv.Key)) + 4 + kv.Value.elemBytes()
	}
	for _, t := range tensors {
		n += int64(8+len(t.Name)+4+8*len(t.NE)) + 4 + 8
	}
	return Align(n, alignment)
}

func pad(b []byte, start int, alignment int64) []byte {
	size := int64(len(b) - start)
	return append(b, make([]byte, Align(size, alignment)-size)...)
}

func appendHeader(b []byte, m Metadata, tensors []Tensor, order binary.AppendByteOrder) []byte {
	b = append(b, magic...)
	b = order.AppendUint32(b, 3)
	b = order.AppendUint64(b, uint64(len(tensors)))
	b = order.AppendUint64(b, uint64(len(m)))
	for _, kv := range m {
		b = appendString(b, kv.Key, order)
		b = order.AppendUint32(b, uint32(kv.Value.typ))
		b = kv.Value.appendTo(b, order)
	}
	for _, t := range tensors {
		b = appendString(b, t.Name, order)
		b = order.AppendUint32(b, uint32(len(t.NE)))
		for _, n := range t.NE {
			b = order.AppendUint64(b, uint64(n))
		}
		b = order.AppendUint32(b, uint32(t.Type))
		b = order.AppendUint64(b, uint64(t.Offset))
	}
	return b
}

func appendString(b []byte, s string, order binary.AppendByteOrder) []byte {
	b = order.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

// Layout sets the tensors' offsets one after the other in the order given, each
// at a multiple of alignment, and returns the size of the data section: like
// the reference's, it ends in the padding of the last tensor.
func Layout(tensors []Tensor, alignment int64) (dataBytes int64) {
	for i := range tensors {
		tensors[i].Offset = dataBytes
		dataBytes = Align(dataBytes+tensors[i].Bytes(), alignment)
	}
	return dataBytes
}
