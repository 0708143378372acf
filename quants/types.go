package quants

import (
	"ggforge/gguf"

	"ggforge/quants/internal/scalar"
)

// Importance says how much a type depends on importance.
type Importance uint8

// The ways to depend on importance.
const (
	ImportanceIgnored  Importance = iota // the encoder does not look at it
	ImportanceUsed                       // better with it
	ImportanceInLayers                   // poor without: the quantizer refuses, except for embedding and output head
	ImportanceNeeded                     // the encoder has no way to do without
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

// typeRow is what there is to know of a type besides its format: name, id, block
// and fields are in the row of package gguf. A type that is only decoded has
// nothing else.
type typeRow struct {
	importance Importance
	// fallback is the type for tensors whose rows are not whole blocks of this one,
	// if they are whole blocks of that; else such rows go to F16. It is the type itself
	// where there is no smaller block of that size, none where such a tensor cannot be
	// converted at all.
	fallback gguf.Type
	// cost is how many picoseconds an element takes to encode on one core, without and
	// with importance, with vectors of 256 bits (BENCHMARKS.md). Only the proportions
	// matter: estimates of the time that is left go by them.
	cost   [2]int64
	encode encoder // the scalar code, which defines the bits
	decode decoder
	// wholeRow says that with importance the bytes of a block depend on its whole row. Otherwise
	// they depend on the block alone.
	wholeRow bool
}

// none is not a type; it is for the fallback.
const none = ^gguf.Type(0)

// types holds one row per codec, indexed by type id. Ids without a row are zero.
//
// Source of importance and fallbacks: the quantizer of llama.cpp 0.7.0.
var types = [...]typeRow{
	gguf.TypeF32: {ImportanceIgnored, gguf.TypeF32, [2]int64{140, 140}, scalar.QuantizeF32,
		scalar.DequantizeF32, false},
	gguf.TypeF16: {ImportanceIgnored, gguf.TypeF16, [2]int64{240, 240}, scalar.QuantizeF16,
		scalar.DequantizeF16, false},
	gguf.TypeBF16: {ImportanceIgnored, gguf.TypeBF16, [2]int64{160, 160}, scalar.QuantizeBF16,
		scalar.DequantizeBF16, false},
	gguf.TypeQ4_0: {ImportanceUsed, gguf.TypeQ4_0, [2]int64{410, 5500}, scalar.QuantizeQ4_0,
		scalar.DequantizeQ4_0, true},
	gguf.TypeQ4_1: {ImportanceUsed, gguf.TypeQ4_1, [2]int64{410, 14300}, scalar.QuantizeQ4_1,
		scalar.DequantizeQ4_1, true},
	gguf.TypeQ5_0: {ImportanceUsed, gguf.TypeQ5_0, [2]int64{460, 6000}, scalar.QuantizeQ5_0,
		scalar.DequantizeQ5_0, true},
	gguf.TypeQ5_1: {ImportanceUsed, gguf.TypeQ5_1, [2]int64{470, 14300}, scalar.QuantizeQ5_1,
		scalar.DequantizeQ5_1, true},
	gguf.TypeQ8_0: {ImportanceIgnored, gguf.TypeQ8_0, [2]int64{400, 400}, scalar.QuantizeQ8_0,
		scalar.DequantizeQ8_0, false},
	gguf.TypeQ2_K: {ImportanceUsed, gguf.TypeQ4_0, [2]int64{10000, 18200}, scalar.QuantizeQ2_K,
		scalar.DequantizeQ2_K, false},
	gguf.TypeQ3_K: {ImportanceUsed, gguf.TypeQ4_0, [2]int64{6700, 6700}, scalar.QuantizeQ3_K,
		scalar.DequantizeQ3_K, false},
	gguf.TypeQ4_K: {ImportanceUsed, gguf.TypeQ5_0, [2]int64{9100, 14200}, scalar.QuantizeQ4_K,
		scalar.DequantizeQ4_K, false},
	gguf.TypeQ5_K: {ImportanceUsed, gguf.TypeQ5_1, [2]int64{7300, 14300}, scalar.QuantizeQ5_K,
		scalar.DequantizeQ5_K, false},
	gguf.TypeQ6_K: {ImportanceUsed, gguf.TypeQ8_0, [2]int64{5600, 6000}, scalar.QuantizeQ6_K,
		scalar.DequantizeQ6_K, false},
	gguf.TypeQ8_1: {decode: scalar.DequantizeQ8_1},
	gguf.TypeQ8_K: {decode: scalar.DequantizeQ8_K},
	gguf.TypeIQ2_XXS: {ImportanceNeeded, gguf.TypeIQ4_NL, [2]int64{91000, 91000}, scalar.QuantizeIQ2_XXS,
		scalar.DequantizeIQ2_XXS, false},
	gguf.TypeIQ2_XS: {ImportanceNeeded, gguf.TypeIQ4_NL, [2]int64{130000, 130000}, scalar.QuantizeIQ2_XS,
		scalar.DequantizeIQ2_XS, false},
	gguf.TypeIQ3_XXS: {ImportanceInLayers, gguf.TypeIQ4_NL, [2]int64{150000, 160000}, scalar.QuantizeIQ3_XXS,
		scalar.DequantizeIQ3_XXS, false},
	gguf.TypeIQ1_S: {ImportanceNeeded, gguf.TypeIQ4_NL, [2]int64{56000, 56000}, scalar.QuantizeIQ1_S,
		scalar.DequantizeIQ1_S, false},
	gguf.TypeIQ4_NL: {ImportanceUsed, gguf.TypeIQ4_NL, [2]int64{7600, 8000}, scalar.QuantizeIQ4_NL,
		scalar.DequantizeIQ4_NL, false},
	gguf.TypeIQ3_S: {ImportanceUsed, gguf.TypeIQ4_NL, [2]int64{99000, 99000}, scalar.QuantizeIQ3_S,
		scalar.DequantizeIQ3_S, false},
	gguf.TypeIQ2_S: {ImportanceInLayers, gguf.TypeIQ4_NL, [2]int64{72000, 72000}, scalar.QuantizeIQ2_S,
		scalar.DequantizeIQ2_S, false},
	gguf.TypeIQ4_XS: {ImportanceUsed, gguf.TypeIQ4_NL, [2]int64{8000, 8600}, scalar.QuantizeIQ4_XS,
		scalar.DequantizeIQ4_XS, false},
	gguf.TypeIQ1_M: {ImportanceInLayers, gguf.TypeIQ4_NL, [2]int64{66000, 67000}, scalar.QuantizeIQ1_M,
		scalar.DequantizeIQ1_M, false},
	gguf.TypeTQ1_0: {ImportanceIgnored, gguf.TypeQ4_0, [2]int64{480, 480}, scalar.QuantizeTQ1_0,
		scalar.DequantizeTQ1_0, false},
	gguf.TypeTQ2_0: {ImportanceIgnored, gguf.TypeQ4_0, [2]int64{250, 250}, scalar.QuantizeTQ2_0,
		scalar.DequantizeTQ2_0, false},
	gguf.TypeMXFP4: {ImportanceIgnored, gguf.TypeMXFP4, [2]int64{1100, 1100}, scalar.QuantizeMXFP4,
		scalar.DequantizeMXFP4, false},
	gguf.TypeNVFP4: {ImportanceIgnored, none, [2]int64{1000, 1000}, scalar.QuantizeNVFP4,
		scalar.DequantizeNVFP4, false},
	gguf.TypeQ1_0: {ImportanceIgnored, none, [2]int64{260, 260}, scalar.QuantizeQ1_0, scalar.DequantizeQ1_0, false},
	gguf.TypeQ2_0: {ImportanceIgnored, gguf.TypeQ4_0, [2]int64{350, 350}, scalar.QuantizeQ2_0,
		scalar.DequantizeQ2_0, false},
}
