//go:build goexperiment.simd && go1.27

package quants

import (
	"fmt"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/quants/internal/lanes"
)

func vectorImplementations() []implementation {
	return append(archImplementations(), lanesImplementation(cpu.Here()))
}

// lanesImplementation has the kernels of package simd, for vectors of any width. They
// work in emulation too, but more slowly than the scalar code. With 256 bits of
// amd64 some of their steps are written for AVX2: see lanes.tilesByAVX2; with arm64 some for Neon.
func lanesImplementation(m cpu.Machine) implementation {
	name := fmt.Sprintf("simd-%d", m.Bits)
	if m.Emulated {
		name = "simd-emulated"
	}
	return implementation{
		name: name,
		runs: func(m cpu.Machine) bool { return m.Bits > 0 },
		pays: cpu.Machine.Lanes,
		kernels: []kernel{
			weighs(gguf.TypeQ4_0, lanes.QuantizeQ4_0),
			weighs(gguf.TypeQ4_1, lanes.QuantizeQ4_1),
			weighs(gguf.TypeQ5_0, lanes.QuantizeQ5_0),
			weighs(gguf.TypeQ5_1, lanes.QuantizeQ5_1),
			encodes(gguf.TypeQ2_K, lanes.QuantizeQ2_K),
			encodes(gguf.TypeQ3_K, lanes.QuantizeQ3_K),
			encodes(gguf.TypeQ4_K, lanes.QuantizeQ4_K),
			encodes(gguf.TypeQ5_K, lanes.QuantizeQ5_K),
			encodes(gguf.TypeQ6_K, lanes.QuantizeQ6_K),
			encodes(gguf.TypeIQ4_NL, lanes.QuantizeIQ4_NL),
			encodes(gguf.TypeIQ4_XS, lanes.QuantizeIQ4_XS),
			encodes(gguf.TypeIQ1_S, lanes.QuantizeIQ1_S),
			encodes(gguf.TypeIQ1_M, lanes.QuantizeIQ1_M),
			encodes(gguf.TypeIQ2_XXS, lanes.QuantizeIQ2_XXS),
			encodes(gguf.TypeIQ2_XS, lanes.QuantizeIQ2_XS),
			encodes(gguf.TypeIQ2_S, lanes.QuantizeIQ2_S),
			encodes(gguf.TypeIQ3_XXS, lanes.QuantizeIQ3_XXS),
			encodes(gguf.TypeIQ3_S, lanes.QuantizeIQ3_S),
		},
	}
}

// encodes is a kernel for an encoder that works with importance and without.
func encodes(t gguf.Type, f encoder) kernel { return kernel{t, f, f, nil, nil} }

// weighs is a kernel for an encoder that works with importance alone, and looks at whole rows.
func weighs(t gguf.Type, f rowsEncoder) kernel {
	return kernel{t, nil, func(dst []byte, src, importance []float32) { f(dst, src, importance, len(src)) }, nil, f}
}
