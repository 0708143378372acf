package quants

import "ggforge/gguf"

// registry holds one row per codec, indexed by type id. Ids without a row are
// zero. Vector files replace functions of a row and their names in init, before
// any codec can be looked up; nothing changes it afterwards.
var registry = [...]Codec{
	gguf.TypeF32:     {typ: gguf.TypeF32, quantize: quantizeF32, dequantize: dequantizeF32, check: []floatField{{"element", 0, kindF32}}},
	gguf.TypeF16:     {typ: gguf.TypeF16, quantize: quantizeF16, dequantize: dequantizeF16, check: []floatField{{"element", 0, kindF16}}},
	gguf.TypeBF16:    {typ: gguf.TypeBF16, quantize: quantizeBF16, dequantize: dequantizeBF16, check: []floatField{{"element", 0, kindBF16}}},
	gguf.TypeQ4_0:    {typ: gguf.TypeQ4_0, quantize: quantizeQ4_0, dequantize: dequantizeQ4_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ4_1:    {typ: gguf.TypeQ4_1, quantize: quantizeQ4_1, dequantize: dequantizeQ4_1, check: []floatField{{"d", 0, kindF16}, {"m", 2, kindF16}}},
	gguf.TypeQ5_0:    {typ: gguf.TypeQ5_0, quantize: quantizeQ5_0, dequantize: dequantizeQ5_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ5_1:    {typ: gguf.TypeQ5_1, quantize: quantizeQ5_1, dequantize: dequantizeQ5_1, check: []floatField{{"d", 0, kindF16}, {"m", 2, kindF16}}},
	gguf.TypeQ8_0:    {typ: gguf.TypeQ8_0, quantize: quantizeQ8_0, dequantize: dequantizeQ8_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ2_K:    {typ: gguf.TypeQ2_K, quantize: quantizeQ2_K, dequantize: dequantizeQ2_K, check: []floatField{{"d", 80, kindF16}, {"dmin", 82, kindF16}}},
	gguf.TypeQ3_K:    {typ: gguf.TypeQ3_K, quantize: quantizeQ3_K, dequantize: dequantizeQ3_K, check: []floatField{{"d", 108, kindF16}}},
	gguf.TypeQ4_K:    {typ: gguf.TypeQ4_K, quantize: quantizeQ4_K, dequantize: dequantizeQ4_K, check: []floatField{{"d", 0, kindF16}, {"dmin", 2, kindF16}}},
	gguf.TypeQ5_K:    {typ: gguf.TypeQ5_K, quantize: quantizeQ5_K, dequantize: dequantizeQ5_K, check: []floatField{{"d", 0, kindF16}, {"dmin", 2, kindF16}}},
	gguf.TypeQ6_K:    {typ: gguf.TypeQ6_K, quantize: quantizeQ6_K, dequantize: dequantizeQ6_K, check: []floatField{{"d", 208, kindF16}}},
	gguf.TypeQ8_1:    {typ: gguf.TypeQ8_1, dequantize: dequantizeQ8_1, check: []floatField{{"d", 0, kindF16}, {"s", 2, kindF16}}},
	gguf.TypeQ8_K:    {typ: gguf.TypeQ8_K, dequantize: dequantizeQ8_K, check: []floatField{{"d", 0, kindF32}}},
	gguf.TypeIQ2_XXS: {typ: gguf.TypeIQ2_XXS, quantize: quantizeIQ2_XXS, dequantize: dequantizeIQ2_XXS, needsImportance: true, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ2_XS:  {typ: gguf.TypeIQ2_XS, quantize: quantizeIQ2_XS, dequantize: dequantizeIQ2_XS, needsImportance: true, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ3_XXS: {typ: gguf.TypeIQ3_XXS, quantize: quantizeIQ3_XXS, dequantize: dequantizeIQ3_XXS, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ1_S:   {typ: gguf.TypeIQ1_S, quantize: quantizeIQ1_S, dequantize: dequantizeIQ1_S, needsImportance: true, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ4_NL:  {typ: gguf.TypeIQ4_NL, quantize: quantizeIQ4_NL, dequantize: dequantizeIQ4_NL, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ3_S:   {typ: gguf.TypeIQ3_S, quantize: quantizeIQ3_S, dequantize: dequantizeIQ3_S, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ2_S:   {typ: gguf.TypeIQ2_S, quantize: quantizeIQ2_S, dequantize: dequantizeIQ2_S, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ4_XS:  {typ: gguf.TypeIQ4_XS, quantize: quantizeIQ4_XS, dequantize: dequantizeIQ4_XS, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeIQ1_M:   {typ: gguf.TypeIQ1_M, quantize: quantizeIQ1_M, dequantize: dequantizeIQ1_M, check: []floatField{{"d", 48, kindIQ1_M}}},
	gguf.TypeTQ1_0:   {typ: gguf.TypeTQ1_0, quantize: quantizeTQ1_0, dequantize: dequantizeTQ1_0, check: []floatField{{"d", 52, kindF16}}},
	gguf.TypeTQ2_0:   {typ: gguf.TypeTQ2_0, quantize: quantizeTQ2_0, dequantize: dequantizeTQ2_0, check: []floatField{{"d", 64, kindF16}}},
	gguf.TypeMXFP4:   {typ: gguf.TypeMXFP4, quantize: quantizeMXFP4, dequantize: dequantizeMXFP4, check: []floatField{{"e", 0, kindE8M0}}},
	gguf.TypeNVFP4:   {typ: gguf.TypeNVFP4, quantize: quantizeNVFP4, dequantize: dequantizeNVFP4},
	gguf.TypeQ1_0:    {typ: gguf.TypeQ1_0, quantize: quantizeQ1_0, dequantize: dequantizeQ1_0, check: []floatField{{"d", 0, kindF16}}},
	gguf.TypeQ2_0:    {typ: gguf.TypeQ2_0, quantize: quantizeQ2_0, dequantize: dequantizeQ2_0, check: []floatField{{"d", 0, kindF16}}},
}
