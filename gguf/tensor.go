package gguf

import (
	"iter"
)

// Tensor describes one tensor of a file.
type Tensor struct {
	Name   string
	NE     []int64 // dimensions, innermost first: NE[0] is the row length
	Type   Type
	Offset int64 // of the data, from the start of the file's data section
	// Stored is the size of the data of an unknown type, up to the offset of the next tensor; 0 for known types.
	Stored int64
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int64 { return elements(t.NE) }

// Bytes returns the size of the tensor's data.
func (t *Tensor) Bytes() int64 {
	if !t.Type.Known() {
		return t.Stored
	}
	return DataBytes(t.Type, t.NE)
}

func elements(ne []int64) int64 {
	n := int64(1)
	for _, d := range ne {
		n *= d
	}
	return n
}

// Rows returns the number of rows of a tensor of dimensions ne, 0 if it has no elements.
func Rows(ne []int64) int64 {
	if len(ne) == 0 {
		return 1
	}
	if ne[0] == 0 {
		return 0
	}
	return elements(ne[1:])
}

// RowLen returns the number of elements in a row of a tensor of dimensions ne.
func RowLen(ne []int64) int64 {
	if len(ne) == 0 {
		return 1
	}
	return ne[0]
}

// DataBytes returns the size of the data of a tensor of type t and dimensions
// ne, whose rows are whole blocks.
func DataBytes(t Type, ne []int64) int64 { return t.RowBytes(RowLen(ne)) * Rows(ne) }

// BPW returns the bits per weight over all of the tensors, 0 without any.
func BPW(tensors iter.Seq[*Tensor]) float64 {
	var bytes, n int64
	for t := range tensors {
		bytes += t.Bytes()
		n += t.Elements()
	}
	return 8 * float64(bytes) / float64(max(n, 1))
}
