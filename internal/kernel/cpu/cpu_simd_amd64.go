//go:build goexperiment.simd && go1.27

package cpu

import (
	"simd/archsimd"

	"ggforge/internal/kernel/cpu/widest"
)

// Package simd, which this package imports, has read GODEBUG by now.
func init() { widest.Restore() }

func hasAVX2() bool { return archsimd.X86.AVX2() && archsimd.X86.FMA() }
