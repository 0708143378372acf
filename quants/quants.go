// Package quants holds the row codecs of the ggml quantization types: float32
// rows to blocks and back. It opens no files and logs nothing. It starts
// goroutines only once: the first encoder that needs the neighbour lists of a
// codebook (IQ1, IQ2, IQ3) builds them on all cores. Callers cut the work into
// rows.
//
//	src  []float32   row 0 | row 1 | ...     len = nRows*rowLen, rowLen a multiple of the block length
//	                   │
//	                   ▼  Quantize, any number of rows, optional importance per column
//	dst  []byte      block block block ...   len = Type.RowBytes(rowLen)*nRows
//
// Rows are independent of each other: the blocks of a row are the same whether
// it is quantized alone or inside a matrix, whatever the order and the
// goroutine.
//
// # Bit contract
//
// Quantize gives the bytes of ggml 0.27.0 built for baseline x86-64, and
// Dequantize its floats, on every platform:
//
//   - Everything is float32. Each +, -, *, / and square root rounds to nearest
//     even on its own. A product that is added or subtracted is written
//     float32(a*b) + c, because Go may otherwise fuse it into one rounding
//     (arm64, GOAMD64=v3). The same holds for a quotient by a constant power of
//     two, which the compiler turns into a product first.
//   - a*b*c is (a*b)*c. Sums run in ascending index order from +0.
//   - Scales are rounded to float16, to nearest even. Levels are then chosen
//     against the rounded scale where the type says so.
//   - Three roundings to integer are in use, [arith.RoundEven], [arith.RoundAway] and [arith.Truncate]; each type
//     names its own. All three are defined for every float32.
//   - On a tie between candidates the first one tried wins.
//   - The scalar code defines the bits. Faster implementations must give the same
//     bytes for finite input.
//
// Input is assumed to be finite. Quantize does not panic on NaN or infinity,
// but the bytes are then not promised; callers check first. Finite input can
// still overflow and give a float16 scale that is infinite or NaN, which
// Validate finds. Only the sign of such a NaN depends on the platform: arithmetic
// makes negative ones on x86-64, positive ones on arm64. Where the reference
// stops the process, because errors overflow float32 (IQ2 and IQ3, elements of
// 1e8 and more), the scale is infinite here.
//
// # Importance
//
// Importance (from an imatrix) is one non-negative weight per column, the same for all rows of a matrix. Its use by a
// type is in the type's row (types.go): types that use it run another or a differently weighted search if it is given.
//
// # Packages
//
//	gguf/types.go          facts of the format: name, id, block length, fields of a block
//	types.go               one row per type: importance, fallback, cost, scalar codec
//	implementations*.go    vector kernels by type, in order of preference, and the choice
//	internal/scalar        a codec per file, which defines the bits
//	internal/search        searches for scale and minimum
//	internal/codebook      codebooks, neighbour lists, the search of IQ2 and IQ3
//	internal/arith, pack   roundings and sums; codes in bytes
//	internal/lanes         searches with vectors of any width
//	_generate              templates of the unrolled kernels of lanes
//	internal/avx2          kernels of 256 bits for amd64
//	internal/vec128        kernels of 128 bits for arm64, and for amd64 without the former
//
// A new type is its file in internal/scalar and its row in types.go; a new id also a
// row in gguf/types.go; vectors a file in lanes, avx2 or vec128 and a row of the table there.
package quants

//go:generate go run -C _generate .

import (
	"fmt"

	"ggforge/fault"
	"ggforge/gguf"
)

// Kinds of error, for errors.Is.
var (
	ErrUnsupported     = fault.Unsupported // the type has no codec here
	ErrNeedsImportance = fault.Refused     // the type cannot be quantized without importance
	ErrBroken          = fault.Broken      // the data holds numbers that are not usable
)

// Codec converts rows of one tensor type. Its methods are safe for concurrent
// use and keep no reference to their arguments; dst must not overlap src.
type Codec struct {
	typ gguf.Type
	row *typeRow

	// The functions that run, and the names of their implementations.
	plain, weighted         encoder     // without and with importance
	rows                    rowsEncoder // with importance, nil if weighted is all there is
	decode                  decoder
	plainName, weightedName string
	decodeName              string
}

// Lookup returns the codec of t. It is never nil: for a type without one, or
// an id that is not a type, it returns a codec whose methods answer with an error
// that is an ErrUnsupported.
func Lookup(t gguf.Type) *Codec {
	if uint64(t) < uint64(len(selected.codecs)) && selected.codecs[t].decode != nil {
		return &selected.codecs[t]
	}
	return &Codec{typ: t, row: &typeRow{fallback: none}}
}

// LookupReference returns the codec of t that the runtime has for its own data, such as a KV cache: the reference
// conversion (from_float_ref), which for IQ4_NL searches no scales. All others are those of Lookup, and ignore
// importance.
func LookupReference(t gguf.Type) *Codec {
	c := Lookup(t)
	if f := c.row.reference; f != nil {
		encode := func(dst []byte, src, _ []float32) { f(dst, src) }
		c = &Codec{typ: t, row: &typeRow{importance: ImportanceIgnored, fallback: c.row.fallback, cost: c.row.cost},
			plain: encode, weighted: encode, decode: c.decode, plainName: scalarName, weightedName: scalarName,
			decodeName: c.decodeName}
	}
	return c
}

