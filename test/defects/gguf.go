// Package defects makes files with one defect each, which names the file, and has the error with which every command
// that reads such a file must end. Tests of the commands go through the lists; tests of the readers have further
// defects.
package defects

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A File is one defect.
type File struct {
	Name  string // of the defect, and of the file with the ending of its format
	Data  []byte
	Code  int    // exit code
	Text  string // part of the message
	Shape string // the published weakness that has this shape, if one has
	Size  int64  // of the file if it is longer than Data: the rest is a hole
}

// Write writes the file into the directory and returns its path.
func (f *File) Write(t testing.TB, dir, ext string) string {
	t.Helper()
	path := filepath.Join(dir, f.Name+ext)
	err := os.WriteFile(path, f.Data, 0o666)
	if err == nil && f.Size != 0 {
		err = os.Truncate(path, f.Size)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Types of values of metadata and of tensors, as numbers in a file: specification of GGUF, version 3.
const (
	typeU32, typeI32, typeBool, typeStr, typeArr, typeU64, typeF64 = 4, 5, 7, 8, 9, 10, 12

	tensorF32, tensorQ4K, tensorI8, tensorF64 = 0, 12, 24, 28
)

// header is a GGUF file that is written field by field, so that any field may lie.
type header []byte

func begin(version uint32, tensors, pairs uint64) header {
	return header("GGUF").u32(version).u64(tensors).u64(pairs)
}

func (h header) u32(v uint32) header { return binary.LittleEndian.AppendUint32(h, v) }
func (h header) u64(v uint64) header { return binary.LittleEndian.AppendUint64(h, v) }
func (h header) str(s string) header { return append(h.u64(uint64(len(s))), s...) }
func (h header) zeros(n int) header  { return append(h, make([]byte, n)...) }

func (h header) key(name string, typ uint32) header { return h.str(name).u32(typ) }

func (h header) tensor(name string, typ uint32, offset uint64, ne ...uint64) header {
	h = h.str(name).u32(uint32(len(ne)))
	for _, n := range ne {
		h = h.u64(n)
	}
	return h.u32(typ).u64(offset)
}

// data pads the header and appends n bytes of tensors.
func (h header) data(n int) []byte { return h.zeros((32-len(h)%32)%32 + n) }

// one is a file of one tensor.
func one(typ uint32, offset uint64, data int, ne ...uint64) []byte {
	return begin(3, 1, 0).tensor("t", typ, offset, ne...).data(data)
}

// arch begins a file of a language model with its architecture and the given numbers of tensors and further pairs.
func arch(tensors, pairs uint64) header {
	return begin(3, tensors, 1+pairs).key("general.architecture", typeStr).str("llama")
}

// whole is a file without a defect.
func whole() []byte {
	return arch(2, 1).key("general.alignment", typeU32).u32(32).tensor("a", tensorF32, 0, 8).tensor("b", tensorF32,
		32, 8).data(64)
}

// GGUF returns files that are no GGUF files, or broken ones.
func GGUF() []File {
	nest := begin(3, 0, 1).key("k", typeArr)
	for range 1 << 10 {
		nest = nest.u32(typeArr).u64(1)
	}
	files := []File{
		{Name: "empty", Text: "not a GGUF file"},
		{Name: "magic", Data: []byte("GGML\x03\x00\x00\x00"), Text: "not a GGUF file"},
		{Name: "archive-7z", Data: append([]byte("7z\xbc\xaf\x27\x1c\x00\x04"), make([]byte, 64)...),
			Text: "not a GGUF file"},
		{Name: "gzip", Data: append([]byte{0x1f, 0x8b, 8}, make([]byte, 64)...), Text: "not a GGUF file",
			Shape: "CVE-2024-12886: a compressed file that a server unpacks"},
		{Name: "lfs-pointer", Data: []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
			Text: "Git LFS pointer"},
		{Name: "version-0", Data: begin(0, 0, 0), Code: 4, Text: "version 0"},
		{Name: "version-4", Data: begin(4, 0, 0), Code: 4, Text: "version 4"},
		{Name: "four-bytes", Data: []byte("GGUF"), Text: "GGUF",
			Shape: "CVE-2024-39720: a file of a magic number and nothing else"},
		{Name: "counts-sign", Data: begin(3, 1<<63, 1<<63), Text: "tensor count is 9223372036854775808",
			Shape: "CVE-2024-21836: number of tensors"},
		{Name: "tensors-huge", Data: begin(3, math.MaxUint64/64+2, 0).zeros(64),
			Text:  "tensor count is 288230376151711745",
			Shape: "CVE-2024-21836: number of tensors whose records wrap around 2^64"},
		{Name: "pairs-huge", Data: begin(3, 0, math.MaxUint64/48+2).zeros(64),
			Text:  "metadata count is 384307168202282327",
			Shape: "CVE-2024-23605: number of pairs that wraps around 2^64"},
		{Name: "key-length-max", Data: begin(3, 0, 1).u64(math.MaxUint64).zeros(64),
			Text: "key of 18446744073709551615 bytes", Shape: "CVE-2024-23496: a string whose length plus one is 0"},
		{Name: "string-length-max", Data: begin(3, 0, 1).key("k", typeStr).u64(math.MaxUint64).zeros(64),
			Text: "string of 18446744073709551615 bytes", Shape: "CVE-2024-23496"},
		{Name: "string-longer-than-file", Data: begin(3, 0, 1).key("k", typeStr).u64(1 << 40).zeros(64),
			Text: "string of 1099511627776 bytes"},
		{Name: "array-length-wraps", Data: begin(3, 0, 1).key("k", typeArr).u32(typeStr).u64(1<<60 + 1).zeros(64),
			Text:  "array length is 1152921504606846977",
			Shape: "CVE-2024-21825: strings of an array whose records wrap around 2^64"},
		{Name: "array-length-wraps-numbers", Data: begin(3, 0, 1).key("k",
			typeArr).u32(typeF64).u64(1<<61 + 1).zeros(64), Text: "array length is 2305843009213693953"},
		{Name: "array-of-arrays", Data: nest.u32(typeU32).u64(0), Text: "nested more than 16 deep"},
		{Name: "array-type-negative", Data: begin(3, 0, 1).key("k", typeArr).u32(math.MaxUint32).u64(1).zeros(8),
			Text: "unknown value type 4294967295"},
		{Name: "value-type-13", Data: begin(3, 0, 1).key("k", 13).zeros(8), Text: "unknown value type 13"},
		{Name: "value-type-negative", Data: begin(3, 0, 1).key("k", 1<<31).zeros(8),
			Text: "unknown value type 2147483648"},
		{Name: "bool-2", Data: append(begin(3, 0, 1).key("k", typeBool), 2), Text: "bool is 2"},
		{Name: "key-twice", Data: begin(3, 0, 2).key("k", typeU32).u32(1).key("k", typeU32).u32(2),
			Text: "appears twice"},
		{Name: "key-empty", Data: begin(3, 0, 1).key("", typeU32).u32(1), Text: "key of 0 bytes"},
		{Name: "alignment-0", Data: begin(3, 0, 1).key("general.alignment", typeU32).u32(0),
			Text: "want a power of two", Shape: "an alignment of 0, by which readers divide"},
		{Name: "alignment-48", Data: begin(3, 0, 1).key("general.alignment", typeU32).u32(48),
			Text: "want a power of two"},
		{Name: "alignment-i32", Data: begin(3, 0, 1).key("general.alignment", typeI32).u32(32),
			Text: "want a power of two", Shape: "an alignment of another type ends the program in an assertion"},
		{Name: "alignment-string", Data: begin(3, 0, 1).key("general.alignment", typeStr).str("32"),
			Text: "want a power of two"},
		{Name: "alignment-2-31", Data: begin(3, 0, 1).key("general.alignment", typeU32).u32(1 << 31),
			Text: "want a power of two"},
		{Name: "dims-5", Data: one(tensorF32, 0, 4, 1, 1, 1, 1, 1), Text: "5 dimensions",
			Shape: "CVE-2024-21802: more dimensions than a tensor has room for"},
		{Name: "dims-max", Data: begin(3, 1, 0).str("t").u32(math.MaxUint32).zeros(64), Text: "4294967295 dimensions",
			Shape: "CVE-2024-21802"},
		{Name: "dim-0", Data: one(tensorF32, 0, 4, 0), Text: "dimension 0 is 0"},
		{Name: "dim-negative", Data: one(tensorF32, 0, 4, math.MaxUint64), Text: "product below 2^63"},
		{Name: "dims-product-wraps", Data: one(tensorI8, 0, 32, math.MaxInt64, 2), Text: "product below 2^63",
			Shape: "elements counted in 64 bits become negative"},
		{Name: "dims-product-is-0", Data: one(tensorF32, 0, 32, 1<<32, 1<<32), Text: "product below 2^63",
			Shape: "CVE-2025-53630: the product is 0"},
		{Name: "dims-stride-wraps", Data: one(tensorF32, 0, 32, 1152, 1<<42+1), Text: "bytes",
			Shape: "a stride that wraps around 2^64 makes the tensor small"},
		{Name: "bytes-padding-wraps", Data: one(tensorF32, 0, 32, math.MaxUint64/4), Text: "do not fit 63 bits",
			Shape: "a size that becomes 0 when it is padded"},
		{Name: "bytes-together-wrap", Data: begin(3, 2, 0).tensor("a", tensorI8, 0, 1<<62).tensor("b", tensorI8, 1<<62,
			1<<62).data(64), Text: "bytes at offset 0 of the data, but the file has only 64",
			Shape: "CVE-2025-53630: the sum of sizes wraps around 2^64"},
		{Name: "row-not-whole-blocks", Data: one(tensorQ4K, 0, 144, 255), Text: "want a multiple of 256"},
		{Name: "type-negative", Data: one(math.MaxUint32, 0, 0, 1), Text: "has no data at offset 0",
			Shape: "a negative type reads in front of a table"},
		{Name: "type-removed", Data: one(4, 0, 0, 32), Text: "has no data at offset 0"},
		{Name: "name-64", Data: begin(3, 1, 0).tensor(strings.Repeat("n", 64), tensorF32, 0, 1).data(4),
			Text: "name of 64 bytes", Shape: "a name that fills its buffer and has no end"},
		{Name: "name-nul", Data: begin(3, 1, 0).tensor("a\x00b", tensorF32, 0, 1).data(4), Text: "NUL"},
		{Name: "name-twice", Data: begin(3, 2, 0).tensor("a", tensorF32, 0, 8).tensor("a", tensorF32, 32, 8).data(64),
			Text: "appears twice"},
		{Name: "offset-wraps", Data: one(tensorF32, math.MaxUint64-31, 64, 8), Text: "does not fit 63 bits"},
		{Name: "offset-beyond", Data: one(tensorF32, 1<<40, 64, 8), Text: "the file has only 64 bytes of data",
			Shape: "a tensor outside the file"},
		{Name: "offset-unaligned", Data: one(tensorF32, 4, 64, 8), Text: "not a multiple of the alignment"},
		{Name: "offset-overlap", Data: begin(3, 2, 0).tensor("a", tensorF32, 0, 16).tensor("b", tensorF32, 32,
			8).data(64), Text: "overlaps"},
		{Name: "offset-same", Data: begin(3, 2, 0).tensor("a", tensorF32, 0, 8).tensor("b", tensorF32, 0, 8).data(64),
			Text: "overlaps"},
		{Name: "data-cut", Data: whole()[:len(whole())-1], Text: "but the file has only 63"},
		{Name: "sparse", Data: begin(3, 1<<16, 1<<16), Size: 1 << 40, Text: "key of 0 bytes"},
		{Name: "sparse-tensors", Data: begin(3, 1<<17, 0), Size: 1 << 40, Text: "name"},
	}
	good := whole()
	for n := 4; n < len(good)-64; n += 19 {
		files = append(files, File{Name: fmt.Sprintf("cut-after-%d", n), Data: good[:n]})
	}
	for i := range files {
		if files[i].Code == 0 {
			files[i].Code = 3
		}
	}
	return files
}
