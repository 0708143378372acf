// Package safetensors reads checkpoints in the safetensors format: one file, or a directory of shards that together
// hold one model. It returns names, types, shapes and raw bytes, independent of models and without converting weights.
// For writing it lays files out: Split, Layout and Index give everything but the data.
//
// A file, all numbers little-endian:
//
//	 offset  size
//	      0     8  N: size of the header, u64, at most 100 000 000
//	      8     N  header: JSON in UTF-8, first byte '{', white space after the
//	               last '}' as padding (writers pad to a multiple of 8)
//	    8+N        data: the tensors' bytes, row-major, the last dimension
//	               varying fastest; nothing else up to the end of the file
//
//	header   {"__metadata__": {"format": "pt"},              optional, or null
//	          "lm_head.weight": {"dtype": "BF16",
//	                             "shape": [32000, 4096],     [] is a scalar
//	                             "data_offsets": [0, 262144000]},
//	          ...}
//
// data_offsets are the first byte and the one after the last, counted from the
// start of the data. A worked example, a file of 72 bytes:
//
//	offset
//	     0  38 00 00 00 00 00 00 00                 N = 56
//	     8  {"a":{"dtype":"F32","shape":[2],        54 bytes of JSON,
//	        "data_offsets":[0,8]}}                  without the line break,
//	    62  20 20                                   padding
//	    64  00 00 80 3f 00 00 00 40                 a = 1, 2
//
// Checked before a file is accepted:
//   - the header is strict JSON: no key twice, at any level; no field but the
//     three above, all three present; numbers are plain non-negative integers
//   - no name is empty or holds a NUL, which ends a name for readers in C
//   - the size in data_offsets is that of shape and dtype, computed without
//     overflow; elements smaller than a byte fill whole bytes
//   - the tensors, sorted by offset, follow each other from the first byte of
//     the data to the last byte of the file: no holes, no overlaps, no tail.
//     Tensors without elements may lie at any border.
//
// These are the checks of the reference implementation and two more: of
// duplicates it takes the last, and it ignores unknown fields. Refused as
// unsupported: dtypes newer than the table in dtype.go, and more than 64
// dimensions. Tensors may start at any byte, without alignment. The values of
// tensors are not checked; NaN and infinity are left to the caller.
//
// Sources: the README and safetensors/src/tensor.rs of huggingface/safetensors
// at 24b0b2857fef; for the choice and order of shards, conversion/base.py of
// llama.cpp 0.7.0.
package safetensors
