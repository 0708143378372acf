//go:build goexperiment.simd && go1.27

package quants

import (
	"fmt"
	"simd"

	"ggforge/gguf"
)

// HasVectors says whether this build has vector kernels. Whether they run is up to the
// CPU: see Kernels.
const HasVectors = true

func here() machine { return machine{simd.VectorBitSize(), simd.Emulated(), hasAVX2()} }

func vectorImplementations() []implementation {
	return append(archImplementations(), lanesImplementation(here()))
}

// lanesImplementation has the kernels of package simd, for vectors of any width. They
// work in emulation too, but more slowly than the scalar code. With 256 bits of
// amd64 some of their steps are written for AVX2: see tilesByAVX2.
func lanesImplementation(m machine) implementation {
	name := fmt.Sprintf("simd-%d", m.bits)
	if m.emulated {
		name = "simd-emulated"
	}
	return implementation{
		name: name,
		runs: func(m machine) bool { return m.bits > 0 },
		pays: func(m machine) bool { return !m.emulated },
		kernels: []kernel{
			{gguf.TypeQ4_0, nil, quantizeQ4_0Tiles, nil},
			{gguf.TypeQ4_1, nil, quantizeQ4_1Tiles, nil},
			{gguf.TypeQ5_0, nil, quantizeQ5_0Tiles, nil},
			{gguf.TypeQ5_1, nil, quantizeQ5_1Tiles, nil},
			encodes(gguf.TypeQ2_K, quantizeQ2_KTiles),
			encodes(gguf.TypeQ3_K, quantizeQ3_KTiles),
			encodes(gguf.TypeQ4_K, quantizeQ4_KTiles),
			encodes(gguf.TypeQ5_K, quantizeQ5_KTiles),
			encodes(gguf.TypeQ6_K, quantizeQ6_KTiles),
			encodes(gguf.TypeIQ4_NL, quantizeIQ4_NLTiles),
			encodes(gguf.TypeIQ4_XS, quantizeIQ4_XSTiles),
			encodes(gguf.TypeIQ1_S, quantizeIQ1_SLanes),
			encodes(gguf.TypeIQ1_M, quantizeIQ1_MLanes),
			encodes(gguf.TypeIQ2_XXS, quantizeIQ2_XXSLanes),
			encodes(gguf.TypeIQ2_XS, quantizeIQ2_XSLanes),
			encodes(gguf.TypeIQ2_S, quantizeIQ2_SLanes),
			encodes(gguf.TypeIQ3_XXS, quantizeIQ3_XXSLanes),
			encodes(gguf.TypeIQ3_S, quantizeIQ3_SLanes),
		},
	}
}
