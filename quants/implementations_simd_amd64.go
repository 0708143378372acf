//go:build goexperiment.simd && go1.27

package quants

import (
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/quants/internal/avx2"
	"ggforge/quants/internal/lanes"
)

func archImplementations() []implementation {
	return []implementation{{
		name: "avx2",
		runs: cpu.Machine.UsesAVX2,
		pays: cpu.Machine.UsesAVX2,
		kernels: []kernel{
			converts(gguf.TypeF32, avx2.QuantizeF32, avx2.DequantizeF32),
			converts(gguf.TypeF16, avx2.QuantizeF16, avx2.DequantizeF16),
			converts(gguf.TypeBF16, avx2.QuantizeBF16, avx2.DequantizeBF16),
			{gguf.TypeQ4_0, avx2.QuantizeQ4_0, nil, avx2.DequantizeQ4_0, nil},
			{gguf.TypeQ4_1, avx2.QuantizeQ4_1, nil, avx2.DequantizeQ4_1, nil},
			{gguf.TypeQ5_0, avx2.QuantizeQ5_0, nil, avx2.DequantizeQ5_0, nil},
			{gguf.TypeQ5_1, avx2.QuantizeQ5_1, nil, avx2.DequantizeQ5_1, nil},
			converts(gguf.TypeQ8_0, avx2.QuantizeQ8_0, avx2.DequantizeQ8_0),
			decodes(gguf.TypeQ2_K, avx2.DequantizeQ2_K),
			{gguf.TypeQ3_K, lanes.QuantizePlainQ3_KAVX2, nil, avx2.DequantizeQ3_K, nil},
			decodes(gguf.TypeQ4_K, avx2.DequantizeQ4_K),
			decodes(gguf.TypeQ5_K, avx2.DequantizeQ5_K),
			decodes(gguf.TypeQ6_K, avx2.DequantizeQ6_K),
			decodes(gguf.TypeIQ1_S, avx2.DequantizeIQ1_S),
			decodes(gguf.TypeIQ1_M, avx2.DequantizeIQ1_M),
			decodes(gguf.TypeIQ2_XXS, avx2.DequantizeIQ2_XXS),
			decodes(gguf.TypeIQ2_XS, avx2.DequantizeIQ2_XS),
			decodes(gguf.TypeIQ2_S, avx2.DequantizeIQ2_S),
			decodes(gguf.TypeIQ3_XXS, avx2.DequantizeIQ3_XXS),
			decodes(gguf.TypeIQ3_S, avx2.DequantizeIQ3_S),
			decodes(gguf.TypeIQ4_NL, avx2.DequantizeIQ4_NL),
			decodes(gguf.TypeIQ4_XS, avx2.DequantizeIQ4_XS),
			converts(gguf.TypeTQ1_0, avx2.QuantizeTQ1_0, avx2.DequantizeTQ1_0),
			converts(gguf.TypeTQ2_0, avx2.QuantizeTQ2_0, avx2.DequantizeTQ2_0),
			converts(gguf.TypeQ1_0, avx2.QuantizeQ1_0, avx2.DequantizeQ1_0),
			converts(gguf.TypeQ2_0, avx2.QuantizeQ2_0, avx2.DequantizeQ2_0),
			converts(gguf.TypeMXFP4, avx2.QuantizeMXFP4, avx2.DequantizeMXFP4),
			converts(gguf.TypeNVFP4, avx2.QuantizeNVFP4, avx2.DequantizeNVFP4),
		},
		finite: avx2.FiniteChunks,
	}, vec128Implementation()}
}
