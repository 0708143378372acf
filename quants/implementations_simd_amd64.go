//go:build goexperiment.simd && go1.27

package quants

import (
	"simd/archsimd"

	"ggforge/gguf"
)

func hasAVX2() bool { return archsimd.X86.AVX2() }

// usesAVX2 says where kernels of 256 bits for amd64 are meant to run: where package
// simd works with as much, so that they can be switched off with GODEBUG=simd=128 or 0.
func usesAVX2(m machine) bool { return !m.emulated && m.bits >= 256 && m.avx2 }

// Steps of the kernels of package simd that are written for AVX2.
var (
	tilesByAVX2 = usesAVX2(here()) && here().bits == 256 // a tile has the 8 lanes of searchAsymAVX2
	nearByTable = usesAVX2(here())
)

func archImplementations() []implementation {
	return []implementation{{
		name: "avx2",
		runs: usesAVX2,
		pays: usesAVX2,
		kernels: []kernel{
			converts(gguf.TypeF32, quantizeF32AVX2, dequantizeF32AVX2),
			converts(gguf.TypeF16, quantizeF16AVX2, dequantizeF16AVX2),
			converts(gguf.TypeBF16, quantizeBF16AVX2, dequantizeBF16AVX2),
			{gguf.TypeQ4_0, quantizeQ4_0AVX2, nil, dequantizeQ4_0AVX2},
			{gguf.TypeQ4_1, quantizeQ4_1AVX2, nil, dequantizeQ4_1AVX2},
			{gguf.TypeQ5_0, quantizeQ5_0AVX2, nil, dequantizeQ5_0AVX2},
			{gguf.TypeQ5_1, quantizeQ5_1AVX2, nil, dequantizeQ5_1AVX2},
			converts(gguf.TypeQ8_0, quantizeQ8_0AVX2, dequantizeQ8_0AVX2),
			decodes(gguf.TypeQ2_K, dequantizeQ2_KAVX2),
			decodes(gguf.TypeQ3_K, dequantizeQ3_KAVX2),
			decodes(gguf.TypeQ4_K, dequantizeQ4_KAVX2),
			decodes(gguf.TypeQ5_K, dequantizeQ5_KAVX2),
			decodes(gguf.TypeQ6_K, dequantizeQ6_KAVX2),
			decodes(gguf.TypeIQ1_S, dequantizeIQ1_SAVX2),
			decodes(gguf.TypeIQ1_M, dequantizeIQ1_MAVX2),
			decodes(gguf.TypeIQ2_XXS, dequantizeIQ2_XXSAVX2),
			decodes(gguf.TypeIQ2_XS, dequantizeIQ2_XSAVX2),
			decodes(gguf.TypeIQ2_S, dequantizeIQ2_SAVX2),
			decodes(gguf.TypeIQ3_XXS, dequantizeIQ3_XXSAVX2),
			decodes(gguf.TypeIQ3_S, dequantizeIQ3_SAVX2),
			decodes(gguf.TypeIQ4_NL, dequantizeIQ4_NLAVX2),
			decodes(gguf.TypeIQ4_XS, dequantizeIQ4_XSAVX2),
			converts(gguf.TypeTQ1_0, quantizeTQ1_0AVX2, dequantizeTQ1_0AVX2),
			converts(gguf.TypeTQ2_0, quantizeTQ2_0AVX2, dequantizeTQ2_0AVX2),
			converts(gguf.TypeQ1_0, quantizeQ1_0AVX2, dequantizeQ1_0AVX2),
			converts(gguf.TypeQ2_0, quantizeQ2_0AVX2, dequantizeQ2_0AVX2),
			converts(gguf.TypeMXFP4, quantizeMXFP4AVX2, dequantizeMXFP4AVX2),
			converts(gguf.TypeNVFP4, quantizeNVFP4AVX2, dequantizeNVFP4AVX2),
		},
		finite: finiteChunksAVX2,
	}}
}
