// Package cpu describes the machine, for the choice among implementations of a kernel.
package cpu

// Machine describes the processor that kernels run on.
type Machine struct {
	Bits     int  // width of vectors of package simd, 0 in a scalar build
	Emulated bool // package simd works without vector instructions
	AVX2     bool // the CPU has AVX2 and FMA
}

// Lanes reports whether kernels of package simd are faster than scalar code.
func (m Machine) Lanes() bool { return m.Bits > 0 && !m.Emulated }

// UsesAVX2 reports whether kernels of 256 bits for amd64 are meant to run: where
// package simd works with as much, so that they can be switched off with
// GODEBUG=simd=128 or 0.
func (m Machine) UsesAVX2() bool { return !m.Emulated && m.Bits >= 256 && m.AVX2 }