// Type returns the tensor type the codec was looked up for.
func (c *Codec) Type() gguf.Type { return c.typ }

// CanQuantize reports whether there is an encoder.
func (c *Codec) CanQuantize() bool { return c.plain != nil }

// CanDequantize reports whether there is a decoder.
func (c *Codec) CanDequantize() bool { return c.decode != nil }

// Importance returns how much the type depends on importance.
func (c *Codec) Importance() Importance { return c.row.importance }

// NeedsImportance reports whether Quantize refuses to work without importance.
func (c *Codec) NeedsImportance() bool { return c.row.importance == ImportanceNeeded }

// Fallback returns the type for tensors whose rows are not whole blocks of this
// type. Rows that are not whole blocks of the fallback either become F16; the fallback is the type
// itself if only F16 is left. ok is false if such a tensor cannot be converted.
func (c *Codec) Fallback() (t gguf.Type, ok bool) {
	return c.row.fallback, c.row.fallback != none
}

// Cost returns about how many picoseconds it takes to encode an element on one
// core, in proportion to other types.
func (c *Codec) Cost(importance bool) int64 {
	if importance {
		return c.row.cost[1]
	}
	return c.row.cost[0]
}

// Implementation names the encoder in use, with importance or without: "scalar",
// or a vector variant.
func (c *Codec) Implementation(importance bool) string {
	if importance {
		return c.weightedName
	}
	return c.plainName
}

// Quantize encodes the rows of src into dst.
//
// src holds whole rows: len(src) = nRows*rowLen, rowLen a positive multiple of
// the type's block length. importance is nil or one weight per column, len
// rowLen. dst is filled completely: len(dst) = nRows*RowBytes(rowLen). Quantize
// allocates nothing (but see the package comment for the first use of the
// codebook types), and panics when a length does not fit.
//
// The error is an ErrUnsupported if the type has no encoder and
// ErrNeedsImportance if it has none without importance.
func (c *Codec) Quantize(dst []byte, src []float32, rowLen int, importance []float32) error {
	if c.plain == nil {
		return fault.Errorf(ErrUnsupported, "quantize to %v: no encoder for this type", c.typ)
	}
	if c.NeedsImportance() && importance == nil {
		return fault.Errorf(ErrNeedsImportance, "quantize to %v: the type needs importance", c.typ)
	}
	if rowLen <= 0 || rowLen%int(c.typ.BlockLen()) != 0 || len(src)%rowLen != 0 {
		panic(fmt.Sprintf("quants: %d values in rows of %d for blocks of %d (%v)", len(src), rowLen,
			c.typ.BlockLen(), c.typ))
	}
	if importance != nil && len(importance) != rowLen {
		panic(fmt.Sprintf("quants: %d importance values for rows of %d", len(importance), rowLen))
	}
	rowBytes := int(c.typ.RowBytes(int64(rowLen)))
	if len(dst) != len(src)/rowLen*rowBytes {
		panic(fmt.Sprintf("quants: %d bytes for %d values of %v, want %d", len(dst), len(src), c.typ,
			len(src)/rowLen*rowBytes))
	}
	switch {
	case len(src) == 0:
	case importance == nil || c.row.importance == ImportanceIgnored:
		c.plain(dst, src, nil) // blocks are independent of each other
	default:
		c.quantizeRows(dst, src, rowLen, importance)
	}
	return nil
}

// Dequantize decodes the blocks of src into dst; rows need no marking, as a row
// is whole blocks. len(src) = nBlocks*BlockBytes and len(dst) =
// nBlocks*BlockLen, else it panics. Scales that are not finite give elements
// that are not finite. The error is an ErrUnsupported if the type has no
// decoder.
func (c *Codec) Dequantize(dst []float32, src []byte) error {
	if c.decode == nil {
		return fault.Errorf(ErrUnsupported, "dequantize %v: no decoder for this type", c.typ)
	}
	if n := c.blocks(src); len(dst) != n*int(c.typ.BlockLen()) {
		panic(fmt.Sprintf("quants: %d values for %d blocks of %v, want %d", len(dst), n, c.typ,
			n*int(c.typ.BlockLen())))
	}
	c.decode(dst, src)
	return nil
}

// blocks returns the number of blocks in src; it panics on a partial one.
func (c *Codec) blocks(src []byte) int {
	n := int(c.typ.BlockBytes())
	if len(src)%n != 0 {
		panic(fmt.Sprintf("quants: %d bytes are not whole blocks of %d (%v)", len(src), n, c.typ))
	}
	return len(src) / n
}

// DisplacedSubBlocks returns the number of sub-blocks of zeros in src that make the blocks of src decode wrongly: in
// IQ3_S, as in llama.cpp, the indices of such a sub-block are not stored, and those of the sub-blocks that follow it in
// the superblock take their place. It is 0 for all other types. A sub-block counts if it is 32 zeros at a multiple of
// 32, and an element after it in the superblock of 256 is not zero. len(src) is a multiple of the block length, else
// DisplacedSubBlocks panics.
func (c *Codec) DisplacedSubBlocks(src []float32) int {
	if c.row.displaced == nil {
		return 0
	}
	return c.row.displaced(src)
}
