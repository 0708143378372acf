//go:build goexperiment.simd && go1.27

package precision

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"simd/archsimd"
	"testing"

	"ggforge/checkpoint/safetensors"
	"ggforge/internal/kernel/cpu"
)

// The kernels of 256 bits run on every CPU that has AVX2, whatever GODEBUG says.

// someFloats are scales and zero points, whose neighbours are taken as well.
var someFloats = []float32{0, 1, -1, 7, 8, 15.5, 255, 0.0123, -3.7e-5, 0x1p-14, 0x1p-24, 0x1p-25, 65504, 65519, 65520,
	1e30, math.MaxFloat32, math.SmallestNonzeroFloat32}

func neighbours(f float32) [3]float32 {
	return [3]float32{math.Nextafter32(f, -1), f, math.Nextafter32(f, 2)}
}

func TestVectorsOfCodes(t *testing.T) {
	if !archsimd.X86.AVX2() {
		t.Skip("UNTESTED: this CPU has no AVX2")
	}
	codes := make([]byte, 300) // all of them, and some again
	for i := range codes {
		codes[i] = byte(i)
	}
	for name, c := range map[string]struct {
		values  *codeValues
		vectors func(out, codes []byte, scale, zero uint32) int
	}{
		"unsigned": {wholeNumbers(), unsignedAVX2}, "signed": {codesOf(safetensors.I8), signedAVX2},
		"e4m3": {codesOf(safetensors.F8_E4M3), e4m3AVX2},
	} {
		plain := codeValues{table: c.values.table}
		for _, f := range someFloats {
			for _, scale := range neighbours(f) {
				for _, zero := range someFloats {
					for _, n := range []int{0, 1, 15, 16, 17, 47, 300} {
						want, got := make([]byte, 4*n), bytes.Repeat([]byte{0xA5}, 4*n+64)
						plain.scaledCodes(want, codes[:n], scale, zero)
						done := c.vectors(got[:4*n], codes[:n], bits(scale), bits(zero))
						if done != n/step*step {
							t.Fatalf("%s: %d of %d codes", name, done, n)
						}
						if !bytes.Equal(got[:4*done], want[:4*done]) {
							t.Fatalf("%s: scale %v, zero %v: differs from the scalar code:\n%x\n%x", name, scale,
								zero, got[:4*done], want[:4*done])
						}
						if !bytes.Equal(got[4*done:], bytes.Repeat([]byte{0xA5}, len(got)-4*done)) {
							t.Fatalf("%s: wrote past its end", name)
						}
					}
				}
			}
		}
	}
}

func TestVectorsOfRoundings(t *testing.T) {
	if !archsimd.X86.AVX2() {
		t.Skip("UNTESTED: this CPU has no AVX2")
	}
	r := rand.New(rand.NewPCG(5, 6))
	var all []float32
	for _, f := range someFloats {
		for _, g := range neighbours(f) {
			all = append(all, g, -g)
		}
	}
	all = append(all, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.Float32frombits(0xFF812345))
	for len(all) < 20003 {
		all = append(all, math.Float32frombits(r.Uint32()), float32(r.NormFloat64()))
	}
	raw := make([]byte, 4*len(all))
	for i, v := range all {
		put(raw, i, v)
	}
	for name, c := range map[string]struct {
		dtype    safetensors.DType
		products func(x []byte, scale uint32) int
	}{"f16": {safetensors.F16, productsF16AVX2}, "bf16": {safetensors.BF16, productsBF16AVX2}} {
		plain := rounding{one: roundings()[c.dtype].one}
		for _, f := range someFloats {
			for _, scale := range neighbours(f) {
				want, got := bytes.Clone(raw), bytes.Clone(raw)
				plain.scaled(want, scale)
				done := c.products(got, bits(scale))
				if done != len(all)/8*8 {
					t.Fatalf("%s: %d of %d numbers", name, done, len(all))
				}
				for i := range done {
					if w, g := binary.LittleEndian.Uint32(want[4*i:]), binary.LittleEndian.Uint32(got[4*i:]); w != g {
						t.Fatalf("%s: %v (%08x) times %v: %08x, want %08x", name, all[i],
							math.Float32bits(all[i]), scale, g, w)
					}
				}
				if !bytes.Equal(got[4*done:], raw[4*done:]) {
					t.Fatalf("%s: wrote past its end", name)
				}
			}
		}
	}
}

// TestVectorsChosen checks that the vector kernels are chosen if and only if AVX2 is in use.
func TestVectorsChosen(t *testing.T) {
	if want := cpu.Here().UsesAVX2(); (wholeNumbers().vectors != nil) != want ||
		(codesOf(safetensors.F8_E4M3).vectors != nil) != want ||
		(roundings()[safetensors.F16].products != nil) != want {
		t.Errorf("vectors are chosen, want %v", want)
	}
}
