package quants

import (
	"ggforge/gguf"

	"ggforge/quants/internal/scalar"
)

// Importance is how much a type depends on importance.
type Importance uint8

// The ways to depend on importance.
const (
	ImportanceIgnored  Importance = iota // the encoder ignores it
	ImportanceUsed                       // better with it
	ImportanceInLayers                   // poor without: the quantizer refuses, except for embedding and output head
	ImportanceNeeded                     // the encoder requires it
)

type (
	// encoder encodes one row, or several as one: len(src) is a multiple of the block length, importance
	// is nil or len(src), dst has exactly the row's bytes.
	encoder = func(dst []byte, src, importance []float32)
	// rowsEncoder encodes rows of rowLen elements each.
	rowsEncoder = func(dst []byte, src, importance []float32, rowLen int)
	// decoder decodes whole blocks: len(dst) elements from src.
	decoder = func(dst []float32, src []byte)
)

// typeRow holds the facts of a type besides its format: name, id, block and fields are in the row of package gguf.
// A type without encoder has decode only.
type typeRow struct {
	importance Importance
	// fallback is the type for tensors whose rows are not whole blocks of this type. If they are not whole blocks of
	// fallback either, they become F16. It is the type itself if only F16 is left, and none if such a tensor cannot
	// be converted.
	fallback gguf.Type
	// cost is picoseconds per element to encode on one core, without and with importance, with vectors of 256 bits
	// (BENCHMARKS.md). Only the proportions matter, for estimates of the remaining time.
	cost   [2]int64
	encode encoder // the scalar code, which defines the bits
	decode decoder
	// reference is the encoder of LookupReference; nil for encode.
	reference func(dst []byte, src []float32)
	// wholeRow: with importance, the bytes of a block depend on its whole row. Otherwise they depend on the block alone.
	wholeRow bool
	// displaced counts the sub-blocks of Codec.DisplacedSubBlocks; nil if the type has none.
	displaced func(src []float32) int
}

// none is the fallback of types that have none.
const none = ^gguf.Type(0)

