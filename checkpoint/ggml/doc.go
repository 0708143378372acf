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
// Types have the numbers of GGUF. Q4_0, Q4_1 and Q8_0 have the same blocks as in GGUF only since GGJT 3, the other
// quantized types since GGJT 2: older ones are refused as unsupported. So are sizes above the limits of this package,
// which are far above those of published files.
//
// Source: the loaders of llama.cpp before b1046, and its convert_llama_ggml_to_gguf.py.
package ggml
