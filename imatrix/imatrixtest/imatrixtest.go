// Package imatrixtest builds small importance matrix files of both formats for
// tests. It checks nothing, so it can build broken ones too.
package imatrixtest

import (
	"encoding/binary"
	"math"
	"os"

	"ggforge/gguf"
)

// Entry is an entry to write.
type Entry struct {
	Name   string
	Sums   []float32 // stored as they are
	Calls  int32     // legacy only
	Counts []float32 // GGUF only, one per matrix
}

// Trailer is the optional end of a legacy file.
type Trailer struct {
	Chunks  int32
	Dataset string
}

// Legacy returns a legacy file, without a trailer if it is nil.
func Legacy(entries []Entry, trailer *Trailer) []byte {
	b := Int32s(int32(len(entries)))
	for _, e := range entries {
		b = append(b, Int32s(int32(len(e.Name)))...)
		b = append(b, e.Name...)
		b = append(b, Int32s(e.Calls, int32(len(e.Sums)))...)
		b = append(b, F32(e.Sums...)...)
	}
	if trailer != nil {
		b = append(b, Int32s(trailer.Chunks, int32(len(trailer.Dataset)))...)
		b = append(b, trailer.Dataset...)
	}
	return b
}

// GGUF returns a GGUF file as llama-imatrix arranges it, with the sums and the
// counts of each entry and the tensors of extra after them.
func GGUF(entries []Entry, datasets []string, chunks uint32, extra ...Tensor) []byte {
	var tensors []Tensor
	for _, e := range entries {
		tensors = append(tensors, EntryTensors(e)...)
	}
	return Encode(Metadata(datasets, chunks), append(tensors, extra...))
}

// Metadata returns the pairs of a GGUF file.
func Metadata(datasets []string, chunks uint32) gguf.Metadata {
	return gguf.Metadata{
		{Key: "general.type", Value: gguf.String("imatrix")},
		{Key: "imatrix.datasets", Value: gguf.Strings(datasets)},
		{Key: "imatrix.chunk_count", Value: gguf.Uint32(chunks)},
		{Key: "imatrix.chunk_size", Value: gguf.Uint32(512)},
	}
}

// EntryTensors returns the two tensors of an entry: sums of [ne0, nmat] and counts of [1, nmat] for nmat = len(Counts),
// or of one dimension if there is one count or nmat does not divide the number of sums.
func EntryTensors(e Entry) []Tensor {
	n, nmat := int64(len(e.Sums)), int64(len(e.Counts))
	sums, counts := []int64{n}, []int64{nmat}
	if nmat > 1 && n%nmat == 0 {
		sums, counts = []int64{n / nmat, nmat}, []int64{1, nmat}
	}
	return []Tensor{
		{Name: e.Name + ".in_sum2", Type: gguf.TypeF32, NE: sums, Data: F32(e.Sums...)},
		{Name: e.Name + ".counts", Type: gguf.TypeF32, NE: counts, Data: F32(e.Counts...)},
	}
}

// Tensor is a tensor to write.
type Tensor struct {
	Name string
	Type gguf.Type
	NE   []int64
	Data []byte // the size in the file follows from Type and NE; shorter data are filled with zeros
}

// Encode returns a GGUF file of version 3, little-endian, with the given
// metadata and tensors.
func Encode(md gguf.Metadata, tensors []Tensor) []byte {
	infos := make([]gguf.Tensor, len(tensors))
	for i, t := range tensors {
		infos[i] = gguf.Tensor{Name: t.Name, NE: t.NE, Type: t.Type}
	}
	size := gguf.Layout(infos, gguf.DefaultAlignment)
	b := gguf.AppendHeader(nil, md, infos, gguf.DefaultAlignment)
	body := make([]byte, size)
	for i, t := range tensors {
		copy(body[infos[i].Offset:], t.Data[:min(int64(len(t.Data)), infos[i].Bytes())])
	}
	return append(b, body...)
}

// Write writes a file that Legacy, GGUF or Encode has returned.
func Write(path string, file []byte) error { return os.WriteFile(path, file, 0o644) }

// Int32s returns the bytes of values, little-endian.
func Int32s(values ...int32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// F32 returns the bytes of values, little-endian.
func F32(values ...float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
