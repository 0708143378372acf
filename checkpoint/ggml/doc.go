// Package ggml reads Llama models in llama.cpp's formats before GGUF: GGML, GGMF and GGJT. It returns sizes,
// vocabulary, and the tensors under the files' own names.
//
// A file, all numbers little-endian:
//
//	"lmgg"                                GGML: no version, no scores, no padding
//	"fmgg", u32 1                         GGMF: scores
//	"tjgg", u32 1 to 3                    GGJT: scores, data aligned to 32
//	u32 × 7                               n_vocab, n_embd, n_mult, n_head, n_layer, n_rot, ftype
//	n_vocab times: u32 n, n bytes         text of a token
//	               f32                    its score, not in GGML
//	up to the end: u32 × 3                dimensions (1 or 2), bytes of the name, type
//	               u32 × dimensions       innermost first
//	               name, padding, data
//
// Types have the numbers of GGUF, but Q4_0, Q4_1 and Q8_0 mean what they mean there from GGJT 3 on only, and the other
// quantized types from GGJT 2 on: older ones are refused as unsupported. So are sizes above the limits of this package,
// which are far above published files.
//
// Source: the loaders of llama.cpp before b1046, and its convert_llama_ggml_to_gguf.py.
package ggml
