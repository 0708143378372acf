package quants

import "ggforge/gguf"

// registry holds one row per codec, indexed by type id. Ids without a row are
// zero. Vector files replace quantize and impl of a row in init, before any
// codec can be looked up; nothing changes it afterwards.
var registry = [...]Codec{
	gguf.TypeF32:  {typ: gguf.TypeF32, quantize: quantizeF32, dequantize: dequantizeF32, check: []floatField{{"element", 0, kindF32}}},
	gguf.TypeF16:  {typ: gguf.TypeF16, quantize: quantizeF16, dequantize: dequantizeF16, check: []floatField{{"element", 0, kindF16}}},
	gguf.TypeBF16: {typ: gguf.TypeBF16, quantize: quantizeBF16, dequantize: dequantizeBF16, check: []floatField{{"element", 0, kindBF16}}},
	gguf.TypeQ4_0: {typ: gguf.TypeQ4_0, quantize: quantizeQ4_0, dequantize: dequantizeQ4_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ4_1: {typ: gguf.TypeQ4_1, quantize: quantizeQ4_1, dequantize: dequantizeQ4_1, check: []floatField{{"d", 0, kindF16}, {"m", 2, kindF16}}},
	gguf.TypeQ5_0: {typ: gguf.TypeQ5_0, quantize: quantizeQ5_0, dequantize: dequantizeQ5_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ5_1: {typ: gguf.TypeQ5_1, quantize: quantizeQ5_1, dequantize: dequantizeQ5_1, check: []floatField{{"d", 0, kindF16}, {"m", 2, kindF16}}},
	gguf.TypeQ8_0: {typ: gguf.TypeQ8_0, quantize: quantizeQ8_0, dequantize: dequantizeQ8_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ2_K: {typ: gguf.TypeQ2_K, quantize: quantizeQ2_K, dequantize: dequantizeQ2_K, check: []floatField{{"d", 80, kindF16}, {"dmin", 82, kindF16}}},
	gguf.TypeQ3_K: {typ: gguf.TypeQ3_K, quantize: quantizeQ3_K, dequantize: dequantizeQ3_K, check: []floatField{{"d", 108, kindF16}}},
	gguf.TypeQ4_K: {typ: gguf.TypeQ4_K, quantize: quantizeQ4_K, dequantize: dequantizeQ4_K, check: []floatField{{"d", 0, kindF16}, {"dmin", 2, kindF16}}},
	gguf.TypeQ5_K: {typ: gguf.TypeQ5_K, quantize: quantizeQ5_K, dequantize: dequantizeQ5_K, check: []floatField{{"d", 0, kindF16}, {"dmin", 2, kindF16}}},
	gguf.TypeQ6_K: {typ: gguf.TypeQ6_K, quantize: quantizeQ6_K, dequantize: dequantizeQ6_K, check: []floatField{{"d", 208, kindF16}}},
}