// types holds one row per codec, indexed by type id. Ids without a row are zero.
//
// Source of importance and fallbacks: the quantizer of llama.cpp 0.7.0.
var types = [...]typeRow{
	gguf.TypeF32: {importance: ImportanceIgnored, fallback: gguf.TypeF32, cost: [2]int64{140, 140},
		encode: scalar.QuantizeF32, decode: scalar.DequantizeF32},
	gguf.TypeF16: {importance: ImportanceIgnored, fallback: gguf.TypeF16, cost: [2]int64{240, 240},
		encode: scalar.QuantizeF16, decode: scalar.DequantizeF16},
	gguf.TypeBF16: {importance: ImportanceIgnored, fallback: gguf.TypeBF16, cost: [2]int64{160, 160},
		encode: scalar.QuantizeBF16, decode: scalar.DequantizeBF16},
	gguf.TypeQ4_0: {importance: ImportanceUsed, fallback: gguf.TypeQ4_0, cost: [2]int64{410, 5500},
		encode: scalar.QuantizeQ4_0, decode: scalar.DequantizeQ4_0, wholeRow: true},
	gguf.TypeQ4_1: {importance: ImportanceUsed, fallback: gguf.TypeQ4_1, cost: [2]int64{410, 14300},
		encode: scalar.QuantizeQ4_1, decode: scalar.DequantizeQ4_1, wholeRow: true},
	gguf.TypeQ5_0: {importance: ImportanceUsed, fallback: gguf.TypeQ5_0, cost: [2]int64{460, 6000},
		encode: scalar.QuantizeQ5_0, decode: scalar.DequantizeQ5_0, wholeRow: true},
	gguf.TypeQ5_1: {importance: ImportanceUsed, fallback: gguf.TypeQ5_1, cost: [2]int64{470, 14300},
		encode: scalar.QuantizeQ5_1, decode: scalar.DequantizeQ5_1, wholeRow: true},
	gguf.TypeQ8_0: {importance: ImportanceIgnored, fallback: gguf.TypeQ8_0, cost: [2]int64{400, 400},
		encode: scalar.QuantizeQ8_0, decode: scalar.DequantizeQ8_0},
	gguf.TypeQ2_K: {importance: ImportanceUsed, fallback: gguf.TypeQ4_0, cost: [2]int64{10000, 18200},
		encode: scalar.QuantizeQ2_K, decode: scalar.DequantizeQ2_K},
	gguf.TypeQ3_K: {importance: ImportanceUsed, fallback: gguf.TypeQ4_0, cost: [2]int64{6700, 6700},
		encode: scalar.QuantizeQ3_K, decode: scalar.DequantizeQ3_K},
	gguf.TypeQ4_K: {importance: ImportanceUsed, fallback: gguf.TypeQ5_0, cost: [2]int64{9100, 14200},
		encode: scalar.QuantizeQ4_K, decode: scalar.DequantizeQ4_K},
	gguf.TypeQ5_K: {importance: ImportanceUsed, fallback: gguf.TypeQ5_1, cost: [2]int64{7300, 14300},
		encode: scalar.QuantizeQ5_K, decode: scalar.DequantizeQ5_K},
	gguf.TypeQ6_K: {importance: ImportanceUsed, fallback: gguf.TypeQ8_0, cost: [2]int64{5600, 6000},
		encode: scalar.QuantizeQ6_K, decode: scalar.DequantizeQ6_K},
	gguf.TypeQ8_1: {decode: scalar.DequantizeQ8_1},
	gguf.TypeQ8_K: {decode: scalar.DequantizeQ8_K},
	gguf.TypeIQ2_XXS: {importance: ImportanceNeeded, fallback: gguf.TypeIQ4_NL, cost: [2]int64{91000, 91000},
		encode: scalar.QuantizeIQ2_XXS, decode: scalar.DequantizeIQ2_XXS},
	gguf.TypeIQ2_XS: {importance: ImportanceNeeded, fallback: gguf.TypeIQ4_NL, cost: [2]int64{130000, 130000},
		encode: scalar.QuantizeIQ2_XS, decode: scalar.DequantizeIQ2_XS},
	gguf.TypeIQ3_XXS: {importance: ImportanceInLayers, fallback: gguf.TypeIQ4_NL, cost: [2]int64{150000, 160000},
		encode: scalar.QuantizeIQ3_XXS, decode: scalar.DequantizeIQ3_XXS},
	gguf.TypeIQ1_S: {importance: ImportanceNeeded, fallback: gguf.TypeIQ4_NL, cost: [2]int64{56000, 56000},
		encode: scalar.QuantizeIQ1_S, decode: scalar.DequantizeIQ1_S},
	gguf.TypeIQ4_NL: {importance: ImportanceUsed, fallback: gguf.TypeIQ4_NL, cost: [2]int64{7600, 8000},
		encode: scalar.QuantizeIQ4_NL, decode: scalar.DequantizeIQ4_NL, reference: scalar.ReferenceIQ4_NL},
	gguf.TypeIQ3_S: {importance: ImportanceUsed, fallback: gguf.TypeIQ4_NL, cost: [2]int64{99000, 99000},
		encode: scalar.QuantizeIQ3_S, decode: scalar.DequantizeIQ3_S,
		displaced: scalar.ZeroSubBlocksIQ3_S},
	gguf.TypeIQ2_S: {importance: ImportanceInLayers, fallback: gguf.TypeIQ4_NL, cost: [2]int64{72000, 72000},
		encode: scalar.QuantizeIQ2_S, decode: scalar.DequantizeIQ2_S},
	gguf.TypeIQ4_XS: {importance: ImportanceUsed, fallback: gguf.TypeIQ4_NL, cost: [2]int64{8000, 8600},
		encode: scalar.QuantizeIQ4_XS, decode: scalar.DequantizeIQ4_XS},
	gguf.TypeIQ1_M: {importance: ImportanceInLayers, fallback: gguf.TypeIQ4_NL, cost: [2]int64{66000, 67000},
		encode: scalar.QuantizeIQ1_M, decode: scalar.DequantizeIQ1_M},
	gguf.TypeTQ1_0: {importance: ImportanceIgnored, fallback: gguf.TypeQ4_0, cost: [2]int64{480, 480},
		encode: scalar.QuantizeTQ1_0, decode: scalar.DequantizeTQ1_0},
	gguf.TypeTQ2_0: {importance: ImportanceIgnored, fallback: gguf.TypeQ4_0, cost: [2]int64{250, 250},
		encode: scalar.QuantizeTQ2_0, decode: scalar.DequantizeTQ2_0},
	gguf.TypeMXFP4: {importance: ImportanceIgnored, fallback: gguf.TypeMXFP4, cost: [2]int64{1100, 1100},
		encode: scalar.QuantizeMXFP4, decode: scalar.DequantizeMXFP4},
	gguf.TypeNVFP4: {importance: ImportanceIgnored, fallback: none, cost: [2]int64{1000, 1000},
		encode: scalar.QuantizeNVFP4, decode: scalar.DequantizeNVFP4},
	gguf.TypeQ1_0: {importance: ImportanceIgnored, fallback: none, cost: [2]int64{260, 260},
		encode: scalar.QuantizeQ1_0, decode: scalar.DequantizeQ1_0},
	gguf.TypeQ2_0: {importance: ImportanceIgnored, fallback: gguf.TypeQ4_0, cost: [2]int64{350, 350},
		encode: scalar.QuantizeQ2_0, decode: scalar.DequantizeQ2_0},
}
