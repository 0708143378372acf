// Package scalar has the codec of every type, one file per type, in plain Go: it
// defines the bits. A file begins with the drawing of a block and the formulas.
//
// QuantizeX encodes one row: len(src) is a multiple of the block length, importance
// is nil or len(src), and dst has exactly the row's bytes, all of which are
// written. DequantizeX decodes whole blocks, len(dst) elements. EncodeX is QuantizeX
// with the search as an argument, for a faster one. BytesX is the size of a
// block, QK_X its elements where they are not pack.QK or pack.QK_K.
package scalar
