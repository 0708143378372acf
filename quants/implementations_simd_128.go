//go:build goexperiment.simd && go1.27 && (amd64 || arm64)

package quants

import (
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/quants/internal/vec128"
)

// vec128Implementation has the kernels of 128 bits that do not search. On amd64 they are for where those of AVX2 do not
// run.
func vec128Implementation() implementation {
	return implementation{
		name: vec128.Name,
		runs: cpu.Machine.Lanes,
		pays: cpu.Machine.Lanes,
		kernels: []kernel{
			converts(gguf.TypeF32, vec128.QuantizeF32, vec128.DequantizeF32),
			converts(gguf.TypeF16, vec128.QuantizeF16, vec128.DequantizeF16),
			converts(gguf.TypeBF16, vec128.QuantizeBF16, vec128.DequantizeBF16),
			converts(gguf.TypeQ8_0, vec128.QuantizeQ8_0, vec128.DequantizeQ8_0),
			{gguf.TypeQ4_0, vec128.QuantizeQ4_0, nil, vec128.DequantizeQ4_0, nil},
			{gguf.TypeQ4_1, vec128.QuantizeQ4_1, nil, vec128.DequantizeQ4_1, nil},
			{gguf.TypeQ5_0, vec128.QuantizeQ5_0, nil, vec128.DequantizeQ5_0, nil},
			{gguf.TypeQ5_1, vec128.QuantizeQ5_1, nil, vec128.DequantizeQ5_1, nil},
			decodes(gguf.TypeIQ4_NL, vec128.DequantizeIQ4_NL),
			converts(gguf.TypeMXFP4, vec128.QuantizeMXFP4, vec128.DequantizeMXFP4),
			converts(gguf.TypeNVFP4, vec128.QuantizeNVFP4, vec128.DequantizeNVFP4),
			decodes(gguf.TypeQ2_K, vec128.DequantizeQ2_K),
			decodes(gguf.TypeQ3_K, vec128.DequantizeQ3_K),
			decodes(gguf.TypeQ4_K, vec128.DequantizeQ4_K),
			decodes(gguf.TypeQ5_K, vec128.DequantizeQ5_K),
			decodes(gguf.TypeQ6_K, vec128.DequantizeQ6_K),
			decodes(gguf.TypeIQ4_XS, vec128.DequantizeIQ4_XS),
			decodes(gguf.TypeIQ1_S, vec128.DequantizeIQ1_S),
			decodes(gguf.TypeIQ1_M, vec128.DequantizeIQ1_M),
			decodes(gguf.TypeIQ2_XXS, vec128.DequantizeIQ2_XXS),
			decodes(gguf.TypeIQ2_XS, vec128.DequantizeIQ2_XS),
			decodes(gguf.TypeIQ2_S, vec128.DequantizeIQ2_S),
			decodes(gguf.TypeIQ3_XXS, vec128.DequantizeIQ3_XXS),
			decodes(gguf.TypeIQ3_S, vec128.DequantizeIQ3_S),
			converts(gguf.TypeTQ1_0, vec128.QuantizeTQ1_0, vec128.DequantizeTQ1_0),
			converts(gguf.TypeTQ2_0, vec128.QuantizeTQ2_0, vec128.DequantizeTQ2_0),
			converts(gguf.TypeQ1_0, vec128.QuantizeQ1_0, vec128.DequantizeQ1_0),
			converts(gguf.TypeQ2_0, vec128.QuantizeQ2_0, vec128.DequantizeQ2_0),
		},
		finite: vec128.FiniteChunks,
	}
}

// decodes is a kernel for a decoder alone.
func decodes(t gguf.Type, g decoder) kernel { return kernel{t, nil, nil, g, nil} }
