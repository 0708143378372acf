// Package gguf reads and writes the structure of GGUF files: the typed metadata pairs, the tensor infos and where each
// tensor's bytes are. It is independent of models and decodes no weights.
//
// A file of version 3, all numbers in the file's byte order:
//
//	 offset  size
//	      0     4  "GGUF"
//	      4     4  version            u32: 1, 2 or 3
//	      8     8  tensor count       u64 (version 1: u32)
//	     16     8  metadata count     u64 (version 1: u32)
//	     24        metadata pairs, one after the other:
//	                 key              string
//	                 value type       u32
//	                 value            see below
//	               tensor infos, one after the other:
//	                 name             string
//	                 number of dims   u32: 0 to 4
//	                 dims             u64 each (version 1: u32), innermost first
//	                 type             u32
//	                 offset           u64, from the start of the data
//	               zero bytes up to a multiple of the alignment
//	               data: each tensor begins at a multiple of the alignment
//
//	string   length u64 (version 1: u32), then that many bytes, no terminator
//	array    element type u32, count u64 (version 1: u32), then the elements;
//	         an element may itself be an array
//	bool     one byte, 0 or 1
//
// The alignment is 32 unless the key general.alignment (u32, a power of two)
// says otherwise. A big-endian file has the same four magic bytes; it shows in
// the version, whose low half is zero when read as little-endian.
//
// The reader refuses any length, count, dimension or offset that does not fit the
// file; unknown value types; bools other than 0 and 1; rows that are not whole
// blocks; tensors that overlap; duplicate keys and names; names that are empty, hold
// a NUL or are longer than ggml's 63 bytes, or than LimitsOf has for the file's architecture; and anything above the
// limits of limits.go. It accepts padding that is not zero, tensors in any order, gaps between
// them, and a last tensor without its padding. A tensor of an unknown or withdrawn
// type has the bytes up to the next tensor (Tensor.Stored).
//
// Source: the GGUF specification (docs/gguf.md of ggml) and the checks of
// ggml's gguf.cpp at 0.27.0.
package gguf
